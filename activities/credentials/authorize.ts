import { readCustomPairs } from '../../db/credentials/custom.ts'
import type { OpenedCredential } from '../../db/credentials/open.ts'
import { type CredentialType, credentialKind } from '../../db/credentials/types.ts'
import type { Authorization, Authorize } from '../http/authority.ts'
import type { HttpRequest } from '../http/http.ts'
import { NodeFailure } from '../nodes/kit/failure.ts'
import { signForAws } from './aws.ts'
import type { Credentials } from './credentials.ts'

/** What a request needs to be sent with a credential. */
export type HttpPass = Pick<HttpRequest, 'authorize' | 'renew' | 'allowedHosts'>

/** Is told of secrets that are made of others. */
type Teller = Pick<Credentials, 'tell'>

/** How a type of credential is shown to a server. It may tell `credentials` of secrets that it makes of others. */
type Pass = (data: Record<string, string>, credentials: Teller) => Authorize

const bearer =
  (key: string): Pass =>
  (data) =>
  () => ({ headers: { authorization: `Bearer ${data[key]}` } })

function basic(login: string, credentials: Teller): Authorize {
  const pair = Buffer.from(login).toString('base64')
  credentials.tell(pair)
  return () => ({ headers: { authorization: `Basic ${pair}` } })
}

/** Each type that is a pass for HTTP by nothing but its data. */
const PASSES: Partial<Record<CredentialType, Pass>> = {
  HTTP_BASIC: ({ username, password }, credentials) => basic(`${username}:${password}`, credentials),
  HTTP_BEARER: bearer('token'),
  HTTP_HEADER:
    ({ name = '', value = '' }) =>
    () => ({ headers: { [name]: value } }),
  HTTP_CUSTOM: (data) => {
    const added = readCustomPairs(data)
    return () => added
  },
  HTTP_QUERY:
    ({ name = '', value = '' }) =>
    () => ({ query: { [name]: value } }),
  OPENAI: ({ apiKey, organization }) => {
    const headers: Record<string, string> = { authorization: `Bearer ${apiKey}` }
    if (organization) headers['openai-organization'] = organization
    return () => ({ headers })
  },
  OPENAI_COMPATIBLE: ({ apiKey }) => {
    const added: Authorization = apiKey ? { headers: { authorization: `Bearer ${apiKey}` } } : {}
    return () => added
  },
  ANTHROPIC:
    ({ apiKey = '' }) =>
    ({ headers }) => ({ headers: { 'x-api-key': apiKey, ...unlessSet(headers, ANTHROPIC_VERSION) } }),
  AZURE_OPENAI:
    ({ apiKey = '', apiVersion }) =>
    ({ url }) => {
      const isMissing = apiVersion !== undefined && !url.searchParams.has('api-version')
      return {
        headers: { 'api-key': apiKey },
        ...(isMissing ? { query: { 'api-version': apiVersion } } : {}),
      }
    },
  GOOGLE_AI:
    ({ apiKey = '' }) =>
    () => ({ headers: { 'x-goog-api-key': apiKey } }),
  SLACK: bearer('botToken'),
  DISCORD:
    ({ botToken }) =>
    () => ({ headers: { authorization: `Bot ${botToken}` } }),
  MATTERMOST: bearer('accessToken'),
  WHATSAPP: bearer('accessToken'),
  TWILIO: ({ accountSid, apiKeySid, authToken }, credentials) =>
    basic(`${apiKeySid ?? accountSid}:${authToken}`, credentials),
  NOTION:
    ({ apiKey }) =>
    ({ headers }) => ({
      headers: { authorization: `Bearer ${apiKey}`, ...unlessSet(headers, NOTION_VERSION) },
    }),
  AIRTABLE: bearer('apiKey'),
  AWS: signForAws,
}

const ANTHROPIC_VERSION = ['anthropic-version', '2023-06-01'] as const
const NOTION_VERSION = ['notion-version', '2022-06-28'] as const

function unlessSet(headers: Record<string, string>, [name, value]: readonly [string, string]) {
  return headers[name] === undefined ? { [name]: value } : {}
}

/**
 * The pass with which a request may use an open credential, and the hosts that it may go to: `credentials` is the
 * call's. Throws a NodeFailure: InvalidConfig for a type that HTTP cannot use, and the failures of findAccessToken.
 */
export async function authorizeWith(
  opened: OpenedCredential,
  credentials: Teller & Partial<Pick<Credentials, 'findToken'>>,
): Promise<HttpPass> {
  const { findToken } = credentials
  if (findToken && BY_TOKEN.has(opened.type))
    return restrict(opened, await authorizeByToken(opened, findToken))
  const pass = PASSES[opened.type]
  if (!pass)
    throw new NodeFailure(`The credential ${opened.name} is of the type ${opened.type}: none for HTTP`, {
      type: 'InvalidConfig',
    })
  return restrict(opened, { authorize: pass(opened.data as Record<string, string>, credentials) })
}

/** The types whose access token is got from a token server. */
const BY_TOKEN = new Set<CredentialType>(['OAUTH2', 'GOOGLE_SERVICE_ACCOUNT'])

async function authorizeByToken(
  opened: OpenedCredential,
  findToken: Credentials['findToken'],
): Promise<HttpPass> {
  let token = await findToken(opened)
  return {
    authorize: () => ({ headers: { authorization: `Bearer ${token}` } }),
    async renew() {
      const next = await findToken(opened, token ?? undefined)
      token = next ?? token
      return next !== null
    },
  }
}

function restrict(opened: OpenedCredential, pass: HttpPass): HttpPass {
  const allowedHosts = listAllowedHosts(opened)
  return { ...pass, ...(allowedHosts ? { allowedHosts } : {}) }
}

/**
 * Where the requests of a credential may go: its own `allowedHosts`, the host of its own URL, or the vendor's hosts, by
 * TLS. Undefined: anywhere.
 */
export function listAllowedHosts({
  type,
  data,
}: Pick<OpenedCredential, 'type' | 'data'>): string[] | undefined {
  const { allowedHosts, baseUrl, endpoint, webhookUrl } = data
  if (Array.isArray(allowedHosts)) return allowedHosts
  for (const address of [baseUrl, endpoint, webhookUrl]) {
    const url = typeof address === 'string' ? URL.parse(address) : null
    if (url) return [`${url.hostname}:${url.port || (url.protocol === 'http:' ? 80 : 443)}`]
  }
  return credentialKind(type).hosts?.map((host) => `${host}:443`)
}
