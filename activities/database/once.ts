import { readRequestNote, saveAttempts } from '../../db/executions/records/attempts.ts'
import { NodeFailure } from '../nodes/kit/failure.ts'
import type { NodeContext } from '../nodes/kit/node.ts'
import { retryOutages } from '../run/outages.ts'

/** Says that a statement was sent, and that what came of it is known: nothing was done, so it may be sent again. */
const SENT = Buffer.from([1])
const KNOWN = Buffer.alloc(0)

/** The failure for a statement whose outcome is unknown, in words for users. */
export function uncertain(why: string): NodeFailure {
  const message =
    `The statement may have been carried out, but no answer came: ${why}. ` +
    'Look there before you run it again, or set `repeat` if twice is better than never'
  return new NodeFailure(message, { type: 'DatabaseUncertain' })
}

/** Keeps a statement that writes from being sent again after a process was lost that had sent it. */
export type SentNote = {
  /** Commits the note that the statement is sent now. Throws a NodeFailure if that cannot be noted. */
  begin(): Promise<void>
  /** The statement was refused or undone. */
  undone(): Promise<void>
}

/**
 * Reads whether an earlier attempt of this node has sent its statement. Throws a NodeFailure (DatabaseUncertain) if
 * one has, and its outcome is unknown.
 */
export async function openSentNote({
  spot,
  attempt,
  idempotencyKey: key,
  signal,
}: NodeContext): Promise<SentNote> {
  const { store, ...place } = spot
  const { executionId, nodeId, iteration } = place
  const read = () => retryOutages(signal, () => readRequestNote(store, { executionId, nodeId, iteration }))
  if ((await read())?.hash.length) throw uncertain('the process that had sent it was lost')
  const started = {
    executionId,
    nodeId,
    iteration,
    nodeName: place.nodeName,
    nodeType: 'DATABASE_QUERY',
    attempt,
  }
  const write = (hash: Buffer) =>
    retryOutages(signal, () => saveAttempts(store, [{ ...started, at: new Date(), request: { key, hash } }]))
  return {
    async begin() {
      await write(SENT)
      // It is not written for an execution that has ended meanwhile.
      if (!(await read())?.hash.length)
        throw new NodeFailure('The execution ended before the statement was sent', { type: 'Abandoned' })
      signal.throwIfAborted()
    },
    // The node may have ended for this attempt, but its next attempts read the note.
    undone: () => write(KNOWN).catch(() => {}),
  }
}
