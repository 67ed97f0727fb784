import { createHmac } from 'node:crypto'
import type { Logger } from 'pino'
import { isDatabaseAway } from '../../db/connection.ts'
import {
  CALLBACK_HOURS,
  type DueCallback,
  postponeCallback,
  readEndedExecution,
  settleCallback,
} from '../../db/executions/callbacks.ts'
import type { Store } from '../../db/scope.ts'
import { cleanText } from '../../db/text.ts'
import { isObject } from '../../workflows/json.ts'
import type { Outsides } from '../egress/outside.ts'
import { readRetryAfter } from '../nodes/kit/retryafter.ts'
import { FINAL_KINDS, HttpError } from './httperror.ts'

/** What delivering callbacks needs. */
export type CallbackCarrier = { store: Store; outside: Outsides; log: Logger }

const CALLBACK_TIMEOUT_MS = 15_000

const RETRY_MS = 5_000
const MAX_RETRY_MS = 3_600_000
const MAX_OUTPUT_BYTES = 256 * 1024

/**
 * Tells the URL of a claimed callback that its execution has ended. If that fails, it is due again later, unless
 * that is of no use or the execution has ended a day ago. The receiver may get it twice if this process dies in
 * between. Never throws.
 */
export async function deliverCallback(
  carrier: CallbackCarrier,
  callback: DueCallback,
  signal?: AbortSignal,
): Promise<void> {
  const { store, log } = carrier
  const { id, executionId, attempts, old } = callback
  const facts = { callbackId: id, executionId, attempts }
  try {
    const failure = await send(carrier, callback, signal)
    if (!failure) return await settleCallback(store, id)
    const isLate = old && !failure.aborted
    const message = cleanText(failure.message, 1_000)
    if (failure.final || isLate) {
      log.warn({ ...facts, reason: message }, 'a callback is given up')
      const since = isLate && !failure.final ? ` (tried for ${CALLBACK_HOURS} hours)` : ''
      await settleCallback(store, id, `${message}${since}`)
    } else {
      log.debug({ ...facts, reason: message }, 'a callback could not be delivered yet')
      await postponeCallback(store, id, chooseDelay(attempts, failure), message)
    }
  } catch (error) {
    // The database is away: the callback is due again when its lease ends.
    log.warn({ err: error, ...facts }, 'the outcome of a callback was not noted')
  }
}

type Failure = { message: string; final?: boolean; aborted?: boolean; retryAfterMs?: number | undefined }

/** Resolves to undefined if the receiver has taken the callback: its response has a status from 200 to 299. */
async function send(
  { store, outside, log }: CallbackCarrier,
  { id, executionId, teamId, url, secret }: DueCallback,
  signal: AbortSignal | undefined,
): Promise<Failure | undefined> {
  const body = await writeBody(store, id, executionId).catch((error) => {
    if (isDatabaseAway(error)) throw error
    log.error({ err: error, executionId }, 'an execution could not be read for its callback')
    return null
  })
  if (body === null) return { message: 'The execution could not be read' }
  // Deleted meanwhile: its callback is gone with it.
  if (body === undefined) return { message: 'The execution has been deleted', final: true }
  const { http } = await outside.forTeam(teamId)
  try {
    const { status, headers } = await http.request({
      method: 'POST',
      url,
      headers: {
        'content-type': 'application/json',
        'x-perdure-delivery': id,
        'x-perdure-signature': signCallback(secret, body, Date.now()),
      },
      body,
      timeoutMs: CALLBACK_TIMEOUT_MS,
      redirects: 'none',
      ...(signal ? { signal } : {}),
    })
    if (status >= 200 && status < 300) return undefined
    const message = `${new URL(url).host} responded with ${status}`
    // Gone: the receiver wants no further calls.
    return {
      message,
      final: status === 410,
      retryAfterMs: readRetryAfter(headers['retry-after'], Date.now()),
    }
  } catch (error) {
    if (!(error instanceof HttpError)) throw error
    const { kind, message } = error
    return { message, final: FINAL_KINDS.has(kind), aborted: kind === 'aborted' }
  }
}

/** The header with the time in Unix seconds and the HMAC-SHA256 of `time.body`: `t=1763800000,v1=<hex>`. */
function signCallback(secret: string, body: string, now: number): string {
  const seconds = Math.floor(now / 1_000)
  return `t=${seconds},v1=${createHmac('sha256', secret).update(`${seconds}.${body}`).digest('hex')}`
}

async function writeBody(store: Store, id: string, executionId: string): Promise<string | undefined> {
  const ended = await readEndedExecution(store, executionId)
  if (!ended) return undefined
  const { shown, output } = ended
  const outputData = output === undefined || isObject(output) ? (output ?? null) : { value: output }
  const isLarge = Buffer.byteLength(JSON.stringify(outputData)) > MAX_OUTPUT_BYTES
  const execution = { ...shown, outputData: isLarge ? null : outputData, outputOmitted: isLarge }
  return JSON.stringify({ id, event: 'execution.ended', execution })
}

/** Doubles from five seconds to an hour; longer if the receiver asks for that. */
function chooseDelay(attempts: number, { aborted, retryAfterMs = 0 }: Failure): number {
  if (aborted) return 0
  const delay = Math.min(MAX_RETRY_MS, RETRY_MS * 2 ** Math.min(attempts - 1, 10))
  return Math.max(delay * (0.9 + Math.random() * 0.2), retryAfterMs)
}
