import { isObject } from '../../../workflows/json.ts'
import { type Doc, resolve } from './refs.ts'

/** How a service is signed in to: the types of credentials, and in words what must be entered in them. */
export type SchemeSignIn = { signIn: string[]; setup: string | undefined; refused: string[] }

/** Reads the security schemes of a document. `refused` names those that Perdure has nothing for. */
export function readSignIn(doc: Doc): SchemeSignIn {
  const { securitySchemes } = isObject(doc.components) ? doc.components : {}
  const signIn = new Set<string>()
  const words: string[] = []
  const refused: string[] = []
  for (const [name, given] of Object.entries(isObject(securitySchemes) ? securitySchemes : {})) {
    const scheme = resolve(doc, given)
    const found = scheme && readScheme(scheme)
    if (!found) {
      refused.push(`${name} (${String(scheme?.type ?? 'unknown')})`)
      continue
    }
    signIn.add(found.type)
    words.push(found.words)
  }
  const setup = words.length > 0 ? [...new Set(words)].join('; or ') : undefined
  return { signIn: [...signIn], setup: setup?.slice(0, 1_000), refused }
}

function readScheme({ type, scheme, in: where, name, flows, openIdConnectUrl }: Doc) {
  const kind = String(scheme).toLowerCase()
  if (type === 'http' && kind === 'bearer') return { type: 'HTTP_BEARER', words: 'a token (HTTP_BEARER)' }
  if (type === 'http' && kind === 'basic')
    return { type: 'HTTP_BASIC', words: 'a user name and a password (HTTP_BASIC)' }
  if (type === 'apiKey' && where === 'header')
    return { type: 'HTTP_HEADER', words: `a key in the header ${String(name)} (HTTP_HEADER)` }
  if (type === 'apiKey' && where === 'query')
    return { type: 'HTTP_QUERY', words: `a key in the query parameter ${String(name)} (HTTP_QUERY)` }
  if (type === 'oauth2') return { type: 'OAUTH2', words: `OAuth 2 (OAUTH2)${describeFlows(flows)}` }
  if (type === 'openIdConnect')
    return { type: 'OAUTH2', words: `OAuth 2 (OAUTH2) as ${String(openIdConnectUrl)} says` }
  return undefined
}

function describeFlows(flows: unknown): string {
  const { authorizationCode, clientCredentials } = isObject(flows) ? flows : {}
  const flow = [authorizationCode, clientCredentials].find(isObject)
  if (!flow) return ''
  const { authorizationUrl, tokenUrl } = flow
  const told = [
    authorizationUrl && `authorizationUrl ${authorizationUrl}`,
    tokenUrl && `tokenUrl ${tokenUrl}`,
  ]
  return ` with ${told.filter(Boolean).join(' and ')}`
}
