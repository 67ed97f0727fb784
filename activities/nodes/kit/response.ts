import { filesOf, withFiles } from '../../../workflows/itemfiles.ts'
import { isObject, setOwn } from '../../../workflows/json.ts'
import type { ResponseShape } from '../../../workflows/nodes/calls.ts'
import type { LargeNumbers } from '../../../workflows/nodes/fields.ts'
import { createPacer } from '../../expressions/pace.ts'
import type { FileValue } from '../../files/files.ts'
import { describeUnknownCharset, isJsonType, parseResponseBody } from '../../http/body.ts'
import { type ResponseHeaders, showHeaders } from '../../http/headers.ts'
import { decodeText } from '../../reading/charset.ts'
import { describeLarge, type JsonReading, readJsonInTurns, readLargeNumbers } from '../../reading/json.ts'
import { NodeFailure } from './failure.ts'

type Response = { status: number; body: Uint8Array } & ResponseHeaders

/**
 * What a response is as items: a list of JSON is a list of items, a text becomes a field of an item. With `full`
 * there is one item {body, headers, statusCode, statusMessage}. `warnings` say what could not be kept.
 */
export async function shapeResponse(
  shape: ResponseShape,
  { status, headers, cookies, body }: Response,
  largeNumbers: LargeNumbers,
): Promise<{ output: unknown; warnings: string[] }> {
  const { format = 'auto', full, neverError, field = 'data' } = shape
  const type = headers['content-type'] ?? ''
  const isJson = format === 'json' || (format === 'auto' && type.includes('application/json'))
  const text = decodeText(body, headers['content-type'])
  const unknown = describeUnknownCharset(body, headers['content-type'])
  const warnings = unknown ? [unknown] : []
  const rest = {
    headers: showHeaders({ headers, cookies }),
    statusCode: status,
    statusMessage: REASONS[status] ?? '',
  }
  if (!isJson) {
    const item: Record<string, unknown> = full ? { ...rest } : {}
    if (text !== '' || format === 'text') setOwn(item, field, text)
    return { output: item, warnings }
  }
  const isLenient = neverError === true && format === 'auto'
  const read = text.trim() === '' ? { value: {} } : await parseBody(text, isLenient, largeNumbers)
  const { value } = read
  const large = describeLarge(read, largeNumbers)
  if (large) warnings.push(large)
  return { output: full ? { body: value, ...rest } : (value ?? {}), warnings }
}

/**
 * The value of a body: of JSON where it says so, or the text. Throws a NodeFailure (InvalidResponse), whose message begins
 * with `what`.
 */
export async function readBody(
  { headers, body }: Pick<Response, 'headers' | 'body'>,
  config: Record<string, unknown>,
  pace: ReturnType<typeof createPacer>,
  what = 'A page has',
): Promise<{ value: unknown; warnings: string[] }> {
  const type = headers['content-type']
  const { format } = (config.response ?? {}) as ResponseShape
  const responseType = config.responseType ?? (format === 'json' || format === 'text' ? format : undefined)
  const largeNumbers = readLargeNumbers(config)
  if (body.length > MAX_AT_ONCE && responseType !== 'text' && (responseType === 'json' || isJsonType(type))) {
    try {
      const read = await readJsonInTurns(decodeText(body, type), pace, largeNumbers)
      const large = describeLarge(read, largeNumbers)
      return { value: read.value, warnings: large ? [large] : [] }
    } catch (error) {
      if (error instanceof NodeFailure) throw error
    }
  }
  const read = parseResponseBody(body, type, { responseType, largeNumbers })
  if ('fault' in read) throw new NodeFailure(`${what} a body that ${read.fault}`, { type: 'InvalidResponse' })
  return read
}

/** Larger bodies are read in turns. */
const MAX_AT_ONCE = 64 * 1024

/**
 * The item that a response becomes whose body is a file: it has the fields and files of the item before, or with `full`
 * {headers, statusCode, statusMessage}.
 */
export function shapeFile(
  { field = 'data', full }: ResponseShape,
  { status, headers, cookies }: Omit<Response, 'body'>,
  file: FileValue,
  item: unknown,
): unknown {
  const rest = {
    headers: showHeaders({ headers, cookies }),
    statusCode: status,
    statusMessage: REASONS[status] ?? '',
  }
  const fields = full ? rest : isObject(item) ? item : {}
  return withFiles(fields, { ...filesOf(item), [field]: file })
}

/** Whether a body of this type is no text. */
export function isBytes(type: string): boolean {
  return BYTES.some((start) => type.toLowerCase().includes(start))
}

const BYTES =
  `image/ audio/ video/ application/octet-stream application/gzip application/zip application/vnd.rar
  application/epub+zip application/x-bzip application/x-cdf application/vnd.amazon.ebook application/msword
  application/vnd.openxmlformats-officedocument.wordprocessingml.document application/vnd.ms-fontobject
  application/vnd.openxmlformats-officedocument.spreadsheetml.sheet application/vnd.oasis.opendocument.presentation
  application/pdf application/x-tar application/vnd.visio application/vnd.ms-excel application/x-7z-compressed`.split(
    /\s+/,
  )

async function parseBody(text: string, isLenient: boolean, largeNumbers: LargeNumbers): Promise<JsonReading> {
  try {
    return await readJsonInTurns(text, createPacer(), largeNumbers)
  } catch {
    if (isLenient) return { value: {} }
    throw new NodeFailure('Response body is not valid JSON. Change "Response Format" to "Text"', {
      type: 'InvalidResponse',
    })
  }
}

/** What HTTP/1.1 says about a status. */
const REASONS: Record<number, string> = {
  200: 'OK',
  201: 'Created',
  202: 'Accepted',
  203: 'Non-Authoritative Information',
  204: 'No Content',
  205: 'Reset Content',
  206: 'Partial Content',
  300: 'Multiple Choices',
  301: 'Moved Permanently',
  302: 'Found',
  303: 'See Other',
  304: 'Not Modified',
  307: 'Temporary Redirect',
  308: 'Permanent Redirect',
  400: 'Bad Request',
  401: 'Unauthorized',
  402: 'Payment Required',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  406: 'Not Acceptable',
  408: 'Request Timeout',
  409: 'Conflict',
  410: 'Gone',
  411: 'Length Required',
  412: 'Precondition Failed',
  413: 'Payload Too Large',
  415: 'Unsupported Media Type',
  418: "I'm a Teapot",
  422: 'Unprocessable Entity',
  425: 'Too Early',
  429: 'Too Many Requests',
  500: 'Internal Server Error',
  501: 'Not Implemented',
  502: 'Bad Gateway',
  503: 'Service Unavailable',
  504: 'Gateway Timeout',
}
