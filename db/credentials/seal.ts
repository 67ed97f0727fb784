import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { type Keys, readSeal, seal, unseal } from '../seal.ts'
import type { CredentialType } from './types.ts'

/** The keys of a credential's data and their values, as the API has taken them. */
export type CredentialData = Record<string, string | number | boolean | string[]>

/** A credential as it is stored: `sealed` under a key of its own, which is `wrapped` with a key of the service. */
export type SealedCredential = { sealed: Buffer; wrapped: Buffer; keyId: string }

/** Whose secret it is. A sealed one cannot be put in the place of another. */
export type SecretPlace = { teamId: string; id: string; type: CredentialType }

const PURPOSE = 'credential'
const VERSION = 1
const IV_BYTES = 12
const TAG_BYTES = 16

function nameSecret({ teamId, id, type }: SecretPlace): string {
  return `${VERSION}|${teamId}|${id}|${type}`
}

/** Seals the data under a new key of its own, and that key under the service's current one. */
export function sealCredential(keys: Keys, place: SecretPlace, data: CredentialData): SealedCredential {
  const own = randomBytes(32)
  const iv = randomBytes(IV_BYTES)
  const cipher = createCipheriv('aes-256-gcm', own, iv, { authTagLength: TAG_BYTES })
  cipher.setAAD(Buffer.from(nameSecret(place)))
  const body = [cipher.update(JSON.stringify(data), 'utf8'), cipher.final()]
  const sealed = Buffer.concat([Buffer.of(VERSION), iv, cipher.getAuthTag(), ...body])
  const wrapped = seal(keys, PURPOSE, nameSecret(place), own)
  own.fill(0)
  return { sealed, wrapped, keyId: keys.current }
}

/** Opens the data. Throws if it was sealed for another place, with another key, or was changed. */
export function openCredential(
  keys: Keys,
  place: SecretPlace,
  { sealed, wrapped }: Pick<SealedCredential, 'sealed' | 'wrapped'>,
): CredentialData {
  const own = unseal(keys, PURPOSE, nameSecret(place), wrapped)
  if (sealed[0] !== VERSION) throw new Error('not a sealed credential')
  const iv = sealed.subarray(1, 1 + IV_BYTES)
  const start = 1 + IV_BYTES + TAG_BYTES
  const decipher = createDecipheriv('aes-256-gcm', own, iv, { authTagLength: TAG_BYTES })
  decipher.setAAD(Buffer.from(nameSecret(place)))
  decipher.setAuthTag(sealed.subarray(1 + IV_BYTES, start))
  const plain = Buffer.concat([decipher.update(sealed.subarray(start)), decipher.final()])
  own.fill(0)
  return JSON.parse(plain.toString())
}

/** The same secret with its key wrapped by the service's current key; undefined if it is already. */
export function rewrapCredential(
  keys: Keys,
  place: SecretPlace,
  wrapped: Buffer,
): Pick<SealedCredential, 'wrapped' | 'keyId'> | undefined {
  if (readSeal(wrapped)?.keyId === keys.current) return undefined
  const own = unseal(keys, PURPOSE, nameSecret(place), wrapped)
  return { wrapped: seal(keys, PURPOSE, nameSecret(place), own), keyId: keys.current }
}
