import { createHmac, timingSafeEqual } from 'node:crypto'
import { Fault } from '../../fault.ts'

/** How a webhook's caller signs: by an HMAC of the body, or of `timestamp.body` if there is a timestamp. */
export type Signature = {
  header: string
  secret: string
  algorithm?: 'sha256' | 'sha1' | 'sha512'
  encoding?: 'hex' | 'base64'
  /** What precedes the signature in the header: `sha256=`, `v1=`. */
  prefix?: string
  /** The header that holds the time in Unix seconds; if it is `header` itself, its part `t=` does. */
  timestampHeader?: string
  toleranceSeconds?: number
  /** The header with the id of a delivery, which is the same when the sender repeats it. */
  deliveryHeader?: string
}

/** What a repeated delivery has in common with the first one; nothing if it cannot be told from an equal one. */
export type Delivery = { id?: string | undefined; stamp?: string | undefined }

const TOLERANCE_SECONDS = 300

/**
 * Throws UNAUTHENTICATED unless the header holds the body's signature and the timestamp, if one is required,
 * is at most `toleranceSeconds` away from now. The header may hold several signatures with commas between
 * them, as senders do while they change the secret. Compares in constant time. Returns what names this
 * delivery among all of the webhook: the `id` that its sender gives it, which is not signed, and the `stamp` that
 * the signature and its time are.
 */
export function beginSignature(
  signature: Signature,
  readHeader: (name: string) => string | undefined,
): { update(piece: Uint8Array): void; check(): Delivery } {
  const { header, secret, algorithm = 'sha256', encoding = 'hex', prefix = '' } = signature
  const { timestampHeader, deliveryHeader } = signature
  const parts = (readHeader(header) ?? '').split(',').map((part) => part.trim())
  const hmac = createHmac(algorithm, secret)
  if (timestampHeader !== undefined) {
    const isSameHeader = timestampHeader.toLowerCase() === header.toLowerCase()
    const sent = isSameHeader
      ? parts.find((part) => part.startsWith('t='))?.slice(2)
      : readHeader(timestampHeader)?.trim()
    const seconds = /^\d{1,12}$/.test(sent ?? '') ? Number(sent) : Number.NaN
    const away = Math.abs(Date.now() / 1_000 - seconds)
    if (!(away <= (signature.toleranceSeconds ?? TOLERANCE_SECONDS))) {
      throw new Fault(
        'UNAUTHENTICATED',
        `The timestamp in the header ${timestampHeader} is missing, or too far from the current time`,
      )
    }
    hmac.update(`${sent}.`)
  }
  const check = (): Delivery => {
    // Compared as strings: decoding would drop whatever follows a valid signature, and so accept it.
    const expected = Buffer.from(normalize(hmac.digest(encoding), encoding))
    const given = parts
      .filter((part) => part.startsWith(prefix))
      .map((part) => Buffer.from(normalize(part.slice(prefix.length), encoding)))
    // All signatures are compared, so that the time taken does not show which one matched.
    const matching = given.filter(
      (bytes) => bytes.length === expected.length && timingSafeEqual(bytes, expected),
    )
    if (matching.length === 0) {
      throw new Fault('UNAUTHENTICATED', `The header ${header} must hold the signature of the body`)
    }
    const stamp = timestampHeader === undefined ? undefined : expected.toString()
    if (deliveryHeader === undefined) return { stamp }
    const id = readHeader(deliveryHeader)?.trim()
    if (id) return { id, stamp }
    throw new Fault('UNAUTHENTICATED', `The header ${deliveryHeader} must hold the id of the delivery`)
  }
  return { update: (piece) => void hmac.update(piece), check }
}

/** Accepts hex in either case, and base64 in either alphabet, padded or not. */
function normalize(text: string, encoding: 'hex' | 'base64'): string {
  if (encoding === 'hex') return text.toLowerCase()
  return text
    .replace(/={0,2}$/, '')
    .replaceAll('-', '+')
    .replaceAll('_', '/')
}
