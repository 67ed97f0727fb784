import type { Context } from 'hono'
import { Fault, invalid } from '../../db/fault.ts'
import { joinPath, type Problem } from '../../workflows/problem.ts'
import { parseInPieces } from '../largebody.ts'

const MAX_BODY_BYTES = 1_500_000
const MAX_DEPTH = 64

/** The most parts a form may have. Parsing tens of thousands would block the thread for a while. */
const MAX_PARTS = 1_000

/** Whether a part of the request's body is still on its way. */
export function isArriving(c: Context): boolean {
  const { incoming } = (c.env ?? {}) as { incoming?: { complete?: boolean } }
  return incoming?.complete === false
}

/**
 * Reads a request's body. Throws TOO_LARGE above `most`, by default 1.5 MB, by the Content-Length or by the bytes that
 * actually arrive (a chunked body has no Content-Length).
 */
export async function readBytes(c: Context, most = MAX_BODY_BYTES): Promise<Uint8Array<ArrayBuffer>> {
  const tooLarge = () => new Fault('TOO_LARGE', `The body must have at most ${most} bytes`)
  if (Number(c.req.header('content-length') ?? 0) > most) throw tooLarge()
  const body = c.req.raw.body
  if (!body) return new Uint8Array()
  const chunks: Uint8Array[] = []
  let bytes = 0
  const reader = body.getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return Buffer.concat(chunks, bytes)
    bytes += value.byteLength
    if (bytes > most) {
      // The reader is not cancelled: the server drains the rest, so that the client can read the response.
      reader.releaseLock()
      throw tooLarge()
    }
    chunks.push(value)
  }
}

/**
 * The bytes of a request's body as they come. Whoever stops before their end leaves the rest to the server, which drains
 * it, so that the client can read the response.
 */
export async function* readChunks(c: Context): AsyncGenerator<Uint8Array, void, undefined> {
  const reader = c.req.raw.body?.getReader()
  try {
    while (reader) {
      const { done, value } = await reader.read()
      if (done) return
      yield value
    }
  } finally {
    reader?.releaseLock()
  }
}

/**
 * Parses JSON. Throws INVALID unless it is UTF-8, at most 64 levels deep, and without the key __proto__,
 * which a later copy could turn into a prototype.
 */
function parseJsonBody(bytes: Uint8Array): unknown {
  let value: unknown
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    throw invalid([{ path: 'body', message: 'must be valid JSON in UTF-8' }])
  }
  const open: { value: unknown; path: string; depth: number }[] = [{ value, path: '', depth: 1 }]
  for (let next = open.pop(); next; next = open.pop()) {
    const { value: at, path, depth } = next
    if (typeof at !== 'object' || at === null) continue
    if (depth > MAX_DEPTH)
      throw invalid([{ path, message: `must not be nested deeper than ${MAX_DEPTH} levels` }])
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

/** Bodies of more bytes, where a route takes such, are parsed in pieces. */
const PARSED_AT_ONCE = 64 * 1024

/**
 * Reads a JSON body; an empty body becomes {}. With `most` it may have so many bytes, and must then be an object. Throws
 * UNSUPPORTED_TYPE, TOO_LARGE or INVALID.
 */
export async function readJsonBody(c: Context, most?: number): Promise<unknown> {
  const type = c.req.header('content-type')
  const encoding = c.req.header('content-encoding') ?? 'identity'
  if (encoding.trim().toLowerCase() !== 'identity') {
    throw new Fault('UNSUPPORTED_TYPE', 'The body must not be compressed')
  }
  // `curl -d ''` names the type of a form for a body that is empty.
  const isEmpty = c.req.header('content-length') === '0'
  if (type !== undefined && !isJson(type) && !isEmpty) throw unsupported()
  const bytes = await readBytes(c, most)
  // The route's schema then reports the fields that are missing.
  if (bytes.length === 0) return {}
  if (type === undefined) throw unsupported()
  if (most !== undefined && bytes.length > PARSED_AT_ONCE) return parseInPieces(bytes, parseJsonBody)
  return parseJsonBody(bytes)
}

/**
 * Parses a body by its content type: JSON becomes its value, a form an object of its fields (a file is
 * {filename, contentType, base64}), other UTF-8 text a string, other bytes {base64}, and an empty body null.
 * Throws INVALID if JSON does not parse.
 */
export async function parseBody(bytes: Uint8Array<ArrayBuffer>, contentType = ''): Promise<unknown> {
  if (bytes.length === 0) return null
  const type = contentType.split(';')[0]!.trim().toLowerCase()
  if (/^[a-z]+\/([a-z0-9.+-]+\+)?json$/.test(type)) return parseJsonBody(bytes)
  const form = type === 'multipart/form-data' ? await parseForm(bytes, contentType) : undefined
  if (form) return form
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return { base64: Buffer.from(bytes).toString('base64') }
  }
  return type === 'application/x-www-form-urlencoded' ? collectByName(new URLSearchParams(text)) : text
}

/** An object with one key per name. A name that is given more than once gets an array of its values. */
export function collectByName<T>(entries: Iterable<readonly [string, T]>): Record<string, T | T[]> {
  const byName = Map.groupBy(entries, ([name]) => name)
  byName.delete('__proto__')
  return Object.fromEntries(
    [...byName].map(([name, given]) => [
      name,
      given.length === 1 ? given[0]![1] : given.map(([, value]) => value),
    ]),
  )
}

/**
 * The fields of a multipart form; undefined if the body is not one, despite its type, or has too many parts.
 */
async function parseForm(bytes: Uint8Array<ArrayBuffer>, contentType: string) {
  const [, boundary] = /;\s*boundary="?([^";]{1,200})/i.exec(contentType) ?? []
  if (!boundary) return undefined
  // A form of MAX_PARTS parts splits into two pieces more: what is before the first part and after the last
  // one. The limit of the split is one above that, to notice a larger form.
  const pieces = Buffer.from(bytes)
    .toString('latin1')
    .split(`--${boundary}`, MAX_PARTS + 3)
  if (pieces.length > MAX_PARTS + 2) return undefined
  const form = await new Response(bytes, { headers: { 'content-type': contentType } })
    .formData()
    .catch(() => undefined)
  if (!form) return undefined
  const fields = [...form].map(async ([name, value]): Promise<[string, unknown]> => {
    if (typeof value === 'string') return [name, value]
    const base64 = Buffer.from(await value.arrayBuffer()).toString('base64')
    return [name, { filename: value.name, contentType: value.type, base64 }]
  })
  return collectByName(await Promise.all(fields))
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

/** What of a Valibot schema says where objects are expected. */
type Shape = {
  type: string
  entries?: Record<string, Shape>
  wrapped?: Shape
  item?: Shape
}

const OBJECTS = ['object', 'loose_object', 'strict_object', 'variant', 'record']

/** Finds arrays where a schema expects objects: Valibot takes an array for an object without keys. */
export function findMisplacedArrays(schema: Shape, value: unknown, path = ''): Problem[] {
  if (typeof value !== 'object' || value === null) return []
  if (schema.wrapped) return findMisplacedArrays(schema.wrapped, value, path)
  if (Array.isArray(value)) {
    if (OBJECTS.includes(schema.type)) return [{ path, message: 'must be an object' }]
    const { item } = schema
    return item ? value.flatMap((one, at) => findMisplacedArrays(item, one, joinPath(path, at))) : []
  }
  return Object.entries(schema.entries ?? {}).flatMap(([key, shape]) =>
    Object.hasOwn(value, key)
      ? findMisplacedArrays(shape, (value as Record<string, unknown>)[key], joinPath(path, key))
      : [],
  )
}
