import { eachMatch } from '../matches.ts'
import type { Finding } from '../spans.ts'
import { isRandom, isStandIn, isUuid } from './randomness.ts'

/** How much before a value is read for the name of it, in UTF-16 units. */
const BEFORE = 64

const VALUE = /(?<![\w+/.~%-])(?!\/)[\w+/.~-]{16,512}={0,2}(?![\w+/~])/g

/** Words for keys, as variables, headers and people write them. */
const KEY_WORD =
  '(?:api|app|access|account|auth|client|consumer|secret|signing|encryption|master|service|shared|private|personal|bot|bearer|deploy|deployment|admin|live|prod|production|test|dev|staging|server|license|licence|subscription|ingest|ingestion|write|read|user|refresh|oauth|webhook|integration|security|session|id|license)'
const NAME = new RegExp(
  `(?:${KEY_WORD}[\\s_.-]{0,2}(?:keys?|tokens?|secrets?|pat|pass(?:word)?|credentials?)|(?<![a-z])(?:apikeys?|tokens?|secrets?|pat|passwd|password|pwd|credentials?|authtoken|secretkey|accesskey|keys?|auth|authorization))(?![a-z])`,
  'gi',
)
/** Between the name and the value: a sign or a verb after a few words, or a space. */
const BETWEEN =
  /^(?:[\w\s"'`-]{0,24}?(?:[:=]{1,3}>?|->|\bis\b|\bwas\b|\bas\b)|["'`]?[\s,(])[\s"'`\\({[<]{0,6}(?:(?:bearer|token|basic|is|key|value|the|new|now|following)[\s:="'`]{1,3}){0,2}$/i
/** Words that follow the name where a property of the key is meant. */
const ABOUT =
  /^["'`]?[\s_-]{0,2}(?:ids?|names?|hash|fingerprint|version|type|url|uri|path|file|count|length|usage|expires?|expiry|prefix|label|arn|address|contract|mint|symbol|holder|owner|policy)(?![a-z])/i

/** Keys that are none, and numbers that stand beside keys. */
const NO_SECRET =
  /(?:public|primary|foreign|cache|partition|sort|idempotency|object|row|index|storage|s3|redis|unique|composite|map|dictionary|registry|react|translation|i18n|locali[sz]ation|next|page|continuation|sync|cursor|csrf|xsrf|ssh|host|gpg|pgp|known|public[_ -]?ssh)[\s_.-]{0,2}(?:keys?|tokens?)$|fingerprint|checksum|digest|integrity|sha\d*|md5|hash|commit|revision|etag|uuid|guid|request|trace|span|correlation/i

/** Services whose keys have no form of their own: `DATADOG = "..."` is one by its name. */
const SERVICES = new Set(
  'adafruit airbrake algolia alchemy amplitude auth0 azure bitbucket bitly bugsnag calendly checkout cloudflare cloudinary codecov cohere coinbase confluent contentful crowdin datadog deepl deepgram deepseek discogs discord drone dropbox dynatrace elastic etherscan etsy facebook fastly finnhub flickr freshbooks freshdesk giphy gitter gnews hereapi honeycomb infura instagram intercom ipinfo ipstack jira klaviyo kraken kucoin lastfm linkedin linode logdna loggly looker lokalise mailgun mailjet mapquest mattermost messagebird mistral mixpanel moralis nasa newsapi nexmo nytimes okta omdb opsgenie openweather openweathermap pagerduty papertrail paypal pexels pingdom pivotal plaid plivo polygon pusher quicknode rapidapi rollbar scraperapi sendbird shodan snowflake sonarqube spoonacular splunk spotify sparkpost steam strava tmdb trello tradier travis twilio twitch twitter unsplash virustotal vonage wakatime weatherapi weatherstack webflow yelp youtube zendesk zenserp zoom zulip'.split(
    ' ',
  ),
)
const ASSIGNED_NAME = /([\w.-]{3,40})["'`]?\s{0,3}(?:[:=]{1,2}>?|\bis\b)\s{0,3}["'`]?$/

/**
 * Values that look as if a machine had drawn them and that a name before them calls a key, a token or a secret, or that
 * stand under the name of a service. Without such a name they are not told: a commit or a hash looks the same.
 */
export function findNamedKeys(text: string): Finding<'api_key'>[] {
  const found: Finding<'api_key'>[] = []
  for (const { 0: taken, index } of eachMatch(VALUE, text)) {
    const value = taken.replace(/[.~-]+$/, '')
    const before = text.slice(Math.max(0, index - BEFORE), index)
    if (!MIXED.test(value) || before.endsWith('://')) continue
    const isNamed = NAME_HINT.test(before)
    if (!isNamed && !ASSIGNED.test(before)) continue
    const isId = isUuid(value)
    if (isId ? !isNamed : !(isNamed || hasService(before)) || !isRandom(value)) continue
    if (isStandIn(value) || /^0x[0-9a-f]{40}$/i.test(value)) continue
    const confidence = rate(before, isId)
    if (confidence > 0)
      found.push({ kind: 'api_key', start: index, end: index + value.length, confidence, rule: 'named_key' })
  }
  return found
}

/** Cheap, before anything else is asked. */
const MIXED = /[A-Za-z]/
const NAME_HINT = /key|token|secret|pass|pwd|cred|auth|pat\b/i
const ASSIGNED = /[:=]\s{0,3}["'`]?$/

function hasService(before: string): boolean {
  const [, name] = ASSIGNED_NAME.exec(before) ?? []
  return name !== undefined && isOfService(name)
}

function rate(before: string, isId: boolean): number {
  const line = before.slice(before.lastIndexOf('\n') + 1)
  let named: RegExpExecArray | undefined
  for (const match of eachMatch(NAME, line)) named = match
  if (named) {
    const end = named.index + named[0].length
    const upTo = line.slice(0, end)
    const after = line.slice(end)
    if (NO_SECRET.test(upTo.slice(-28)) || ABOUT.test(after) || !BETWEEN.test(after)) return 0
    // "secret: 0198c6f2-..." may well be a secret, "token id: 0198c6f2-..." is not.
    if (isId) return /(?:api|secret|access|auth)/i.test(named[0]) ? 0.55 : 0
    return 0.75
  }
  const name = isId ? undefined : ASSIGNED_NAME.exec(line)?.[1]
  return name !== undefined && isOfService(name) ? 0.6 : 0
}

function isOfService(name: string): boolean {
  const words = name
    .replace(/([a-z])(?=[A-Z])/g, '$1_')
    .toLowerCase()
    .split(/[^a-z0-9]+/)
  return words.some((word) => SERVICES.has(word)) && !NO_SECRET.test(name)
}
