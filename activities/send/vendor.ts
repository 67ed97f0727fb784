import type { OpenedCredential } from '../../db/credentials/open.ts'
import { MAX_FILE_BYTES } from '../../workflows/nodes/files.ts'
import type { Button, ChatOperation } from '../../workflows/nodes/messages.ts'
import type { HttpPass } from '../credentials/authorize.ts'
import type { FileValue } from '../files/files.ts'
import { guessMimeType } from '../files/types.ts'
import { HttpError } from '../http/httperror.ts'
import { requestFailure } from '../nodes/http.ts'
import { invalidConfig, NodeFailure } from '../nodes/kit/failure.ts'
import type { NodeContext } from '../nodes/kit/node.ts'
import { readRetryAfter } from '../nodes/kit/retryafter.ts'
import type { SentFile } from './files.ts'
import type { Handover } from './once.ts'

/** What a node has for a vendor. What its operation needs is there. */
export type ChatMessage = {
  to: string | undefined
  /** The sender, where one account has several. */
  from: string | undefined
  text: string | undefined
  format: 'plain' | 'markdown' | 'html' | undefined
  thread: string | undefined
  replyTo: string | undefined
  files: SentFile[]
  /** The files of a method, by the fields of its form. */
  named: Record<string, SentFile>
  /** The file that is downloaded, in the vendor's words. */
  file: string | undefined
  buttons: Button[][]
  /** What the vendor knows beyond that, in its own words. */
  options: Record<string, unknown>
  /** The message that is edited, deleted or reacted to. */
  message: string | undefined
  reaction: string | undefined
  /** The reaction is taken back. */
  remove: boolean
  action: string | undefined
  /** The vendor's own method, and what it is given. */
  method: string | undefined
  body: Record<string, unknown>
  /** The same for every attempt: 32 hexadecimal digits. */
  key: string
}

/**
 * What a node outputs of a message. `messageId` is null where the vendor gives none. `body` is the whole answer, unless
 * that is `response`.
 */
export type ChatAnswer = { messageId: string | null; to: string | null; response: unknown; body?: unknown }

/** What a node outputs of a download: the file, and what the vendor says of it. */
type ChatDownload = { file: FileValue; response: unknown; body?: unknown }

/** One operation of one vendor. */
type ChatDeed = (message: ChatMessage, line: ChatLine) => Promise<ChatAnswer | ChatDownload>

/** How one vendor takes messages. */
export type ChatVendor = {
  name: string
  /** Where its API is, unless the credential has a `baseUrl`. Without it the credential says where. */
  baseUrl?: string
  /** The most characters that a text may have: of one alone, and of one with files. */
  maxText: number
  maxCaption: number
  maxFiles: number
  formats: readonly ChatMessage['format'][]
  /** Keys of `options` that the node sets itself, or that are not for it. */
  reserved: readonly string[]
  /** For how long the vendor recognises a message that is sent again. */
  knownForMs: number
  /** The buttons that a message may have; without it none. */
  buttons?: { rows: number; perRow: number }
  /** The credential names the only place that it sends to. */
  fixedPlace?: true
  /** Whether one of its own methods only reads, so that it can be called again. */
  reads?(method: string): boolean
  deeds: { send: ChatDeed } & Partial<Record<ChatOperation, ChatDeed>>
}

/** A connection to one vendor, for one message. */
export type ChatLine = Handover & {
  credential: OpenedCredential
  /**
   * Sends a request to `path` of the API, or to a URL that the vendor has given, which gets nothing of the credential.
   * Resolves with the JSON of a response with status 200 to 299, or its text. Throws a NodeFailure otherwise; if it
   * says that nothing was done, the message counts as refused. With `isDone`, a refusal by which an earlier attempt
   * has already done it is an answer too.
   */
  post(
    to: ({ path: string } | { url: string }) & { verb?: ChatVerb },
    body?: ChatBody,
    isDone?: (body: unknown, status: number) => boolean,
  ): Promise<ChatResponse>
  /** Downloads `path` of the API as a file of the execution. Throws a NodeFailure for any answer but 200. */
  download(path: string, name: string): Promise<FileValue>
}

const CHAT_VERBS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
export type ChatVerb = (typeof CHAT_VERBS)[number]
export type ChatBody = { json: object } | { form: URLSearchParams | FormData } | { bytes: Uint8Array }
type ChatResponse = { body: unknown; headers: Record<string, string> }

