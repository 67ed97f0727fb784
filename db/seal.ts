import {
  createCipheriv,
  createDecipheriv,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomFillSync,
} from 'node:crypto'

/** Master keys of 32 bytes by id (1 to 8 characters). The key `current` seals; any of them can open. */
export type Keys = { current: string; byId: ReadonlyMap<string, Buffer> }

/** The usual version of an envelope. Others have the same form, and cannot be taken for it. */
export const PLAIN = 1
/** How long the id of a key is in the head of an envelope, filled up with NUL; it comes after the version's byte. */
export const KEY_ID_BYTES = 8
const IV_BYTES = 12
const TAG_BYTES = 16
const HEAD = 1 + KEY_ID_BYTES + IV_BYTES + TAG_BYTES

const derived = new WeakMap<Keys, Map<string, KeyObject>>()

/** Derives a key for one purpose from a master key (HKDF-SHA256), so that no two purposes share a key. */
export function purposeKey(keys: Keys, purpose: string, id = keys.current): KeyObject {
  const known = derived.get(keys) ?? new Map<string, KeyObject>()
  derived.set(keys, known)
  let key = known.get(`${id}\0${purpose}`)
  if (!key) {
    const master = keys.byId.get(id)
    if (!master) throw new Error(`unknown key id ${id}`)
    key = createSecretKey(Buffer.from(hkdfSync('sha256', master, 'perdure', purpose, 32)))
    known.set(`${id}\0${purpose}`, key)
  }
  return key
}

// Random bytes are drawn for many nonces at once, which is several times as fast. A thread has its own, in its memory only.
const nonces = Buffer.alloc(IV_BYTES * 512)
let drawn = nonces.length

/** Random bytes that were never used before, to be used before the next are drawn. */
function drawNonce(): Buffer {
  if (drawn === nonces.length) {
    randomFillSync(nonces)
    drawn = 0
  }
  const nonce = nonces.subarray(drawn, drawn + IV_BYTES)
  drawn += IV_BYTES
  return nonce
}

/**
 * Encrypts with AES-256-GCM and the purpose's key. Only `unseal` with the same `context` and `version` can
 * decrypt it.
 */
export function seal(
  keys: Keys,
  purpose: string,
  context: string,
  plain: Uint8Array,
  version = PLAIN,
): Buffer {
  const head = Buffer.alloc(1 + KEY_ID_BYTES)
  head[0] = version
  head.write(keys.current, 1, 'ascii')
  const iv = drawNonce()
  const cipher = createCipheriv('aes-256-gcm', purposeKey(keys, purpose), iv, { authTagLength: TAG_BYTES })
  cipher.setAAD(Buffer.concat([head, Buffer.from(context)]))
  const body = [cipher.update(plain), cipher.final()]
  return Buffer.concat([head, iv, cipher.getAuthTag(), ...body])
}

/**
 * Decrypts what `seal` returned. Throws if the key, context or version differs, or if any bit was changed.
 */
export function unseal(
  keys: Keys,
  purpose: string,
  context: string,
  sealed: Uint8Array,
  version = PLAIN,
): Buffer {
  const bytes = Buffer.from(sealed.buffer, sealed.byteOffset, sealed.byteLength)
  const made = readSeal(bytes)
  if (made?.version !== version) throw new Error('not a sealed value')
  const head = bytes.subarray(0, 1 + KEY_ID_BYTES)
  const iv = bytes.subarray(head.length, head.length + IV_BYTES)
  const decipher = createDecipheriv('aes-256-gcm', purposeKey(keys, purpose, made.keyId), iv, {
    authTagLength: TAG_BYTES,
  })
  decipher.setAAD(Buffer.concat([head, Buffer.from(context)]))
  decipher.setAuthTag(bytes.subarray(HEAD - TAG_BYTES, HEAD))
  return Buffer.concat([decipher.update(bytes.subarray(HEAD)), decipher.final()])
}

/** The version and the key that an envelope names, which only `unseal` proves; undefined if it is too short for one. */
export function readSeal(sealed: Uint8Array): { version: number; keyId: string } | undefined {
  if (sealed.length < HEAD) return undefined
  const keyId = Buffer.from(sealed.subarray(1, 1 + KEY_ID_BYTES))
    .toString('ascii')
    .replace(/\0+$/, '')
  return { version: sealed[0]!, keyId }
}
