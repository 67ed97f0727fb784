import type { Kit } from '../kit.ts'

/** The part of Node's `crypto` that computes: hashes, HMACs, random values. */
export function defineCrypto(kit: Kit): void {
  /** A text, or bytes, with one character for each byte. */
  const toBinary = (data: unknown, encoding: unknown = 'utf8'): string => {
    if (typeof data === 'string') return kit.host('encode', { text: data, encoding }) as string
    if (!ArrayBuffer.isView(data)) throw new TypeError('data must be a string or bytes')
    const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
    let text = ''
    for (let i = 0; i < bytes.length; i += 1) text += String.fromCharCode(bytes[i]!)
    return text
  }
  const toBytes = (text: string): Uint8Array => {
    const bytes = new Uint8Array(text.length)
    for (let i = 0; i < text.length; i += 1) bytes[i] = text.charCodeAt(i)
    return bytes
  }
  const createDigest = (algorithm: unknown, key: string | undefined) => {
    let data = ''
    let isOver = false
    const digest = {
      update(more: unknown, encoding?: unknown) {
        if (isOver) throw new Error('the digest has been read already')
        data += toBinary(more, encoding)
        return digest
      },
      digest(encoding?: unknown) {
        if (isOver) throw new Error('the digest has been read already')
        isOver = true
        const asked = { algorithm: String(algorithm), data, encoding: encoding ?? 'latin1' }
        const found = kit.host(
          key === undefined ? 'hash' : 'hmac',
          key === undefined ? asked : { ...asked, key },
        )
        return encoding === undefined ? toBytes(found as string) : found
      },
    }
    return digest
  }
  const random = (size: number) => toBytes(kit.host('random', size) as string)
  kit.define('crypto', {
    createHash: (algorithm: unknown) => createDigest(algorithm, undefined),
    createHmac: (algorithm: unknown, key: unknown) => createDigest(algorithm, toBinary(key)),
    randomUUID: () => kit.host('uuid', null),
    randomBytes: (size: unknown) => {
      const count = Number(size)
      if (!(count >= 0 && count <= 65_536)) throw new RangeError('size must be from 0 to 65536')
      return random(count)
    },
    getRandomValues(array: Uint8Array) {
      if (!ArrayBuffer.isView(array) || array.byteLength > 65_536) {
        throw new TypeError('takes an array of bytes, of up to 65536')
      }
      new Uint8Array(array.buffer, array.byteOffset, array.byteLength).set(random(array.byteLength))
      return array
    },
  })
}
