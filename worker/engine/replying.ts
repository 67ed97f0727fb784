import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Bus } from '../../db/bus.ts'
import { writeCut } from '../../db/chat/chunks.ts'
import { claimReplies, type DueReply, postponeReply, settleReply } from '../../db/chat/settle.ts'
import type { Store } from '../../db/scope.ts'
import { startQueue } from '../service/queue.ts'

const EVERY_MS = 5_000
const AT_ONCE = 8
const LEASE_MS = 30_000
const RETRY_MS = 1_000
const MAX_RETRY_MS = 60_000

/**
 * How long a reply that was stopped waits until its writer has stored where it ends, and how often that is looked
 * for. Then the writer is gone, and so are the readers that have seen more of it than is stored: those of its process.
 */
const WRITER_MS = 3_000
const LOOK_MS = 30

/**
 * Saves the replies of chats as soon as the bus reports that their executions have ended, and those that are due
 * again. Any number of processes may do so. Returns the function that ends it.
 */
export function startReplying({ store, log }: { store: Store; log: Logger }, bus: Bus): () => Promise<void> {
  const endings = new Set<Promise<void>>()
  const { stop } = startQueue({
    what: 'the replies that are due',
    everyMs: EVERY_MS,
    atOnce: AT_ONCE,
    log,
    wokenBy: bus.onErrands,
    claim: ({ limit }) => claimReplies(store, limit, LEASE_MS),
    work: settle,
  })

  async function settle(reply: DueReply, signal: AbortSignal): Promise<void> {
    const { id, executionId, attempts } = reply
    try {
      if ((await settleReply(store, reply)) === 'settled') return
      // Others that are due do not wait for its writer.
      const ending = endOpen(reply, signal).finally(() => endings.delete(ending))
      endings.add(ending)
    } catch (error) {
      log.warn({ err: error, executionId, attempts }, 'a reply could not be saved')
      const delay = Math.min(MAX_RETRY_MS, RETRY_MS * 2 ** Math.min(attempts - 1, 6))
      await postponeReply(store, id, delay).catch(() => {})
    }
  }

  async function endOpen(reply: DueReply, signal: AbortSignal): Promise<void> {
    const { id, executionId } = reply
    const giveUp = performance.now() + WRITER_MS
    bus.tell(writeCut(executionId))
    try {
      for (let isOpen = true; isOpen && !signal.aborted; ) {
        await sleep(LOOK_MS)
        const isLate = performance.now() > giveUp
        isOpen = (await settleReply(store, reply, { isLate })) === 'open'
        if (!isOpen) return
      }
    } catch (error) {
      log.warn({ err: error, executionId }, 'a reply that was stopped could not be saved')
    }
    await postponeReply(store, id, signal.aborted ? 0 : RETRY_MS).catch(() => {})
  }

  return async () => {
    await stop()
    await Promise.all(endings)
  }
}
