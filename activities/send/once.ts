import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type MessageNote,
  type MessagePlace,
  noteSending,
  noteSent,
  noteUnanswered,
  placeOf,
  readMessageNote,
  withdrawSending,
} from '../../db/send/notes.ts'
import type { FailureType } from '../../workflows/nodes/failures.ts'
import { createMasking } from '../credentials/masking.ts'
import { NodeFailure } from '../nodes/kit/failure.ts'
import type { NodeContext } from '../nodes/kit/node.ts'
import { retryOutages } from '../run/outages.ts'

/** How long an attempt waits for the call of an earlier one that may still get its answer. */
const SETTLE_MS = 10_000
const LOOK_EVERY_MS = 250

/** How long the storing of an answer is tried, even when no attempt waits for it. */
const STORE_MS = 600_000

const LOOK = 'Look there before you send it again, or set `repeat` if twice is better than never'

/** How a message is handed over. */
export type Handover = {
  /**
   * Commits the note that the message is handed over now: call it as late as possible, before anything after which
   * the other side may have taken it. Throws if that cannot be noted; then nothing may be sent.
   */
  begin(): Promise<void>
  /** The other side has said that it has not taken the message, or was never reached. */
  refused(): void
  /** An earlier attempt may have handed it over: what the other side refuses may be done already. */
  again?: boolean
}

export type Once = {
  /** The subject of messages to users, such as `The mail`, and the type of the failure if the outcome is unknown. */
  what: string
  uncertain: FailureType
  /** Rather sent twice than not at all. */
  repeat: boolean
  /** What to do if it is not known. */
  way?: string
  /** For how long, in milliseconds, the other side itself recognises a message that is sent again. */
  knownFor?: () => Promise<number>
}

/**
 * Sends a message at most once, whatever happens to the attempts: its output is stored, and later attempts answer
 * with that. If it is not known whether the other side has taken it, throws a NodeFailure that no retry mends,
 * unless `repeat` is set or the other side recognises it.
 */
export async function sendOnce(
  {
    spot,
    idempotencyKey,
    signal,
    credentials,
  }: Pick<NodeContext, 'spot' | 'idempotencyKey' | 'signal' | 'credentials'>,
  { what, uncertain, repeat, way = LOOK, knownFor = async () => 0 }: Once,
  send: (handover: Handover) => Promise<unknown>,
): Promise<unknown> {
  const { store, executionId } = spot
  const place = placeOf(executionId, idempotencyKey)
  const known = await settleNote({ spot, signal }, place, knownFor)
  if (known?.state === 'SENT') return known.output
  const again = repeat || (known !== undefined && known.agoMs < (await knownFor()))
  const doubt = (cause?: unknown) => {
    const why = cause instanceof Error ? `: ${cause.message}` : ''
    return new NodeFailure(`${what} may have been sent, but no answer came that says so${why}. ${way}`, {
      type: uncertain,
      cause,
    })
  }
  if (known && !again) throw doubt()

  const call = randomUUID()
  const stage = { noting: false, begun: false, refused: false }
  let output: unknown
  try {
    output = await send({
      again: known !== undefined,
      async begin() {
        signal.throwIfAborted()
        stage.noting = true
        if (!(await noteSending(store, place, { call, again }))) {
          stage.noting = false
          throw doubt()
        }
        signal.throwIfAborted()
        stage.begun = true
      },
      refused() {
        stage.refused = true
      },
    })
  } catch (error) {
    const isOut = stage.begun && !stage.refused
    // A note may be written although that failed. If it stays as it is, the next attempt is only more careful than
    // it must be.
    const tidy = isOut || known ? noteUnanswered : withdrawSending
    if (stage.noting) await retryOutages(signal, () => tidy(store, place, call)).catch(() => {})
    signal.throwIfAborted()
    throw isOut && !repeat && (await knownFor()) === 0 ? doubt(error) : error
  }
  // A later attempt opens no credential, and does not know what is secret in it.
  if (credentials) ({ output } = await createMasking(credentials).result({ output }))
  await retryOutages(AbortSignal.timeout(STORE_MS), () => noteSent(store, place, { call, output }))
  return output
}

/**
 * The known state of the message once no other call can still learn more: a call that waits for its answer has some
 * time for that, unless the other side recognises the message anyway.
 */
async function settleNote(
  { spot, signal }: Pick<NodeContext, 'spot' | 'signal'>,
  place: MessagePlace,
  knownFor: () => Promise<number>,
): Promise<MessageNote | undefined> {
  for (;;) {
    const known = await retryOutages(signal, () => readMessageNote(spot.store, place))
    if (known?.state !== 'SENDING' || known.isOver || known.agoMs >= SETTLE_MS) return known
    if ((await knownFor()) > 0) return known
    await sleep(LOOK_EVERY_MS, undefined, { signal }).catch(() => signal.throwIfAborted())
  }
}