const MAX_ANSWER_BYTES = 1024 * 1024
const EXCERPT = 300

/** Errors of a connection that was never made, so that nothing was sent. */
const NEVER_SENT =
  /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|EHOSTDOWN|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT)$|CERT|^ERR_TLS/

export function openLine(
  { http, signal, files }: Pick<NodeContext, 'http' | 'signal' | 'files'>,
  vendor: Pick<ChatVendor, 'name' | 'baseUrl'>,
  credential: OpenedCredential,
  pass: HttpPass,
  handover: Handover,
): ChatLine {
  const { name } = vendor
  const { baseUrl } = credential.data
  const base = (typeof baseUrl === 'string' ? baseUrl : (vendor.baseUrl ?? '')).replace(/\/+$/, '')

  const post: ChatLine['post'] = async (to, body, isDone) => {
    const own = 'path' in to
    const { allowedHosts } = pass
    const encoded = body === undefined ? undefined : await encodeBody(body)
    const response = await http
      .request({
        method: to.verb ?? 'POST',
        url: own ? `${base}/${to.path}` : to.url,
        headers: { ...(encoded ? { 'content-type': encoded.type } : {}), accept: 'application/json' },
        ...(encoded ? { body: encoded.bytes } : {}),
        signal,
        maxBytes: MAX_ANSWER_BYTES,
        redirects: 'none',
        ...(own ? pass : allowedHosts ? { allowedHosts } : {}),
      })
      .catch((error) => {
        if (error instanceof HttpError && isNeverSent(error)) handover.refused()
        throw error instanceof HttpError ? requestFailure(name, error) : error
      })
    const { status, headers } = response
    const text = Buffer.from(response.body).toString()
    const parsed = parseJson(text)
    if (status >= 200 && status < 300) return { body: parsed ?? text, headers }
    if (handover.again && isDone?.(parsed, status)) return { body: parsed, headers }
    // A server that fails may have done what it was asked for.
    if (status < 500) handover.refused()
    const retryable = status >= 500 || status === 429 || status === 408
    throw new NodeFailure(`${name} responded with ${status}${describe(parsed)}`, {
      type: `Http${status}`,
      retryable,
      ...(retryable ? delayOf(headers, parsed) : {}),
    })
  }

  const download: ChatLine['download'] = async (path, name) => {
    if (!files) throw new Error('only attempts have files')
    const stored: { file?: FileValue } = {}
    const { status, headers } = await http
      .request({
        ...{ method: 'GET', url: `${base}/${path}`, signal, redirects: 'none' as const, ...pass },
        ...{ maxBytes: MAX_ANSWER_BYTES, saveBytes: MAX_FILE_BYTES },
        save: ({ status }) =>
          status !== 200
            ? undefined
            : async (body) => {
                stored.file = await files.store({ name, mimeType: guessMimeType(name) }, body)
              },
      })
      .catch((error) => {
        throw error instanceof HttpError ? requestFailure(vendor.name, error) : error
      })
    if (stored.file) return stored.file
    const retryable = status >= 500 || status === 429 || status === 408
    throw new NodeFailure(`${vendor.name} responded with ${status} to the download of the file`, {
      type: `Http${status}`,
      retryable,
      ...(retryable ? delayOf(headers, undefined) : {}),
    })
  }

  return { ...handover, credential, post, download }
}

function isNeverSent({ kind, cause }: HttpError): boolean {
  if (kind === 'refused-address' || kind === 'refused-host' || kind === 'bad-url' || kind === 'bad-request')
    return true
  const { code } = Object(cause)
  return typeof code === 'string' && NEVER_SENT.test(code)
}

/** When the vendor wants to be asked again: by the header, or by `retry_after` in seconds in its answer. */
export function delayOf(headers: Record<string, string>, body: unknown): { retryAfterMs?: number } {
  const { retry_after: own, parameters } = Object(body)
  const seconds = [own, Object(parameters).retry_after].find((value) => typeof value === 'number')
  const byHeader = readRetryAfter(headers['retry-after'], Date.now())
  const byBody =
    seconds === undefined ? undefined : Math.min(Math.max(Math.ceil(seconds * 1_000), 0), 3_600_000)
  if (byHeader === undefined && byBody === undefined) return {}
  return { retryAfterMs: Math.max(byHeader ?? 0, byBody ?? 0) }
}

