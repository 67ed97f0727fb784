import type { Logger } from 'pino'
import { claimReplies, type DueReply, postponeReply, settleReply } from '../../db/agentchat/settle.ts'
import type { Bus } from '../../db/bus.ts'
import type { Store } from '../../db/scope.ts'

const EVERY_MS = 5_000
const AT_ONCE = 8
const LEASE_MS = 30_000
const RETRY_MS = 1_000
const MAX_RETRY_MS = 60_000

/**
 * Saves the replies of chats as soon as the bus reports that their executions have ended, and those that are due
 * again. Any number of processes may do so. Returns the function that ends it.
 */
export function startReplying({ store, log }: { store: Store; log: Logger }, bus: Bus): () => Promise<void> {
  let timer: NodeJS.Timeout | undefined
  let working: Promise<void> | undefined
  let more = false
  let stopped = false

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
      await settleReply(store, reply)
    } catch (error) {
      log.warn({ err: error, executionId, attempts }, 'a reply could not be saved')
      const delay = Math.min(MAX_RETRY_MS, RETRY_MS * 2 ** Math.min(attempts - 1, 6))
      await postponeReply(store, id, delay).catch(() => {})
    }
  }

  const leave = bus.onErrands(work)
  work()
  return async () => {
    stopped = true
    clearTimeout(timer)
    leave()
    await working
  }
}
