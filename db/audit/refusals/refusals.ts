import { sql } from 'kysely'
import { perDatabase } from '../../cache.ts'
import { noteEvent } from '../../change.ts'
import type { Db, Tx } from '../../connection.ts'
import { readNetwork } from '../../people/network.ts'
import type { Scope } from '../../scope.ts'
import type { AuditEntry } from '../audit.ts'
import { INSTANCE_CHAIN } from '../signing.ts'
import { ALL_CALLERS, countRefusal, type RefusalAct } from './counts.ts'

/** A refused request. `scope` says who has sent it; without a `teamId` it is about no team that is known. */
export type Refusal = AuditEntry & { act: RefusalAct; scope: Scope; teamId?: string | undefined }

/** How many refusals get an audit entry each in a minute: of a caller in a chain, and of all callers in a chain. */
export type RefusalLimits = { ofCaller: number; ofChain: number }
const REFUSAL_LIMITS: RefusalLimits = { ofCaller: 10, ofChain: 600 }

/** Refusals are entered by so few transactions at once that a flood of them leaves connections for others. */
const AT_ONCE = 2

/**
 * The number of keys for which a process enters refusals in a minute, for all callers together: further ones are only
 * counted.
 */
const MAX_KEYS = 20_000

type Minute = {
  at: number
  tried: Map<string, number>
  full: Set<string>
  open: number
  waiting: (() => void)[]
}

const minuteOf = perDatabase<Minute>(() => ({
  at: 0,
  tried: new Map(),
  full: new Set(),
  open: 0,
  waiting: [],
}))

/**
 * Notes a refused request in the audit, in a transaction of its own: in its team's chain, else in the instance's. Ten a
 * minute of a caller get an entry each, over all processes; the others are counted in memory, written every second, and
 * become one entry when the minute is over. So a caller cannot flood a chain, or keep others from it.
 */
export async function noteRefusal(refusal: Refusal, limits = REFUSAL_LIMITS): Promise<void> {
  const { scope, act, teamId } = refusal
  const minute = minuteOf(scope.store.db)
  // In a flood, what was known at its first request is enough.
  const isKnown =
    teamId !== undefined &&
    (minute.tried.has(`${teamId} ${ALL_CALLERS}`) || (await hasTeam(scope.store.db, teamId)))
  const chain = isKnown ? teamId : INSTANCE_CHAIN
  const caller = nameCaller(scope)
  const verdict = tryOnce(minute, chain, caller, limits)
  if (verdict === 'enter') {
    const entered = await inTurn(minute, () => enter(refusal, { chain, caller }, limits)).catch((error) => {
      // The database takes no changes at the moment, or the team has just gone: what has no entry is counted.
      countRefusal(scope.store, { chain, caller, act, scope })
      throw error
    })
    if (entered === 'entered') return
    minute.full.add(entered === 'caller is full' ? `${chain} ${caller}` : `${chain} ${ALL_CALLERS}`)
  }
  const isOther = verdict === 'chain is full' || minute.full.has(`${chain} ${ALL_CALLERS}`)
  countRefusal(scope.store, { chain, caller: isOther ? ALL_CALLERS : caller, act, scope })
}

/** Who is meant by "a caller": the person or the token, else the network of the address. */
function nameCaller({ actor, ip }: Scope): string {
  return actor.id === null ? `ip:${ip === null ? '' : readNetwork(ip)}` : `${actor.kind}:${actor.id}`
}

function tryOnce(minute: Minute, chain: string, caller: string, { ofCaller, ofChain }: RefusalLimits) {
  const at = Math.floor(Date.now() / 60_000)
  if (minute.at !== at) {
    minute.at = at
    minute.tried.clear()
    minute.full.clear()
  }
  const [own, all] = [`${chain} ${caller}`, `${chain} ${ALL_CALLERS}`]
  if (minute.full.has(own)) return 'caller is full'
  const tried = minute.tried.get(own) ?? 0
  if (tried >= ofCaller) return 'caller is full'
  const ofAll = minute.tried.get(all) ?? 0
  if (minute.full.has(all) || ofAll >= ofChain || minute.tried.size >= MAX_KEYS) return 'chain is full'
  minute.tried.set(own, tried + 1)
  minute.tried.set(all, ofAll + 1)
  return 'enter'
}

async function inTurn<T>(minute: Minute, work: () => Promise<T>): Promise<T> {
  if (minute.open >= AT_ONCE) await new Promise<void>((resolve) => minute.waiting.push(resolve))
  else minute.open++
  try {
    return await work()
  } finally {
    const next = minute.waiting.shift()
    if (next) next()
    else minute.open--
  }
}

type Entered = 'entered' | 'caller is full' | 'chain is full'

async function enter(
  { scope, act, resourceId, details }: Refusal,
  { chain, caller }: { chain: string; caller: string },
  { ofCaller, ofChain }: RefusalLimits,
): Promise<Entered> {
  return noteEvent<Entered>(scope, act, chain, async (tx) => {
    if (!(await takePlace(tx, chain, caller, ofCaller))) return { result: 'caller is full', unchanged: true }
    if (!(await takePlace(tx, chain, ALL_CALLERS, ofChain)))
      return { result: 'chain is full', unchanged: true }
    return { result: 'entered', resourceId, ...(details ? { details } : {}) }
  })
}

/** Counts an entry of this minute, unless there are `most` of them; over all processes. */
async function takePlace(tx: Tx, chain: string, caller: string, most: number): Promise<boolean> {
  const { rows } = await sql`
    insert into audit_refusals as r (chain_id, minute, caller, act, entered)
    values (${chain}, date_trunc('minute', now()), ${caller}, '', 1)
    on conflict (chain_id, minute, caller, act) do update set entered = r.entered + 1
      where r.entered < ${most}
    returning 1 as taken`.execute(tx)
  return rows.length > 0
}

async function hasTeam(db: Db, id: string): Promise<boolean> {
  return (await db.selectFrom('teams').select('id').where('id', '=', id).executeTakeFirst()) !== undefined
}
