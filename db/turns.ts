import type { Db } from './connection.ts'
import { Fault } from './fault.ts'

/** So many exports at once in a process: each holds one of its connections. */
const TURNS = 2
const MAX_WAITING = 100
const WAIT_MS = 30_000

type Waiting = { teamId: string; take: () => void }
const lanes = new WeakMap<Db, { running: Set<string>; waiting: Set<Waiting> }>()

/** Waits for a team's turn, one at a time for each; answers what gives it back. Throws UNAVAILABLE after 30 s. */
export async function takeTurn(db: Db, teamId: string): Promise<() => void> {
  const lane = lanes.get(db) ?? { running: new Set(), waiting: new Set() }
  lanes.set(db, lane)
  const { running, waiting } = lane
  const isFree = (team: string) => running.size < TURNS && !running.has(team)
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
