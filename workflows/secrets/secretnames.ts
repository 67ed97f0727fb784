/** Makes all spellings of a key's name equal: customerRef, customer_ref and Customer-Ref. */
export function normalizeKey(name: string): string {
  return name.toLowerCase().replace(/[\s_.-]/g, '')
}

const set = (words: string) => new Set(words.split(' '))
// A name is a secret's if it contains one of SECRET_WORDS, or two neighbouring words that make one of
// SECRET_PAIRS; or if its words, written as one, are one of SECRET_NAMES or end like SECRET_END.
const SECRET_WORDS = set(
  'password passwords passwd pwd passphrase passcode secret secrets token credential credentials auth authorization cookie cookies bearer apikey apikeys ssn cvv cvc otp totp jwt dsn',
)
const SECRET_PAIRS = set(
  'apikey apikeys privatekey privatekeys accesskey secretkey signingkey encryptionkey masterkey sharedkey accountkey servicekey connectionstring sessionid connectsid webhookurl',
)
const SECRET_NAMES = set('pass pin sid sig jsessionid phpsessid authheader')
const SECRET_END =
  /(password|passwd|secret|token|apikey|privatekey|accesskey|secretkey|credentials?|passphrase|authorization)$/
// With one of these as its last word, a name is for something about a secret, not for the secret itself.
const ABOUT = set(
  'at by count counts length size type types used usage limit limits max min expires expiry expired expiration ttl age id ids name names hint policy enabled required valid set status state method mode scheme version provider field fields budget cost costs role rotation scope scopes index label prefix url uri endpoint',
)
const HARMLESS = set(
  'nextpagetoken pagetoken nexttoken continuationtoken synctoken cursortoken tokenspersecond tokensused stoptoken eostoken bostoken padtoken maxtoken mintoken pertoken perouttoken costpertoken pricepertoken',
)

/** Every name of a secret has one of these in it, once what is not a letter or a digit is left out: most names have none. */
const HINT =
  /pass|pwd|secret|token|cred|auth|cookie|bearer|key|ssn|cvv|cvc|otp|jwt|dsn|session|connect|webhook|pin|sid|sig/i

/** Whether a key, header or parameter of this name holds a secret: apiKey, X-Auth-Token; not tokens_used. */
export function isSecretName(name: string): boolean {
  if (name.length < 3 || name.length > 100) return false
  if (!HINT.test(/^[A-Za-z0-9]*$/.test(name) ? name : name.replace(/[^A-Za-z0-9]+/g, ''))) return false
  const words = name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replace(/([A-Z])([A-Z][a-z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== '')
  const whole = words.join('')
  if (SECRET_NAMES.has(whole) || SECRET_PAIRS.has(whole)) return true
  if (HARMLESS.has(whole) || (words.length > 1 && ABOUT.has(words.at(-1) ?? ''))) return false
  return (
    SECRET_END.test(whole) ||
    words.some((word, i) => SECRET_WORDS.has(word) || SECRET_PAIRS.has(word + (words[i + 1] ?? '')))
  )
}

/** Names that may be those of a secret, in a request only, as `normalizeKey` spells them. */
export const MAYBE_SECRET: ReadonlySet<string> = new Set(
  ['key', 'code', 'appid', 'subscription-key', 'ocp-apim-subscription-key', 'x-functions-key'].map(
    normalizeKey,
  ),
)

/** Shorter values of names that only may be a secret's are none. */
export const LEAST_SECRET = 16
