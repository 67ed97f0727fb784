import { perDatabase } from '../cache.ts'
import type { Db } from '../connection.ts'
import { Fault } from '../fault.ts'

/** How many exports a process makes at the same time: each holds one of its connections. */
const SLOTS = 2
const MAX_WAITING = 100
const WAIT_MS = 30_000

type Waiting = { teamId: string; take: () => void }
const slotsOf = perDatabase(() => ({ running: new Set<string>(), waiting: new Set<Waiting>() }))

/**
 * Waits for an export slot, of which each team gets one at a time. Returns the function that frees it. Throws
 * UNAVAILABLE after 30 s, or at once if 100 wait already.
 */
export async function takeExportSlot(db: Db, teamId: string): Promise<() => void> {
  const { running, waiting } = slotsOf(db)
  const isFree = (team: string) => running.size < SLOTS && !running.has(team)
  const free = () => {
    running.delete(teamId)
    for (const next of waiting) if (isFree(next.teamId)) next.take()
  }
  if (isFree(teamId)) {
    running.add(teamId)
    return free
  }
  const busy = new Fault('UNAVAILABLE', 'Other exports are under way; try again later', { retryAfter: 30 })
  if (waiting.size >= MAX_WAITING) throw busy
  const { promise, resolve, reject } = Promise.withResolvers<() => void>()
  const timer = setTimeout(() => {
    waiting.delete(me)
    reject(busy)
  }, WAIT_MS)
  const me: Waiting = {
    teamId,
    take() {
      clearTimeout(timer)
      waiting.delete(me)
      running.add(teamId)
      resolve(free)
    },
  }
  waiting.add(me)
  return promise
}
