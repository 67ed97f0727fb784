import type { Context } from 'hono'
import { Fault, invalid } from '../db/fault.ts'
import { joinPath } from '../workflows/problem.ts'

const MAX_BODY_BYTES = 1_500_000
const MAX_DEPTH = 64

/** Reads a request's body, counting what really arrives (chunked too). Throws TOO_LARGE above 1.5 MB. */
export async function readBody(c: Context, max = MAX_BODY_BYTES): Promise<Uint8Array<ArrayBuffer>> {
  const tooLarge = () => new Fault('TOO_LARGE', `The body has more than ${max} bytes`)
  if (Number(c.req.header('content-length') ?? 0) > max) throw tooLarge()
  const body = c.req.raw.body
  if (!body) return new Uint8Array()
  const chunks: Uint8Array[] = []
  let bytes = 0
  const reader = body.getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return Buffer.concat(chunks, bytes)
    bytes += value.byteLength
    if (bytes > max) {
      // Not cancelled: the server drains the rest, so that the sender gets to read the answer.
      reader.releaseLock()
      throw tooLarge()
    }
    chunks.push(value)
  }
}

/**
 * Parses JSON bytes: UTF-8 only, at most 64 levels deep, without the key __proto__ (which a later copy could turn
 * into a prototype). Throws INVALID.
 */
export function parseJson(bytes: Uint8Array): unknown {
  let value: unknown
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    throw invalid([{ path: 'body', message: 'is not valid JSON in UTF-8' }])
  }
  const open: { value: unknown; path: string; depth: number }[] = [{ value, path: '', depth: 1 }]
  for (let next = open.pop(); next; next = open.pop()) {
    const { value: at, path, depth } = next
    if (typeof at !== 'object' || at === null) continue
    if (depth > MAX_DEPTH) throw invalid([{ path, message: `is nested deeper than ${MAX_DEPTH} levels` }])
    if (Object.hasOwn(at, '__proto__')) {
      throw invalid([{ path: joinPath(path, '__proto__'), message: 'is not allowed as a key' }])
    }
    for (const [key, item] of Object.entries(at)) {
      if (typeof item !== 'object' || item === null) continue
      open.push({
        value: item,
        path: joinPath(path, Array.isArray(at) ? Number(key) : key),
        depth: depth + 1,
      })
    }
  }
  return value
}

/** A JSON request's body; no body at all is an empty object. Throws UNSUPPORTED_TYPE, TOO_LARGE or INVALID. */
export async function readJson(c: Context): Promise<unknown> {
  const type = c.req.header('content-type')
  const encoding = c.req.header('content-encoding') ?? 'identity'
  if (encoding.trim().toLowerCase() !== 'identity') {
    throw new Fault('UNSUPPORTED_TYPE', 'A request body cannot be compressed')
  }
  if (type !== undefined && !isJson(type)) throw unsupported()
  const bytes = await readBody(c)
  // The schema then names what is missing.
  if (bytes.length === 0) return {}
  if (type === undefined) throw unsupported()
  return parseJson(bytes)
}

function unsupported() {
  return new Fault('UNSUPPORTED_TYPE', 'The body must be sent as Content-Type: application/json (UTF-8)')
}

function isJson(type: string): boolean {
  const [essence, ...parameters] = type
    .toLowerCase()
    .split(';')
    .map((part) => part.trim())
  if (!/^application\/([a-z0-9.+-]+\+)?json$/.test(essence ?? '')) return false
  const charset = parameters.find((part) => part.startsWith('charset='))
  return charset === undefined || /^charset="?(utf-?8|us-ascii)"?$/.test(charset)
}
