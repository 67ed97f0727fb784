import type { Context } from 'hono'
import type { JsonReading } from '../../activities/reading/json.ts'
import { Fault } from '../../db/fault.ts'
import { joinPath, type Problem } from '../../workflows/problem.ts'
import { type JsonBounds, parseJson, parseJsonInTurns } from '../bodies/json.ts'
import { parseInPieces } from '../largebody.ts'

export const MAX_BODY_BYTES = 1_500_000

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
 * The bytes of a request's body as they come. A caller that stops before their end leaves the rest to the server, which
 * drains it, so that the client can read the response.
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

/** Bodies of more bytes are parsed in turns. */
const PARSED_AT_ONCE = 64 * 1024

/** The bounds of a route's JSON body: by default 1.5 MB and JSON_BOUNDS. */
export type BodyLimits = { bytes?: number | undefined } & Partial<JsonBounds>

/**
 * Reads a JSON body; an empty body becomes {}. Where a route takes more than 1.5 MB, a large one must be an object. Throws
 * UNSUPPORTED_TYPE, TOO_LARGE or INVALID.
 */
export async function readJsonBody(
  c: Context,
  { bytes: most, ...bounds }: BodyLimits = {},
): Promise<JsonReading> {
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
  if (bytes.length === 0) return { value: {} }
  if (type === undefined) throw unsupported()
  if (bytes.length <= PARSED_AT_ONCE) return parseJson(bytes, bounds)
  if (most === undefined || most <= MAX_BODY_BYTES) return parseJsonInTurns(bytes, bounds)
  let large: JsonReading['large']
  const value = await parseInPieces(bytes, async (piece) => {
    const reading =
      piece.length > PARSED_AT_ONCE ? await parseJsonInTurns(piece, bounds) : parseJson(piece, bounds)
    if (reading.large)
      large = {
        ...reading.large,
        count: reading.large.count + (large?.count ?? 0),
        ...(large && { key: large.key }),
      }
    return reading.value
  })
  return { value, ...(large ? { large } : {}) }
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

/** The parts of a Valibot schema that say where objects are expected. */
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
