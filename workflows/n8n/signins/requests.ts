import { getOwn, isObject } from '../../json.ts'
import type { SourceNode } from '../document.ts'
import type { MapperTools } from '../mapper.ts'
import type { ProblemReporter } from '../report.ts'
import { needCredential } from './asking.ts'
import { type NeededCredential, nameNeed } from './needed.ts'
import { findSignIn, isKnownType } from './types.ts'

type Fields = Record<string, unknown>

/** The words of old versions for types of credentials, and those of nodes that have no others. */
const OLD_WORDS: Record<string, string> = {
  basicAuth: 'httpBasicAuth',
  bearerAuth: 'httpBearerAuth',
  customAuth: 'httpCustomAuth',
  digestAuth: 'httpDigestAuth',
  headerAuth: 'httpHeaderAuth',
  multipleHeadersAuth: 'httpMultipleHeadersAuth',
  oAuth1: 'oAuth1Api',
  oAuth2: 'oAuth2Api',
  queryAuth: 'httpQueryAuth',
}

/**
 * The settings by which a request is signed in as in n8n: our credential, if the import names one, and what it needs, so
 * that it is never sent unsigned. `config` is the request's own. Throws an Error that says why no credential can do it.
 */
export function signRequest(node: SourceNode, tools: MapperTools, config: Fields = {}): Fields {
  if (node.parameters.provideSslCertificates === true)
    throw new Error('it shows a certificate of the client, which Perdure cannot')
  const type = readType(node)
  if (type === undefined) return {}
  const signIn = findSignIn(type)
  if ('why' in signIn) {
    needCredential(node, tools, { type, uses: ['HTTP'], types: [], enter: signIn.why })
    throw new Error(`n8n signs it in with "${type}": ${signIn.why}`)
  }
  const need = needCredential(node, tools, { ...signIn, type, uses: ['HTTP'] })
  if (need.credentialId === null) reportNeed(node, need, tools.reportOf(node))
  return {
    ...(need.credentialId === null ? {} : { credentialId: need.credentialId }),
    needsCredential: describeNeed(need),
    ...addHeaders(config.headers, signIn.headers),
  }
}

/** The type of the credential with which a node signs its requests in; undefined if it does not. */
function readType({ parameters, raw }: SourceNode): string | undefined {
  const given = String(parameters.authentication ?? 'none')
  // Some published collections have put expressions in the place of what was chosen.
  const way = /^=?\{\{\s*\$credentials\.(\w+)\s*\}\}$/.exec(given)?.[1] ?? given
  if (way === 'none' || way === '') return undefined
  const said =
    way === 'genericCredentialType'
      ? parameters.genericAuthType
      : way === 'predefinedCredentialType'
        ? parameters.nodeCredentialType
        : (getOwn(OLD_WORDS, way) ?? way)
  const kept = isObject(raw.credentials) ? Object.keys(raw.credentials) : []
  if (typeof said === 'string' && (isKnownType(said) || kept.includes(said))) return said
  return (kept.length === 1 ? kept[0]! : String(said || way)).slice(0, 100)
}

function describeNeed(need: NeededCredential): string {
  const which = need.as === null ? 'choose one that the service takes' : `choose one of the type ${need.as}`
  // It is no expression.
  return `${nameNeed(need)} of n8n: ${which}`.replaceAll('{{', '{ {').slice(0, 500)
}

function reportNeed(node: SourceNode, need: NeededCredential, report: ProblemReporter): void {
  const which = need.as === null ? 'a credential' : `a credential of the type ${need.as}`
  const message =
    `Choose ${which} for "${node.name}": n8n signs in with ${nameNeed(need)}, which is not imported, and nothing is ` +
    `sent without one (${need.enter}). Set it on the node, or import again with it in "credentials", as ` +
    `{${JSON.stringify(need.key)}: its id}.`
  report('credential', `credentials.${need.type}`, message, { id: need.id, name: need.name, type: need.type })
}

/** The headers of a request with those that n8n's credential adds, unless they are there. */
function addHeaders(headers: unknown, added: Record<string, string> | undefined): Fields {
  if (added === undefined || typeof headers === 'string') return {}
  const own = isObject(headers) ? headers : {}
  const there = new Set(Object.keys(own).map((name) => name.toLowerCase()))
  const missing = Object.entries(added).filter(([name]) => !there.has(name.toLowerCase()))
  return missing.length === 0 ? {} : { headers: { ...own, ...Object.fromEntries(missing) } }
}
