import { setTimeout as pause } from 'node:timers/promises'
import { sql } from 'kysely'
import { ACTS, type AccountAct, type Act } from './acts.ts'
import { type AuditEntry, appendAudit } from './audit/audit.ts'
import { openInstanceChain } from './audit/chain.ts'
import { INSTANCE_CHAIN } from './audit/signing.ts'
import { perDatabase } from './cache.ts'
import type { Database, Tx } from './connection.ts'
import { missing } from './fault.ts'
import { inLine } from './operation/lines.ts'
import { changesRights, demandAccess, demandInstanceStill, holdRight } from './people/rights.ts'
import { demandInstance, demandTeam, type Scope, type Store } from './scope.ts'

/** What a verb did: its result, and what the audit entry says about it, or that there is nothing to say. */
export type Changed<T> = Recorded<T> | Unchanged<T>
type Recorded<T> = AuditEntry & {
  result: T
  also?: (AuditEntry & { act: Act | AccountAct; chain?: string })[]
}
type Unchanged<T> = { result: T; unchanged: true; also?: undefined }

/**
 * The door to every write on a caller's behalf: opens a transaction, checks the right that `act` needs as it is now,
 * and appends the audit entry last, so that the chain is locked only until the commit. `work` gets the scope with the
 * role that was read. It may run again after a serialization failure or a deadlock, so it must do nothing outside `tx`.
 * It may return another `act` of the same least role (WORKFLOW_ACTIVATED instead of WORKFLOW_UPDATED), or say that
 * nothing was changed: then there is no entry. `also` are acts of the same least role that it has done on the way, with
 * entries of their own, in another `chain` if they name one. Throws FORBIDDEN, UNAUTHENTICATED if the session or token
 * has ended, NOT_FOUND if the team no longer exists, and AUDIT_CHAIN_BROKEN.
 */
export async function change<T>(
  scope: Scope,
  act: Act,
  teamId: string,
  work: (tx: Tx, held: Scope) => Promise<(Recorded<T> & { act?: Act }) | Unchanged<T>>,
): Promise<T> {
  const least = ACTS[act].role
  await demandTeam(scope, teamId, least)
  const alone = changesRights(act)
  const began = performance.now()
  const carryOut = () =>
    audited(
      scope,
      act,
      teamId,
      async (tx) => {
        // A founder is not a member yet.
        const founds = act === 'TEAM_CREATED'
        if (founds) await demandAccess(tx, scope)
        return work(tx, founds ? scope : await holdRight(tx, { scope, least }, teamId, { alone }))
      },
      began,
    )
  // With several at once each would only find the team taken, again and again, and with bad luck until it gives up.
  return alone ? inLine(scope.store.db, `${teamId} alone`, 1, carryOut) : carryOut()
}

/** Like `change`, for what belongs to the instance: only for its admin, with an audit chain of its own. */
export async function changeInstance<T>(
  scope: Scope,
  act: Act,
  work: (tx: Tx) => Promise<Changed<T>>,
): Promise<T> {
  demandInstance(scope)
  return audited(scope, act, INSTANCE_CHAIN, async (tx) => {
    await demandInstanceStill(tx, scope)
    return work(tx)
  })
}

/**
 * Like `change`, for an act on an account, with an entry in the instance's chain. The verb must have made sure that the
 * account is the caller's own, or that the caller is the operator.
 */
export async function changeAccount<T>(
  scope: Scope,
  act: AccountAct,
  work: (tx: Tx) => Promise<(Recorded<T> & { act?: AccountAct }) | Unchanged<T>>,
): Promise<T> {
  return audited(scope, act, INSTANCE_CHAIN, async (tx) => {
    await demandAccess(tx, scope)
    return work(tx)
  })
}

/**
 * The door for notes about refused requests, and about what the service has counted: with an entry in the chain of a
 * team or the instance. It checks no right, so that a handler reaches it only through db/audit/refusals.
 */
export async function noteEvent<T>(
  scope: Scope,
  act: AccountAct,
  chain: string,
  work: (tx: Tx) => Promise<Changed<T>>,
): Promise<T> {
  return audited(scope, act, chain, async (tx) => {
    // A chain ends with the deletion of its team.
    if (chain !== INSTANCE_CHAIN) {
      const team = sql`select from teams where id = ${chain} for key share`
      if ((await team.execute(tx)).rows.length === 0) throw missing('team')
    }
    return work(tx)
  })
}

/** How many transactions of one chain a process has open at once: one can append, and the next ones are ready. */
const AT_ONCE = 4

const openedOf = perDatabase(() => ({ done: false }))

async function audited<T, A extends Act | AccountAct>(
  scope: Scope,
  act: A,
  chain: string,
  work: (tx: Tx) => Promise<(Recorded<T> & { act?: A }) | Unchanged<T>>,
  began?: number,
): Promise<T> {
  const { store } = scope
  const opened = openedOf(store.db)
  if (!opened.done) await record(store, (tx) => openInstanceChain(tx, store.keys))
  opened.done = true
  const carryOut = async (tx: Tx) => {
    const changed = await work(tx)
    for (const more of changed.also ?? []) await appendAudit(tx, scope, more.act, more.chain ?? chain, more)
    if (!('unchanged' in changed)) await appendAudit(tx, scope, changed.act ?? act, chain, changed)
    return changed.result
  }
  return inLine(store.db, chain, AT_ONCE, () =>
    persist(() => (store.db as Database).transaction().execute(carryOut), began),
  )
}

/**
 * The door for what the service notes by itself (projections, streams, sign-ins): a transaction without an
 * audit entry. A handler reaches it only through a verb that has checked the right. `work` may run again, as
 * in `change`.
 */
export async function record<T>(store: Store, work: (tx: Tx) => Promise<T>): Promise<T> {
  return persist(() => (store.db as Database).transaction().execute(work))
}

/** Like `record` for a single statement: without BEGIN and COMMIT it saves two round trips. */
export async function write<T>(store: Pick<Store, 'db'>, statement: (tx: Tx) => Promise<T>): Promise<T> {
  return persist(() => statement(store.db as Tx))
}

/**
 * PostgreSQL's lock_not_available: another transaction holds a lock that the work needs, and a function did not wait
 * for it.
 */
const LOCKED = '55P03'

/** For how long work that fails with LOCKED is tried, and how long it rests between two tries, at most. */
const LOCKED_MS = 10_000
const LOCKED_REST_MS = 50

/**
 * How often work is tried if it fails with a serialization failure (40001), a deadlock (40P01), or because its
 * connection no longer knows a prepared statement (26000): that connection is dropped.
 */
const TRIES: Record<string, number> = { '40001': 5, '40P01': 5, '26000': 2 }

/** `began` is the time when the work was asked for, as performance.now() has it. */
async function persist<T>(work: () => Promise<T>, began = performance.now()): Promise<T> {
  let failed = 0
  let locked = 0
  for (;;) {
    try {
      return await work()
    } catch (error) {
      const code = (error as { code?: string }).code ?? ''
      if (code === LOCKED) {
        if (performance.now() - began > LOCKED_MS) throw error
        await pause(Math.random() * Math.min(10 * ++locked, LOCKED_REST_MS))
      } else if (++failed >= (TRIES[code] ?? 0)) throw error
    }
  }
}
