import { isObject } from '../../workflows/json.ts'
import { authorizeWith } from '../credentials/authorize.ts'
import { findBase } from '../credentials/checks/ask.ts'
import { HttpError } from '../http/httperror.ts'
import type { StreamedBody } from '../http/streams.ts'
import { invalidConfig } from '../nodes/kit/failure.ts'
import type { NodeContext } from '../nodes/kit/node.ts'
import { decodeText } from '../reading/charset.ts'
import type { Handover } from '../send/once.ts'
import { isUnsent, nameVendor, refusedBy, unreached, uselessAnswer, type Vendor } from './failures.ts'
import type { CallUnits } from './meter.ts'
import type { ModelUsage } from './model.ts'
import { type ModelCallNote, openNote } from './note.ts'

/** A request to a model that hears, speaks or draws, without its credential. */
export type MediaRequest = {
  /** Below the address of the vendor's API. */
  path: string
  body: string | StreamedBody
  type: string
  answers: 'text' | 'sound' | 'images'
  maxBytes: number
  /** How long the text is that is spoken. */
  characters?: number
}

/** What a model has answered: a text, files in base64, or addresses of images at the vendor's. */
export type MediaAnswer = {
  text?: string
  media?: { data: string; mimeType?: string }[]
  urls?: string[]
}

const TIMEOUT_MS = 24 * 3_600_000
const MAX_ERROR_BYTES = 1024 * 1024

/** OpenAI's API is what other vendors offer too. */
const BASES: Record<string, string> = { OPENAI: 'https://api.openai.com/v1', OPENAI_COMPATIBLE: '' }

/**
 * Sends one request, noted before it is sent, and reads its answer. Throws a NodeFailure as askModel does; a refusal,
 * and a request that never reached the vendor, are told to `handover`: they may be tried again, all else may have been
 * paid.
 */
export async function askMedia(
  context: NodeContext,
  { credentialId, model, request }: { credentialId: unknown; model: string; request: MediaRequest },
  handover: Handover,
): Promise<MediaAnswer> {
  const { credentials, http, signal } = context
  if (!credentials) throw invalidConfig('credentialId', 'can only be used by an attempt of its own')
  const opened = await credentials.open(credentialId, 'LLM')
  const usual = BASES[opened.type]
  if (usual === undefined)
    throw invalidConfig(
      'credentialId',
      `is of the type ${opened.type}: sound and images are asked for with OPENAI or OPENAI_COMPATIBLE`,
    )
  const { baseUrl } = opened.data
  const called = { provider: opened.type, model, ...(typeof baseUrl === 'string' ? { baseUrl } : {}) }
  const note = openNote(context, { ...called, credentialId: opened.id })
  const vendor = nameVendor(opened, credentials.secrets())
  const pass = await authorizeWith(opened, credentials)
  try {
    await note.begin()
    await beginCall(note, handover)
    const response = await http.request({
      method: 'POST',
      url: `${findBase(opened, usual)}/${request.path}`,
      headers: { 'content-type': request.type },
      body: request.body,
      ...{ signal, redirects: 'none', timeoutMs: TIMEOUT_MS },
      maxBytes: Math.max(request.maxBytes, MAX_ERROR_BYTES),
      ...pass,
    })
    const { status, headers, body } = response
    if (status >= 300) {
      note.refuse()
      handover.refused()
      throw refusedBy(vendor, { status, headers, text: decodeText(body, headers['content-type']) })
    }
    const { answer, usage, units } = readAnswer(vendor, request, body, headers['content-type'])
    note.succeed(usage, units)
    return answer
  } catch (error) {
    signal.throwIfAborted()
    if (!(error instanceof HttpError)) throw error
    if (isUnsent(error)) {
      note.refuse()
      handover.refused()
    }
    throw unreached(vendor, error)
  } finally {
    await note.end()
  }
}

/** A call that was not handed over costs nothing. */
async function beginCall(note: ModelCallNote, handover: Handover): Promise<void> {
  try {
    await handover.begin()
  } catch (error) {
    note.refuse()
    throw error
  }
}

type Read = { answer: MediaAnswer; usage: ModelUsage | null; units: CallUnits }

function readAnswer(
  vendor: Vendor,
  { answers, characters = 0 }: MediaRequest,
  body: Uint8Array,
  type: string | undefined,
): Read {
  if (answers === 'sound') {
    if (body.length === 0) throw uselessAnswer(vendor, 'is empty', false)
    const mimeType = /^audio\/[\w.+-]+/.exec(type ?? '')?.[0]
    const data = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('base64')
    const units = { unit: 'CHARACTERS' as const, count: characters }
    return { answer: { media: [{ data, ...(mimeType ? { mimeType } : {}) }] }, usage: null, units }
  }
  const text = decodeText(body, type)
  const value = parse(text)
  if (answers === 'text') {
    // Other formats than JSON are the text itself, such as subtitles.
    const said = isObject(value) ? value.text : /^\s*[[{]/.test(text) ? undefined : text
    if (typeof said !== 'string') throw uselessAnswer(vendor, 'has no text', false)
    const { usage, duration } = isObject(value) ? value : {}
    const seconds = Number(Object(usage).seconds ?? duration ?? 0)
    const units = { unit: 'SECONDS' as const, count: Number.isFinite(seconds) ? Math.max(0, seconds) : 0 }
    return { answer: { text: said }, usage: readTokens(usage), units }
  }
  const { data, usage } = isObject(value) ? value : {}
  const list = (Array.isArray(data) ? data : []).filter(isObject)
  const media = list.flatMap(({ b64_json: image }) => (typeof image === 'string' ? [{ data: image }] : []))
  const urls = list.flatMap(({ url }) => (typeof url === 'string' ? [url] : []))
  if (media.length + urls.length === 0) throw uselessAnswer(vendor, 'has no image', false)
  const units = { unit: 'IMAGES' as const, count: list.length }
  return { answer: media.length > 0 ? { media } : { urls }, usage: readTokens(usage), units }
}

/** The tokens that newer models count. */
function readTokens(usage: unknown): ModelUsage | null {
  const { input_tokens: input, output_tokens: output } = Object(usage)
  const isCount = (count: unknown): count is number => Number.isSafeInteger(count) && Number(count) >= 0
  return isCount(input) && isCount(output) ? { input, output, cached: 0, cacheWrite: 0, reasoning: 0 } : null
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
