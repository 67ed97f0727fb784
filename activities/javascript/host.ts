import { createHash, createHmac, randomBytes, randomUUID } from 'node:crypto'
import { LOCALE_CALLS } from './locale.ts'

/**
 * What a sandbox can ask of the process that it is in. Only JSON goes in and out, and nothing here reaches
 * beyond its arguments. Each must be fast: a script is not interrupted while it waits for its host.
 */
export const HOST = {
  ...LOCALE_CALLS,
  hash: ({ algorithm, data, encoding }: { algorithm: string; data: string; encoding: Encoding }) =>
    createHash(readAlgorithm(algorithm)).update(toBytes(data)).digest(readDigest(encoding)),
  hmac: (asked: { algorithm: string; key: string; data: string; encoding: Encoding }) =>
    createHmac(readAlgorithm(asked.algorithm), toBytes(asked.key))
      .update(toBytes(asked.data))
      .digest(readDigest(asked.encoding)),
  uuid: () => randomUUID(),
  random: (size: number) => randomBytes(Math.min(65_536, Math.max(0, Math.trunc(size)))).toString('latin1'),
  /** UTF-8 and other encodings of a text, as a text of one character for each byte, and back. */
  encode: ({ text, encoding }: { text: string; encoding: Encoding }) =>
    Buffer.from(text, readEncoding(encoding)).toString('latin1'),
  decode: ({ bytes, encoding }: { bytes: string; encoding: Encoding }) =>
    toBytes(bytes).toString(readEncoding(encoding)),
  /** The parts of a URL, after one of them was changed if `part` says so; null if it is not a URL. */
  url: ({ href, base, part, value }: { href: string; base?: string; part?: UrlPart; value?: string }) => {
    if (!URL.canParse(href, base)) return null
    const url = new URL(href, base)
    if (part !== undefined && URL_PARTS.includes(part) && part !== 'origin') url[part] = String(value)
    return Object.fromEntries(URL_PARTS.map((name) => [name, url[name]]))
  },
  readQuery: (text: string) => [...new URLSearchParams(text)],
  writeQuery: (pairs: [string, string][]) => new URLSearchParams(pairs).toString(),
} satisfies Record<string, (argument: never) => unknown>

export type HostCall = keyof typeof HOST | 'console'

const URL_PARTS = [
  'href',
  'origin',
  'protocol',
  'username',
  'password',
  'host',
  'hostname',
  'port',
  'pathname',
  'search',
  'hash',
] as const
type UrlPart = (typeof URL_PARTS)[number]

const ENCODINGS = ['utf8', 'hex', 'base64', 'base64url', 'latin1', 'utf16le'] as const
type Encoding = (typeof ENCODINGS)[number]

function readEncoding(encoding: string): Encoding {
  const lower = String(encoding).toLowerCase()
  const name = { 'utf-8': 'utf8', binary: 'latin1', ascii: 'latin1', utf16: 'utf16le' }[lower] ?? lower
  if ((ENCODINGS as readonly string[]).includes(name)) return name as Encoding
  throw new Error(
    `there is no encoding "${String(encoding).slice(0, 50)}"; there are ${ENCODINGS.join(', ')}`,
  )
}

function readDigest(encoding: string): 'hex' | 'base64' | 'base64url' | 'binary' {
  const name = readEncoding(encoding)
  if (name === 'latin1') return 'binary'
  if (name !== 'utf8' && name !== 'utf16le') return name
  throw new Error(`a digest cannot be written as ${name}; use hex, base64 or base64url`)
}

const ALGORITHMS = ['md5', 'sha1', 'sha224', 'sha256', 'sha384', 'sha512']

function readAlgorithm(algorithm: string): string {
  const name = String(algorithm).toLowerCase().replace('sha-', 'sha')
  if (ALGORITHMS.includes(name)) return name
  throw new Error(
    `there is no algorithm "${String(algorithm).slice(0, 50)}"; there are ${ALGORITHMS.join(', ')}`,
  )
}

function toBytes(text: string): Buffer {
  return Buffer.from(text, 'latin1')
}
