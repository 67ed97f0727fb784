import type { Rules } from '../../workflows/expressions/rules.ts'
import type { GraphNode } from '../../workflows/graph/graph.ts'
import { replaceSecret } from '../../workflows/graph/secrets.ts'
import { cutFromUrl, type Literal, readHost } from '../../workflows/secrets/literals.ts'
import { decodeUriPart } from '../../workflows/texts.ts'
import { readCredentialData } from '../credentials/data.ts'
import type { CredentialData } from '../credentials/seal.ts'
import type { CredentialType } from '../credentials/types.ts'

/**
 * The credential that sends the same as a literal of a request, with the config without that literal; or the reason why
 * none can.
 */
type PassPlan =
  | { type: CredentialType; data: CredentialData; config: Record<string, unknown> }
  | { why: string }

/**
 * Plans the credential for a secret that is written into a request. The request stays the same on the wire: a token or
 * a user that a credential would write in another way goes into one for the whole header.
 */
export function planPass(node: GraphNode, literal: Literal, rules: Rules): PassPlan {
  const { config } = node
  if (config.credentialId !== undefined) return { why: 'the node has a credential already' }
  if (config.needsCredential !== undefined) return { why: 'the node needs a credential for another secret' }
  const host = readHost(config.url, rules)
  if (host === undefined)
    return { why: 'its host comes from an expression, so somebody must say where the secret may go' }
  if (isRepeated(config, literal)) return { why: 'the request has another value of the same name' }
  const { type, data } = choosePass(literal)
  const { data: read, problems } = readCredentialData(type, { ...data, allowedHosts: [host] })
  if (problems.length > 0) return { why: `a credential cannot hold it: ${problems[0]!.message}` }
  if (literal.place === 'parameter' || literal.place === 'user')
    return { type, data: read, config: { ...config, url: cutFromUrl(String(config.url), literal, rules) } }
  return { type, data: read, config: replaceSecret(node, literal.path.map(String), undefined).config }
}

/** Whether something else of the request has the same name, so that its place or its absence has a meaning. */
function isRepeated(config: Record<string, unknown>, { place, name }: Literal): boolean {
  const lower = (place === 'user' ? 'authorization' : name).toLowerCase()
  if (place === 'header' || place === 'user') {
    const same = Object.keys(Object(config.headers)).filter((key) => key.toLowerCase() === lower)
    return typeof config.headers === 'string' || same.length > (place === 'header' ? 1 : 0)
  }
  if (typeof config.query === 'string') return true
  const inUrl = URL.parse(String(config.url))?.searchParams.getAll(name).length ?? 0
  const inQuery = Object.hasOwn(Object(config.query), name) ? 1 : 0
  return inUrl + inQuery > 1
}

function choosePass({ place, name, value }: Literal): { type: CredentialType; data: CredentialData } {
  if (place === 'user') {
    const [username = '', ...password] = value.split(':')
    return {
      type: 'HTTP_BASIC',
      data: { username: decodeUriPart(username), password: decodeUriPart(password.join(':')) },
    }
  }
  if (place !== 'header') return { type: 'HTTP_QUERY', data: { name, value } }
  const isAuthorization = name.toLowerCase() === 'authorization'
  const [, token] = (isAuthorization && /^Bearer (\S+)$/.exec(value)) || []
  if (token) return { type: 'HTTP_BEARER', data: { token } }
  const [, encoded = ''] = (isAuthorization && /^Basic ([\w+/=]+)$/.exec(value)) || []
  const [username = '', ...password] = Buffer.from(encoded, 'base64').toString().split(':')
  const pair = { username, password: password.join(':') }
  if (username !== '' && password.length > 0 && encodePair(pair) === encoded)
    return { type: 'HTTP_BASIC', data: pair }
  return { type: 'HTTP_HEADER', data: { name, value } }
}

function encodePair({ username, password }: { username: string; password: string }): string {
  return Buffer.from(`${username}:${password}`).toString('base64')
}
