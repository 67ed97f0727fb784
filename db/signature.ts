import { createHmac, timingSafeEqual } from 'node:crypto'
import { Fault } from './fault.ts'

/** How a webhook's caller signs: HMAC of the body, or of `timestamp.body` where there is a timestamp. */
export type Signature = {
  header: string
  secret: string
  algorithm?: 'sha256' | 'sha1' | 'sha512'
  encoding?: 'hex' | 'base64'
  /** Before the signature, in the header: `sha256=`, `v1=`. */
  prefix?: string
  /** Holds Unix seconds; where it is `header` itself, its part `t=` does. */
  timestampHeader?: string
  toleranceSeconds?: number
}

const TOLERANCE_SECONDS = 300

/**
 * Throws UNAUTHENTICATED unless one of the signatures in the header (several stand with commas between: secrets are
 * changed that way) is the body's, and the timestamp, where one is asked for, is of now. Compares in constant time.
 */
export function checkSignature(
  signature: Signature,
  body: Uint8Array,
  readHeader: (name: string) => string | undefined,
): void {
  const { header, secret, algorithm = 'sha256', encoding = 'hex', prefix = '', timestampHeader } = signature
  const parts = (readHeader(header) ?? '').split(',').map((part) => part.trim())
  const hmac = createHmac(algorithm, secret)
  if (timestampHeader !== undefined) {
    const own = timestampHeader.toLowerCase() === header.toLowerCase()
    const sent = own
      ? parts.find((part) => part.startsWith('t='))?.slice(2)
      : readHeader(timestampHeader)?.trim()
    const seconds = /^\d{1,12}$/.test(sent ?? '') ? Number(sent) : Number.NaN
    const away = Math.abs(Date.now() / 1_000 - seconds)
    if (!(away <= (signature.toleranceSeconds ?? TOLERANCE_SECONDS))) {
      throw new Fault(
        'UNAUTHENTICATED',
        `The timestamp in the header ${timestampHeader} is missing or not of now`,
      )
    }
    hmac.update(`${sent}.`)
  }
  // As texts: of one that goes on after the signature, decoding would drop the rest.
  const due = Buffer.from(normalize(hmac.update(body).digest(encoding), encoding))
  const given = parts
    .filter((part) => part.startsWith(prefix))
    .map((part) => Buffer.from(normalize(part.slice(prefix.length), encoding)))
  // All of them are compared, so that the time tells nothing.
  const right = given.filter((bytes) => bytes.length === due.length && timingSafeEqual(bytes, due))
  if (right.length === 0) {
    throw new Fault('UNAUTHENTICATED', `The header ${header} must hold the signature of the body`)
  }
}

/** Hex in either case; base64 in either alphabet, padded or not. */
function normalize(text: string, encoding: 'hex' | 'base64'): string {
  if (encoding === 'hex') return text.toLowerCase()
  return text
    .replace(/={0,2}$/, '')
    .replaceAll('-', '+')
    .replaceAll('_', '/')
}