/** What a vendor says of an error: Slack in `error`, Telegram in `description`, Discord in `message`, Meta below `error`. */
function describe(body: unknown): string {
  const { error, description, message } = Object(body)
  const said = [description, message, error, Object(error).message].find((value) => typeof value === 'string')
  return said === undefined ? '' : `: ${tidyLine(said)}`
}

/** A text of a vendor on one line, not too long. */
export function tidyLine(text: string): string {
  const line = text.replace(/[\p{Cc}\p{Cs}\s]+/gu, ' ').trim()
  return line.length > EXCERPT ? `${line.slice(0, EXCERPT)}...` : line
}

async function encodeBody(body: ChatBody): Promise<{ bytes: Uint8Array; type: string }> {
  if ('json' in body)
    return { bytes: Buffer.from(JSON.stringify(body.json)), type: 'application/json; charset=utf-8' }
  if ('bytes' in body) return { bytes: body.bytes, type: 'application/octet-stream' }
  // Node writes forms as browsers do.
  const written = new Response(body.form)
  return {
    bytes: new Uint8Array(await written.arrayBuffer()),
    type: written.headers.get('content-type') ?? 'application/octet-stream',
  }
}

/** A form with the files of a message, each under the name that `nameOf` gives the one at an index. */
export async function fillForm(
  fields: Record<string, string>,
  files: SentFile[],
  nameOf: (index: number) => string,
): Promise<FormData> {
  const form = new FormData()
  for (const [name, value] of Object.entries(fields)) form.set(name, value)
  for (const [i, file] of files.entries()) {
    const bytes = await file.read(file.bytes)
    form.set(nameOf(i), new Blob([bytes as Uint8Array<ArrayBuffer>], { type: file.mimeType }), file.name)
  }
  return form
}

/** The fields that have a value. */
export function dropEmpty(fields: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The failure for an answer that says neither that the message was taken nor that it was not. */
export function unreadable(name: string): NodeFailure {
  return new NodeFailure(`${name} responded with something that cannot be read`, { type: 'InvalidResponse' })
}

/** The verb and the path of a method such as `PUT channels/1/pins/2`. Throws a NodeFailure for others. */
export function readMethod(method: string | undefined, name: string): { verb: ChatVerb; path: string } {
  const [, verb, path = ''] =
    /^([A-Z]+) +\/*([\w@%:.,~+-]+(?:\/[\w@%:.,~+-]+)*(?:\?[^\s#]*)?)$/.exec(method ?? '') ?? []
  const known = CHAT_VERBS.find((one) => one === verb)
  if (known === undefined || path.split(/[/?]/).includes('..'))
    throw invalidConfig(
      'method',
      `must be one of ${CHAT_VERBS.join(', ')} and a path of the API of ${name}, such as POST messages`,
    )
  return { verb: known, path }
}

/** What a method is given: JSON, or a form with its files. */
export async function fillCall({ body, named }: ChatMessage): Promise<ChatBody> {
  const names = Object.keys(named)
  if (names.length === 0) return { json: body }
  return { form: await fillForm(toFields(body), Object.values(named), (i) => names[i]!) }
}

/** Whether a method with its verb in front only reads. */
export const isGet = (method: string) => /^GET\b/.test(method)

/** Calls a method that is a verb and a path, with a body as JSON. */
export async function callByVerb(name: string, message: ChatMessage, line: ChatLine, prefix = '') {
  const { verb, path } = readMethod(message.method, name)
  const isEmpty = Object.keys({ ...message.body, ...message.named }).length === 0
  const sent = verb === 'GET' || isEmpty ? undefined : await fillCall(message)
  await line.begin()
  const { body: answer } = await line.post({ path: prefix + path, verb }, sent)
  const { id } = Object(answer)
  return { messageId: typeof id === 'string' ? id : null, to: null, response: answer }
}

/** Values as the fields of a form: what is no text is JSON. Those that are undefined or null are left out. */
export function toFields(values: object): Record<string, string> {
  const entries = Object.entries(values).filter(([, value]) => value !== undefined && value !== null)
  return Object.fromEntries(
    entries.map(([key, value]) => [key, typeof value === 'string' ? value : JSON.stringify(value)]),
  )
}
