import { sql } from 'kysely'
import type { AccountAct } from '../../acts.ts'
import { perDatabase } from '../../cache.ts'
import { write } from '../../change.ts'
import type { Actor, Scope, Store } from '../../scope.ts'

/** What the service refuses, in the words of the audit. */
export type RefusalAct = Extract<
  AccountAct,
  'SIGN_IN_FAILED' | 'ACCESS_DENIED' | 'REVOKED_TOKEN_USED' | 'ENDED_SESSION_USED'
>

/** All callers of a chain together. */
export const ALL_CALLERS = '*'

/** How often what was counted is written. */
const EVERY_MS = 1_000

/** Refusals of one caller that have no entries of their own. `from` and `to` are times of this process. */
type Count = {
  chain: string
  caller: string
  act: RefusalAct
  more: number
  from: Date
  to: Date
  actor: CountedActor
}

/** Who it was, as it is stored. */
export type CountedActor = Pick<Actor, 'kind' | 'id' | 'name'> & Pick<Scope, 'userId' | 'ip'>

/** Several callers share a count. */
const SEVERAL: CountedActor = {
  kind: 'ANONYMOUS',
  id: null,
  name: 'several callers',
  userId: null,
  ip: null,
}

type Counts = { byKey: Map<string, Count>; timer?: NodeJS.Timeout | undefined; writing: Promise<void> }

const countsOf = perDatabase<Counts>(() => ({ byKey: new Map(), writing: Promise.resolve() }))

/** Counts a refusal that gets no entry of its own: in memory, written within a second with all others. */
export function countRefusal(
  store: Store,
  { chain, caller, act, scope }: { chain: string; caller: string; act: RefusalAct; scope: Scope },
): void {
  const counts = countsOf(store.db)
  const key = `${chain} ${caller} ${act}`
  const now = new Date()
  const known = counts.byKey.get(key)
  if (known) {
    known.more++
    known.to = now
    return
  }
  const { kind, id, name } = scope.actor
  const actor = caller === ALL_CALLERS ? SEVERAL : { kind, id, name, userId: scope.userId, ip: scope.ip }
  counts.byKey.set(key, { chain, caller, act, more: 1, from: now, to: now, actor })
  counts.timer ??= setTimeout(() => void flushRefusals(store), EVERY_MS).unref()
}

/** Writes the counts. Counts that cannot be written now are kept for the next time. Never rejects. */
export async function flushRefusals(store: Store): Promise<void> {
  const counts = countsOf(store.db)
  clearTimeout(counts.timer)
  counts.timer = undefined
  // One after the other, so that a slow database is not given further work.
  counts.writing = counts.writing.then(() => writeCounts(store, counts))
  await counts.writing
}

async function writeCounts(store: Store, counts: Counts): Promise<void> {
  const rows = [...counts.byKey.values()]
  if (rows.length === 0) return
  counts.byKey = new Map()
  try {
    await write(store, (tx) =>
      sql`
      insert into audit_refusals as r (chain_id, minute, caller, act, more, first_at, last_at, actor)
      select c.chain, date_trunc('minute', now()), c.caller, c.act, c.more, c."from", c."to", c.actor
      from json_to_recordset(${JSON.stringify(rows)}::json) as c(
        chain uuid, caller text, act text, more bigint, "from" timestamptz, "to" timestamptz, actor json)
      order by c.chain, c.caller, c.act
      on conflict (chain_id, minute, caller, act) do update set more = r.more + excluded.more,
        first_at = least(r.first_at, excluded.first_at), last_at = greatest(r.last_at, excluded.last_at)`.execute(
        tx,
      ),
    )
  } catch {
    for (const row of rows) keepCount(counts, row)
    counts.timer ??= setTimeout(() => void flushRefusals(store), EVERY_MS).unref()
  }
}

function keepCount({ byKey }: Counts, row: Count): void {
  const key = `${row.chain} ${row.caller} ${row.act}`
  const newer = byKey.get(key)
  byKey.set(key, newer ? { ...row, more: row.more + newer.more, to: newer.to } : row)
}
