import { randomBytes } from 'node:crypto'
import { findTextCharset, openDecoder } from '../../../activities/reading/charset.ts'
import { isObject } from '../../../workflows/json.ts'
import { joinPath, type Problem } from '../../../workflows/problem.ts'
import { readParameters } from '../../bodies/parameters.ts'
import { essenceOf } from '../../bodies/plain.ts'

type Written = { bytes?: Buffer<ArrayBuffer>; problems?: Problem[] }

const PATH = 'request.body'
const MARK = Buffer.from('\ufeff')

/**
 * The bytes of the body that a caller describes, so that they are read as this value again; none for no body. Sets the
 * Content-Type that it needs. Returns what is wrong with it instead of throwing.
 */
export function writeRequestBody(body: unknown, headers: Headers): Written {
  if (body === undefined || body === null) return {}
  const type = headers.get('content-type') ?? ''
  const isJson = /^[a-z]+\/([a-z0-9.+-]+\+)?json$/.test(essenceOf(type))
  const isCompressed = headers.has('content-encoding')
  const bytes = isJson && !isCompressed ? undefined : readBase64(body)
  if (bytes) return { bytes }
  if (isCompressed)
    return refuse('must be the compressed bytes as {base64}, or be sent without content-encoding')
  if (typeof body === 'string') return { bytes: encodeText(body, type) }
  if (type === '' || isJson) {
    if (type === '') headers.set('content-type', 'application/json')
    return { bytes: encodeText(JSON.stringify(body), type) }
  }
  switch (essenceOf(type)) {
    case 'application/x-www-form-urlencoded':
      return writeForm(body, type)
    case 'multipart/form-data':
      return writeMultipart(body, headers, type)
  }
  if (typeof body !== 'object') return { bytes: encodeText(String(body), type) }
  return refuse(`must be a string or {base64}, as the Content-Type is ${essenceOf(type)}`)
}

function refuse(message: string, path = PATH): Written {
  return { problems: [{ path, message }] }
}

function readBase64(body: unknown): Buffer<ArrayBuffer> | undefined {
  if (!isObject(body) || typeof body.base64 !== 'string' || Object.keys(body).length !== 1) return undefined
  return decodeBase64(body.base64)
}

function decodeBase64(text: string): Buffer<ArrayBuffer> | undefined {
  return /^[A-Za-z0-9+/]*={0,2}$/.test(text) && text.length % 4 === 0
    ? Buffer.from(text, 'base64')
    : undefined
}

/** The text in UTF-8. Where it would be read in another charset, a mark in front says what it is. */
function encodeText(text: string, type: string): Buffer<ArrayBuffer> {
  const bytes = Buffer.from(text)
  const charset = findTextCharset(bytes, type)
  const known = openDecoder(charset)?.encoding
  return known === undefined || known === 'utf-8' ? bytes : Buffer.concat([MARK, bytes])
}

/** The fields of a form, one for each value of a list. */
function listFields(body: unknown): [name: string, value: unknown][] | undefined {
  if (!isObject(body)) return undefined
  return Object.entries(body).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).map((one): [string, unknown] => [name, one]),
  )
}

function writeForm(body: unknown, type: string): Written {
  const fields = listFields(body)
  if (!fields) return refuse('must be an object of the fields of the form, or a string')
  const problems = fields
    .filter(([, value]) => typeof value === 'object' && value !== null)
    .map(([name]) => ({ path: joinPath(PATH, name), message: 'must be a string, or an array of strings' }))
  if (problems.length > 0) return { problems }
  const form = new URLSearchParams(
    fields.map(([name, value]): [string, string] => [name, String(value ?? '')]),
  )
  return { bytes: encodeText(form.toString(), type) }
}

function writeMultipart(body: unknown, headers: Headers, type: string): Written {
  const fields = listFields(body)
  if (!fields) return refuse('must be an object of the fields of the form, or a string')
  let boundary = readParameters(type).get('boundary')
  if (!boundary) {
    boundary = `form-${randomBytes(12).toString('hex')}`
    headers.set('content-type', `${type}; boundary=${boundary}`)
  }
  const problems: Problem[] = []
  const parts = fields.flatMap(([name, value]) => {
    const part = writePart(name, value)
    if (typeof part !== 'string') return [Buffer.from(`--${boundary}\r\n`), ...part, Buffer.from('\r\n')]
    problems.push({ path: joinPath(PATH, name), message: part })
    return []
  })
  if (problems.length > 0) return { problems }
  return { bytes: Buffer.concat([...parts, Buffer.from(`--${boundary}--\r\n`)]) }
}

/** A part of a form: a field, or a file as a webhook shows it. A text says what is wrong with it. */
function writePart(name: string, value: unknown): Buffer[] | string {
  const disposition = `Content-Disposition: form-data; name="${escapeName(name)}"`
  if (typeof value !== 'object' || value === null) {
    const head = `${disposition}\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n`
    return [Buffer.from(head), Buffer.from(String(value ?? ''))]
  }
  const { filename, contentType, base64 } = value as Record<string, unknown>
  const bytes = typeof base64 === 'string' ? decodeBase64(base64) : undefined
  if (!bytes) return 'must be a string, or a file as {filename, contentType, base64}'
  const mime = typeof contentType === 'string' ? contentType : 'application/octet-stream'
  if (/[\r\n]/.test(mime)) return 'must have a contentType of one line'
  const file = `; filename="${escapeName(String(filename ?? ''))}"`
  return [Buffer.from(`${disposition}${file}\r\nContent-Type: ${mime}\r\n\r\n`), bytes]
}

/** As browsers do; a backslash is escaped too, which would else take away the quote behind it. */
function escapeName(name: string): string {
  return name.replaceAll('\\', '\\\\').replaceAll('"', '%22').replaceAll('\r', '%0D').replaceAll('\n', '%0A')
}
