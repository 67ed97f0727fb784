import { createHash } from 'node:crypto'
import { type JWTHeaderParameters, type JWTPayload, jwtVerify, SignJWT } from 'jose'
import { LRUCache } from 'lru-cache'
import { type Keys, purposeKey } from '../../db/seal.ts'

/** The purpose of a signed text. Each has a key of its own, so that none passes for another. */
export type Purpose = 'session' | 'device' | 'visitor' | 'widget page' | 'form'

/** The content of a signed text: its subject, and further claims. */
export type Signed = { purpose: Purpose; subject: string; claims: JWTPayload; expiresAt: Date }

const ISSUER = 'perdure'
const AUDIENCE = 'perdure-api'

const MAX_CHECKED = 10_000

/** The claims of texts whose signature was found right, by a digest of purpose and text: of each set of keys. */
const checkedOf = new WeakMap<Keys, LRUCache<string, JWTPayload>>()

/**
 * The claims that this service has signed for the purpose; null if the text is not valid, or has expired. A signature is
 * checked once, in other threads; from then on it is known until the text expires. The claims must not be changed.
 */
export async function openSigned(keys: Keys, text: string, purpose: Purpose): Promise<JWTPayload | null> {
  const checked = checkedOf.get(keys) ?? new LRUCache<string, JWTPayload>({ max: MAX_CHECKED })
  checkedOf.set(keys, checked)
  const digest = createHash('sha256').update(`${purpose}\n${text}`).digest('base64')
  const known = checked.get(digest)
  if (known && Date.now() < known.exp! * 1_000) return known
  const claims = await checkSigned(keys, text, purpose)
  if (claims) checked.set(digest, claims)
  return claims
}

async function checkSigned(keys: Keys, text: string, purpose: Purpose): Promise<JWTPayload | null> {
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
