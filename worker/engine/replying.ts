import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { writeCut } from '../../db/agentchat/chunks.ts'
import { claimReplies, type DueReply, postponeReply, settleReply } from '../../db/agentchat/settle.ts'
import type { Bus } from '../../db/bus.ts'
import type { Store } from '../../db/scope.ts'

const EVERY_MS = 5_000
const AT_ONCE = 8
const LEASE_MS = 30_000
const RETRY_MS = 1_000
const MAX_RETRY_MS = 60_000

/**
 * How long a reply that was stopped waits for its writer to store the place where it ends, and how often that is looked
 * for. After that the writer is gone, and so are the readers that have seen more of it than is stored: those of its
 * process.
 */
const WRITER_MS = 3_000
const LOOK_MS = 30

/**
 * Saves the replies of chats as soon as the bus reports that their executions have ended, and those that are due
 * again. Any number of processes may do so. Returns the function that ends it.
 */
export function startReplying({ store, log }: { store: Store; log: Logger }, bus: Bus): () => Promise<void> {
  let timer: NodeJS.Timeout | undefined
  let working: Promise<void> | undefined
  let more = false
  let stopped = false
  const endings = new Set<Promise<void>>()

  function work(): void {
    more = true
    if (stopped) return
    clearTimeout(timer)
    working ??= workOff().finally(() => {
      working = undefined
      if (!stopped) timer = setTimeout(work, EVERY_MS)
    })
  }

  async function workOff(): Promise<void> {
    while (more && !stopped) {
      more = false
      try {
        const due = await claimReplies(store, AT_ONCE, LEASE_MS)
        await Promise.all(due.map(settle))
        if (due.length === AT_ONCE) more = true
      } catch (error) {
        log.warn({ err: error }, 'the replies that are due could not be read')
      }
    }
  }

  async function settle(reply: DueReply): Promise<void> {
    const { id, executionId, attempts } = reply
    try {
      if ((await settleReply(store, reply)) === 'settled') return
      // Others that are due do not wait for its writer.
      const ending = endOpen(reply).finally(() => endings.delete(ending))
      endings.add(ending)
    } catch (error) {
      log.warn({ err: error, executionId, attempts }, 'a reply could not be saved')
      const delay = Math.min(MAX_RETRY_MS, RETRY_MS * 2 ** Math.min(attempts - 1, 6))
      await postponeReply(store, id, delay).catch(() => {})
    }
  }

  async function endOpen(reply: DueReply): Promise<void> {
    const { id, executionId } = reply
    const giveUp = performance.now() + WRITER_MS
    bus.tell(writeCut(executionId))
    try {
      for (let isOpen = true; isOpen && !stopped; ) {
        await sleep(LOOK_MS)
        const isLate = performance.now() > giveUp
        isOpen = (await settleReply(store, reply, { isLate })) === 'open'
        if (!isOpen) return
      }
    } catch (error) {
      log.warn({ err: error, executionId }, 'a reply that was stopped could not be saved')
    }
    await postponeReply(store, id, stopped ? 0 : RETRY_MS).catch(() => {})
  }

  const leave = bus.onErrands(work)
  work()
  return async () => {
    stopped = true
    clearTimeout(timer)
    leave()
    await working
    await Promise.all(endings)
  }
}
