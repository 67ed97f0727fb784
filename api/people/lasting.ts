import type { Context } from 'hono'
import { ROLES } from '../../db/acts.ts'
import { isDatabaseAway } from '../../db/connection.ts'
import { demand, demandInstance, type Scope } from '../../db/scope.ts'
import type { ApiDeps, AppEnv } from '../env.ts'
import { watchRightsOn } from './changes.ts'
import { authenticate } from './session.ts'

/** How long to wait before looking again while the database is not reachable. */
const AWAY_MS = 500

/** It is looked so long after an end, as timers may be a little early. */
const LATE_MS = 20

/**
 * A right that ends later than a timer can wait (25 days) is found by the streams' own checks; nothing else lasts that
 * long.
 */
const MAX_TIMER_MS = 2 ** 31 - 1_000

/**
 * Makes the watch that binds a lasting response to its caller's rights: `lost` is called once, as soon as the caller
 * has lost the right to call the route, in whichever process that was decided. Returns the function that ends the
 * watch. Without a sign-in no right can be lost.
 */
export function createLastingWatch(deps: ApiDeps, c: Context<AppEnv>): (lost: () => void) => () => void {
  return (lost) => {
    const { userId } = c.get('scope') ?? {}
    if (!userId) return () => {}
    let over = false
    let again: NodeJS.Timeout | undefined
    const look = () => {
      clearTimeout(again)
      demandLasting(deps, c).catch((error) => {
        if (over) return
        if (isDatabaseAway(error)) again = setTimeout(look, AWAY_MS)
        else {
          leave()
          lost()
        }
      })
    }
    const unwatch = watchCaller(deps, c, userId, look)
    const leave = () => {
      over = true
      clearTimeout(again)
      unwatch()
    }
    return leave
  }
}

/**
 * Calls `check` whenever this person (or the visitors of this widget) may have lost a right, and when what the caller has
 * shown ends by itself. Returns what ends that.
 */
export function watchCaller(
  { bus }: Pick<ApiDeps, 'bus'>,
  c: Context<AppEnv>,
  personId: string,
  check: () => void,
): () => void {
  const rights = watchRightsOn(bus)
  const unwatch = rights.watch(personId, check)
  // A loss between the request's admission and this watch has been told already.
  const missed = rights.seen() === c.get('rightsSeen') ? undefined : setImmediate(check)
  const left = (c.get('scope')?.access?.endsAt ?? Number.POSITIVE_INFINITY) - performance.now()
  const timer = left < MAX_TIMER_MS ? setTimeout(check, Math.max(0, left) + LATE_MS) : undefined
  return () => {
    clearImmediate(missed)
    clearTimeout(timer)
    unwatch()
  }
}

/** Throws unless the caller, as they are now, may still call the route for its team. */
export async function demandLasting(deps: ApiDeps, c: Context<AppEnv>): Promise<Scope> {
  const now = await authenticate(deps, c, { counts: false })
  const role = c.get('rule')?.role
  if (role === 'instance') demandInstance(now)
  const teamId = c.get('teamId')
  const least = role === 'member' ? 'VIEWER' : ROLES.find((one) => one === role)
  if (teamId === undefined || least === undefined) return now
  demand(now, teamId, least)
  return now
}
