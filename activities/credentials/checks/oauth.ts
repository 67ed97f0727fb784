import type { Grant } from '../../../db/credentials/oauth.ts'
import type { OpenedCredential } from '../../../db/credentials/open.ts'
import { listAllowedHosts } from '../authorize.ts'
import { isRenewable } from '../oauth/grants.ts'
import { renewAccessToken } from '../oauth/token.ts'
import { askWith } from './ask.ts'
import type { CheckTools, CredentialCheck } from './check.ts'

/** OAUTH2: renews the access token, if that is possible, and asks for the `testUrl` with it. */
export const checkOAuth: CredentialCheck = async (credential, tools) => {
  const { accessToken, tokenUrl, refreshToken } = credential.data
  if (accessToken === undefined && refreshToken === undefined)
    throw new Error('It is not connected: it has no access token yet')
  if (isRenewable(credential)) {
    const grant = await renewAccessToken(tools, credential)
    return `The access token was renewed${describeEnd(grant)}${await tryToken(credential, tools, grant.accessToken)}`
  }
  const lacking = tokenUrl === undefined ? 'tokenUrl' : 'refresh token'
  const said = `Its data is complete. Without a ${lacking} its token is never renewed`
  const tried = await tryToken(credential, tools, accessToken)
  return tried === '' ? `${said}, and nothing was tried with it` : `${said}${tried}`
}

/** GOOGLE_SERVICE_ACCOUNT: gets an access token, and asks for the `testUrl` with it. */
export const checkServiceAccount: CredentialCheck = async (credential, tools) => {
  const grant = await renewAccessToken(tools, credential)
  const tried = await tryToken(credential, tools, grant.accessToken)
  return `${credential.data.clientEmail} got an access token${describeEnd(grant)}${tried}`
}

function describeEnd({ expiresAt }: Grant): string {
  return expiresAt ? `; it ends at ${expiresAt.toISOString()}` : ''
}

async function tryToken(credential: OpenedCredential, tools: CheckTools, token: unknown): Promise<string> {
  const { testUrl } = credential.data
  if (typeof testUrl !== 'string' || typeof token !== 'string') return ''
  tools.credentials.tell(token)
  const allowedHosts = listAllowedHosts(credential)
  const data = { token, ...(allowedHosts ? { allowedHosts } : {}) }
  const headers = { accept: '*/*' }
  await askWith({ ...credential, type: 'HTTP_BEARER', data }, tools, { url: testUrl, headers })
  return `. ${new URL(testUrl).host} takes it`
}
