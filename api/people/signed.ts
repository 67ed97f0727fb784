import { type JWTHeaderParameters, type JWTPayload, jwtVerify, SignJWT } from 'jose'
import { type Keys, purposeKey } from '../../db/seal.ts'

/** The purpose of a signed text. Each has a key of its own, so that none passes for another. */
export type Purpose = 'session' | 'device' | 'visitor' | 'widget page'

/** The content of a signed text: its subject, and further claims. */
export type Signed = { purpose: Purpose; subject: string; claims: JWTPayload; expiresAt: Date }

const ISSUER = 'perdure'
const AUDIENCE = 'perdure-api'

/** The claims that this service has signed for the purpose; null if the text is not valid, or has expired. */
export async function openSigned(keys: Keys, text: string, purpose: Purpose): Promise<JWTPayload | null> {
  try {
    const findKey = (header: JWTHeaderParameters) => purposeKey(keys, purpose, header.kid ?? '')
    const { payload } = await jwtVerify(text, findKey, {
      algorithms: ['HS256'],
      issuer: ISSUER,
      audience: AUDIENCE,
      typ: 'JWT',
      requiredClaims: ['exp', 'iat', 'sub'],
    })
    return payload
  } catch {
    return null
  }
}

/** Signs claims, as a JWT. */
export function makeSigned(keys: Keys, { purpose, subject, claims, expiresAt }: Signed): Promise<string> {
  return new SignJWT(claims)
    .setProtectedHeader({ alg: 'HS256', typ: 'JWT', kid: keys.current })
    .setIssuer(ISSUER)
    .setAudience(AUDIENCE)
    .setSubject(subject)
    .setIssuedAt()
    .setExpirationTime(expiresAt)
    .sign(purposeKey(keys, purpose))
}
