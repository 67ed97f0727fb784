import { sql } from 'kysely'
import { noteEvent, write } from '../../change.ts'
import type { Tx } from '../../connection.ts'
import { type Scope, type Store, serviceScope } from '../../scope.ts'
import { INSTANCE_CHAIN } from '../signing.ts'
import { ALL_CALLERS, type CountedActor, type RefusalAct } from './counts.ts'

/** A minute is settled so many seconds after it is over: by then all processes have written what they have counted. */
const AFTER_S = 10

type Settled = { more: number; from: Date; to: Date }

/**
 * Makes one audit entry of the refusals that each caller has beyond those with entries of their own, for the minutes
 * that are over. Any number of processes may do so at once. A chain that cannot take an entry does not stop the
 * others: `tell` is called with the failure, and it is tried again the next time.
 */
export async function settleRefusals(
  store: Store,
  tell: (chain: string, error: unknown) => void,
): Promise<void> {
  await write(store, (tx) => sql`delete from audit_refusals where act = '' and ${isOver()}`.execute(tx))
  const { rows } = await sql<Counted>`
    select distinct on (chain_id, caller, act) chain_id as chain, caller, act, actor,
      chain_id = ${INSTANCE_CHAIN} or exists (select from teams where id = chain_id) as "isOpen"
    from audit_refusals where ${isOver()} and act <> '' limit 10000`.execute(store.db)
  for (const counted of rows) {
    const { chain } = counted
    try {
      await settle(store, counted)
    } catch (error) {
      tell(chain, error)
    }
  }
}

/** `isOpen`: the chain's team is there; that of a deleted one has ended. */
type Counted = { chain: string; caller: string; act: RefusalAct; actor: CountedActor; isOpen: boolean }

async function settle(store: Store, { chain, caller, act, actor, isOpen }: Counted): Promise<void> {
  await noteEvent(scopeOf(store, actor), act, isOpen ? chain : INSTANCE_CHAIN, async (tx) => {
    const { more, from, to } = await takeCounts(tx, chain, { caller, act })
    if (more === 0) return { result: undefined, unchanged: true }
    const several = caller === ALL_CALLERS ? { callers: 'several' } : {}
    const gone = isOpen ? {} : { teamId: chain }
    return { result: undefined, resourceId: null, details: { count: more, from, to, ...several, ...gone } }
  })
}

async function takeCounts(
  tx: Tx,
  chain: string,
  { caller, act }: { caller: string; act: string },
): Promise<Settled> {
  const { rows } = await sql<Settled>`
    with taken as (
      delete from audit_refusals
      where chain_id = ${chain} and caller = ${caller} and act = ${act} and ${isOver()}
      returning more, first_at, last_at)
    select coalesce(sum(more), 0)::bigint as more, min(first_at) as "from", max(last_at) as "to" from taken`.execute(
    tx,
  )
  return rows[0]!
}

function isOver() {
  return sql<boolean>`minute < now() - interval '60 seconds' - ${AFTER_S} * interval '1 second'`
}

function scopeOf(store: Store, { kind, id, name, userId, ip }: CountedActor): Scope {
  return { ...serviceScope(store, { kind, id, name }, [], { userId }), ip }
}
