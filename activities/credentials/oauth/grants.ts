import { createPrivateKey, type KeyObject } from 'node:crypto'
import { SignJWT } from 'jose'
import type { Grant } from '../../../db/credentials/oauth.ts'
import type { CredentialData } from '../../../db/credentials/seal.ts'
import type { TokenRequest } from './tokenserver.ts'

const GOOGLE_TOKENS = 'https://oauth2.googleapis.com/token'
const ASSERTION_S = 3_600

/** How far the clock of a token server may be behind. */
const SKEW_S = 30

/** Whether there is anything that a token could be got with, without a person. */
export function isRenewable({ type, data }: Pick<Grant, 'type' | 'data'>): boolean {
  return type === 'GOOGLE_SERVICE_ACCOUNT' || (data.tokenUrl !== undefined && data.refreshToken !== undefined)
}

/** The request for the tokens of a grant that is renewable; undefined if its private key cannot be read. */
export async function writeRenewal({ type, data }: Grant): Promise<TokenRequest | undefined> {
  if (type === 'GOOGLE_SERVICE_ACCOUNT') return writeAssertion(data)
  const { refreshToken } = data as Record<string, string>
  return { ...writeClient(data), form: { grant_type: 'refresh_token', refresh_token: refreshToken! } }
}

/** The request that exchanges the code with which a person has come back from the vendor's page. */
export function writeExchange(
  data: CredentialData,
  { code, verifier, redirectUri }: { code: string; verifier: string; redirectUri: string },
): TokenRequest {
  const form = {
    grant_type: 'authorization_code',
    ...{ code, redirect_uri: redirectUri, code_verifier: verifier },
  }
  return { ...writeClient(data), form }
}

function writeClient(data: CredentialData): Pick<TokenRequest, 'url' | 'client'> & { client: object } {
  const { tokenUrl, clientId, clientSecret, authentication = 'header' } = data as Record<string, string>
  const how = authentication === 'body' ? 'body' : 'header'
  return { url: tokenUrl!, client: { id: clientId!, secret: clientSecret!, authentication: how } }
}

/** A JWT that the service account has signed, for a token (RFC 7523). */
async function writeAssertion(data: CredentialData): Promise<TokenRequest | undefined> {
  const { clientEmail, privateKey, scopes, subject, tokenUrl = GOOGLE_TOKENS } = data
  const key = readPrivateKey(String(privateKey))
  if (!key) return undefined
  const url = String(tokenUrl)
  const issuedAt = Math.floor(Date.now() / 1_000) - SKEW_S
  const assertion = await new SignJWT({ scope: (scopes as string[]).join(' ') })
    .setProtectedHeader({ alg: 'RS256', typ: 'JWT' })
    .setIssuer(String(clientEmail))
    .setSubject(String(subject ?? clientEmail))
    .setAudience(url)
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + ASSERTION_S)
    .sign(key)
  return { url, form: { grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion } }
}

/** An RSA key in PEM, also with \n spelled out as in Google's file; undefined if the text is not such a key. */
function readPrivateKey(text: string): KeyObject | undefined {
  try {
    const key = createPrivateKey(text.replaceAll('\\n', '\n'))
    return key.asymmetricKeyType === 'rsa' ? key : undefined
  } catch {
    return undefined
  }
}
