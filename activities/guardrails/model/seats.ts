import { perDatabase } from '../../../db/cache.ts'

/** How many calls for guardrails a team may have under way in a process, and how many may wait. */
const OF_TEAM = 20
const MOST_WAITING = 1_000
/** How many all teams may have under way. */
const OF_ALL = 2_000

type Team = { underWay: number; waiting: Set<() => void> }
type Seats = { underWay: number; teams: Map<string, Team> }

/** The calls for guardrails that are under way in this process. */
export const guardrailSeatsOf = perDatabase((): Seats => ({ underWay: 0, teams: new Map() }))

/**
 * Waits until the team has fewer calls under way than it may; resolves to what gives the seat back. A team whose model is
 * slow waits for itself only. Undefined if there is no seat, and none to be waited for. Rejects with the signal's reason.
 */
export async function takeGuardrailSeat(
  seats: Seats,
  name: string,
  signal: AbortSignal,
): Promise<(() => void) | undefined> {
  signal.throwIfAborted()
  const team = seats.teams.get(name) ?? { underWay: 0, waiting: new Set() }
  if (seats.underWay >= OF_ALL || team.waiting.size >= MOST_WAITING) return undefined
  seats.teams.set(name, team)
  if (team.underWay < OF_TEAM) {
    team.underWay++
    seats.underWay++
  } else await waitForSeat(team.waiting, signal)
  let isTaken = true
  return () => {
    if (!isTaken) return
    isTaken = false
    const [next] = team.waiting
    // The seat goes to the first that waits.
    if (next) return next()
    seats.underWay--
    if (--team.underWay === 0) seats.teams.delete(name)
  }
}

function waitForSeat(waiting: Set<() => void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const begin = () => {
      waiting.delete(begin)
      signal.removeEventListener('abort', leave)
      resolve()
    }
    const leave = () => {
      waiting.delete(begin)
      reject(signal.reason)
    }
    waiting.add(begin)
    signal.addEventListener('abort', leave, { once: true })
  })
}
