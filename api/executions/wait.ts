import type { Context } from 'hono'
import * as v from 'valibot'
import type { Bus } from '../../db/bus.ts'
import { isDatabaseAway } from '../../db/connection.ts'
import { hasEnded } from '../../db/executions/executions.ts'
import { findOwner } from '../../db/owners.ts'
import type { ApiDeps, AppEnv } from '../env.ts'
import type { Rule } from '../http/accept.ts'
import { queryInteger } from '../http/query.ts'
import { demandLasting } from '../people/lasting.ts'
import type { Seats } from './seats.ts'

/** The longest that a request waits for an execution. Proxies often allow a response no longer than this. */
const MAX_WAIT_MS = 60_000

/** How long to wait before trying again while the database is not reachable. */
const AWAY_MS = 500

/** After a wait of this length, the caller's right is read again. */
const RECHECK_MS = 1_000

/** The query parameter of the routes that can wait for the end of an execution. */
export const waitMsField = v.optional(
  v.pipe(
    queryInteger(0, MAX_WAIT_MS),
    v.description('The response waits at most this many milliseconds for the end of the execution'),
  ),
)

/** The request header that does the same, and what says in the response that it was heeded. */
export const PREFER_HEADER: Rule['headers'] = {
  Prefer: {
    description:
      '`wait=<seconds>` (RFC 7240) does what `waitMs` does, to 60 s; the response then has ' +
      '`Preference-Applied`. `waitMs` has precedence',
  },
}

/**
 * How long the request wants to wait, in milliseconds: as `waitMs` says, else as the header Prefer does, whose
 * seconds are cut to the limit. Other preferences, and those that do not parse, are ignored (RFC 7240, 2).
 * `preferred` is the preference to be confirmed.
 */
export function readWait(
  c: Context,
  { waitMs }: { waitMs?: number | undefined },
): { ms: number; preferred?: string } {
  if (waitMs !== undefined) return { ms: waitMs }
  // The first one counts, where one is given twice.
  const [, text] =
    /(?:^|[,\s])wait\s*=\s*"?(\d{1,9})"?\s*(?:[;,]|$)/i.exec(c.req.header('prefer') ?? '') ?? []
  if (text === undefined) return { ms: 0 }
  const seconds = Math.min(Number(text), MAX_WAIT_MS / 1_000)
  return { ms: seconds * 1_000, preferred: `wait=${seconds}` }
}

/**
 * Waits for the end of an execution, at most `ms`, and less if the caller disconnects or the service stops. Resolves to
 * whether it has ended, or is deleted. Afterwards the scope is the caller's as it is then: throws UNAUTHENTICATED or
 * FORBIDDEN if the caller's rights have ended meanwhile, as soon as they have. Throws THROTTLED if too many requests
 * wait already.
 */
export async function awaitEnd(
  deps: ApiDeps,
  c: Context<AppEnv>,
  executionId: string,
  { seats, ms, preferred, fresh }: { seats: Seats; ms: number; preferred?: string; fresh?: boolean },
): Promise<boolean> {
  const teamId = (await findOwner(deps.store, 'executions', executionId)) ?? ''
  const leave = seats.take(c.get('scope').userId ?? '', teamId)
  const began = performance.now()
  const lost = new AbortController()
  const leaveRights = c.get('whileAllowed')(() => lost.abort())
  try {
    const request = AbortSignal.any([c.req.raw.signal, lost.signal])
    const look = async (isStored: boolean) =>
      isStored || (await hasEnded(deps.store, executionId)) ? true : undefined
    const ended = await waitFor(deps.bus, executionId, { ms, request, fresh }, look)
    if (preferred) c.header('Preference-Applied', preferred)
    if (lost.signal.aborted) c.set('scope', await demandLasting(deps, c))
    else if (performance.now() - began > RECHECK_MS)
      c.set('scope', await c.get('authenticate')({ anew: true }))
    return ended ?? false
  } finally {
    leaveRights()
    leave()
  }
}

/** How long to wait, at most. `request` is aborted when its client disconnects. */
type Patience = {
  ms: number
  request?: AbortSignal
  /** It cannot have ended yet, so it is not looked at before the first change. */
  fresh?: boolean | undefined
  /** Something may be found before the end, so PostgreSQL tells of each change from the beginning. */
  early?: boolean
}

/**
 * Calls `look` after each change of the execution until it finds something; with `true` if this process has just stored
 * its end. Resolves to undefined when the time is over, the client disconnects, or the service stops.
 */
export async function waitFor<T>(
  bus: Bus,
  executionId: string,
  { ms, request, fresh, early }: Patience,
  look: (isStored: boolean) => Promise<T | undefined>,
): Promise<T | undefined> {
  const ends = request ? [bus.stopping, request] : [bus.stopping]
  let over = ends.some(({ aborted }) => aborted)
  let changed = early || !fresh
  let stored = false
  let wake = () => {}
  const onChange = (hasEnded = false) => {
    changed = true
    stored ||= hasEnded
    wake()
  }
  const stop = () => {
    over = true
    wake()
  }
  const timer = setTimeout(stop, ms)
  for (const end of ends) end.addEventListener('abort', stop)
  let again: NodeJS.Timeout | undefined
  const leave = early ? await bus.watch(executionId, onChange) : bus.watchEnd(executionId, onChange)
  try {
    while (!over) {
      if (changed) {
        changed = false
        try {
          const found = await look(stored)
          if (found !== undefined) return found
        } catch (error) {
          if (!isDatabaseAway(error)) throw error
          again = setTimeout(onChange, AWAY_MS)
        }
      } else await new Promise<void>((resolve) => (wake = resolve))
    }
    return undefined
  } finally {
    clearTimeout(timer)
    clearTimeout(again)
    for (const end of ends) end.removeEventListener('abort', stop)
    leave()
  }
}
