import type { OpenedCredential } from '../../../db/credentials/open.ts'
import { isRenewable } from '../oauth/grants.ts'
import { renewAccessToken, type TokenTools } from '../oauth/token.ts'

/** OAUTH2: renews the access token, if that is possible. */
export async function checkOAuth(credential: OpenedCredential, tools: TokenTools): Promise<string> {
  const { accessToken, tokenUrl, refreshToken } = credential.data
  if (accessToken === undefined && refreshToken === undefined)
    throw new Error('It is not connected: it has no access token yet')
  if (!isRenewable(credential)) {
    const lacking = tokenUrl === undefined ? 'tokenUrl' : 'refresh token'
    return `It has what is needed. Without a ${lacking} nothing can be renewed, so only this was checked`
  }
  const { expiresAt } = await renewAccessToken(tools, credential)
  return `The access token was renewed${describeEnd(expiresAt)}`
}

/** GOOGLE_SERVICE_ACCOUNT: gets an access token. */
export async function checkServiceAccount(credential: OpenedCredential, tools: TokenTools): Promise<string> {
  const { expiresAt } = await renewAccessToken(tools, credential)
  return `${credential.data.clientEmail} got an access token${describeEnd(expiresAt)}`
}

function describeEnd(expiresAt: Date | null): string {
  return expiresAt ? `; it ends at ${expiresAt.toISOString()}` : ''
}
