import { createHash, createPublicKey, type KeyObject, verify } from 'node:crypto'
import type { ExportHeader } from './lines.ts'

/** A public key of an export. `trusted`: the caller has noted it, or has noted none at all. */
export type ExportKey = { keyId: string; fingerprint: string; trusted: boolean }

/** The kind of key that has signed: a trusted one, another one that the export brings, or none that is known. */
export type Signer = 'trusted' | 'other' | 'nobody'

export type ExportTrust = {
  keys: ExportKey[]
  judge: (keyId: string, text: string, signature: string) => Signer
}

/**
 * The keys in a text of PEM blocks (SPKI). Throws an Error for a text without keys, and for a key that is not Ed25519.
 */
export function readPemKeys(text: string): KeyObject[] {
  const blocks = text.match(/-----BEGIN PUBLIC KEY-----[\s\S]*?-----END PUBLIC KEY-----/g) ?? []
  const keys = blocks.map(readPem)
  if (keys.length === 0 || keys.some((key) => key === undefined))
    throw new Error('there must be one or more Ed25519 public keys in it, as PEM')
  return keys as KeyObject[]
}

/** What verifies the signatures of an export: the keys that the caller has `noted`, else those that it brings. */
export function makeTrust(header: ExportHeader, noted: KeyObject[] | undefined): ExportTrust {
  const known = noted?.map(fingerprintOf)
  const brought = new Map<string, { key: KeyObject; fingerprint: string; trusted: boolean }>()
  for (const { keyId, publicKey } of header.keys) {
    const key = readPem(publicKey)
    if (!key || brought.has(keyId)) continue
    const fingerprint = fingerprintOf(key)
    brought.set(keyId, { key, fingerprint, trusted: known?.includes(fingerprint) ?? true })
  }
  return {
    keys: [...brought].map(([keyId, { fingerprint, trusted }]) => ({ keyId, fingerprint, trusted })),
    judge(keyId, text, signature) {
      const [message, bytes] = [Buffer.from(text), Buffer.from(signature, 'base64')]
      if (noted?.some((key) => verify(null, message, key, bytes))) return 'trusted'
      const own = brought.get(keyId)
      if (!own || !verify(null, message, own.key, bytes)) return 'nobody'
      return own.trusted ? 'trusted' : 'other'
    },
  }
}

function readPem(text: string): KeyObject | undefined {
  try {
    const key = createPublicKey(text)
    return key.asymmetricKeyType === 'ed25519' ? key : undefined
  } catch {
    return undefined
  }
}

/** SHA-256 of a key in DER (SPKI), hexadecimal. */
function fingerprintOf(key: KeyObject): string {
  return createHash('sha256')
    .update(key.export({ format: 'der', type: 'spki' }))
    .digest('hex')
}
