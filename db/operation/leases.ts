import { sql } from 'kysely'
import { write } from '../change.ts'
import type { Store } from '../scope.ts'

/** A lease that was not renewed for so long has expired. They are renewed every second. */
const LEASE_SECONDS = 5

/** After this time another process takes over the work about a lost one. */
const CLAIM_SECONDS = 60

/** A process whose lease has expired. The same `renewed` says that it has not renewed it since. */
export type ExpiredLease = { process: string; renewed: string }

/**
 * Renews the lease of a process, and returns those of others that have expired. It does not wait for the disk:
 * a renewal that is lost with PostgreSQL's process follows again a second later.
 */
export async function renewLease(
  store: Store,
  { process, place }: { process: string; place: string | null },
): Promise<ExpiredLease[]> {
  const { rows } = await write(store, (tx) =>
    sql<ExpiredLease>`
    with mine as (
      insert into worker_leases (process, place) values (${process}, ${place})
      on conflict (process) do update set renewed_at = now(), claimed_at = null
      returning set_config('synchronous_commit', 'off', true))
    select process, renewed_at::text as renewed from worker_leases, mine
    where process <> ${process} and renewed_at < now() - ${LEASE_SECONDS} * interval '1 second'
      and (claimed_at is null or claimed_at < now() - ${CLAIM_SECONDS} * interval '1 second')`.execute(tx),
  )
  return rows
}

/**
 * Whether a process is alive, as far as that can be known. Leases are compared with the newest of all, so that no
 * process seems to be gone after a time in which PostgreSQL could not be written to. Unless the caller `knowsLost`,
 * right after such a time, every lease that is not claimed counts as held.
 */
export async function holdsLease(store: Store, process: string, knowsLost: boolean): Promise<boolean> {
  const { rows } = await sql<{ held: boolean }>`
    select renewed_at >= case when ${knowsLost}::boolean
      then (select max(renewed_at) from worker_leases) - ${LEASE_SECONDS} * interval '1 second'
      else to_timestamp(0) end as held from worker_leases where process = ${process}`.execute(store.db)
  return rows[0]?.held ?? false
}

/**
 * Claims the work about a lost process: false if another process has claimed it already, or if the lost one has renewed
 * its lease. From then on it has no lease.
 */
export async function claimLost(store: Store, { process, renewed }: ExpiredLease): Promise<boolean> {
  const claimed = await write(store, (tx) =>
    sql`update worker_leases set renewed_at = '-infinity', claimed_at = now()
    where process = ${process} and renewed_at::text = ${renewed}
      and (claimed_at is null or claimed_at < now() - ${CLAIM_SECONDS} * interval '1 second')
    returning process`.execute(tx),
  )
  return claimed.rows.length > 0
}

/** Goes on with what was claimed: false if the process has renewed its lease, so that it is not lost. */
export async function keepClaim(store: Store, process: string): Promise<boolean> {
  const kept = await write(store, (tx) =>
    sql`update worker_leases set claimed_at = now()
    where process = ${process} and renewed_at = '-infinity' returning process`.execute(tx),
  )
  return kept.rows.length > 0
}

/** The leases of the processes that ran on this data folder before. */
export async function listFormer(store: Store, process: string, place: string): Promise<ExpiredLease[]> {
  const { rows } = await sql<ExpiredLease>`
    select process, renewed_at::text as renewed from worker_leases
    where place = ${place} and process <> ${process}`.execute(store.db)
  return rows
}

/** Forgets a lost process, unless it has turned up again. */
export async function forgetLost(store: Store, process: string): Promise<void> {
  await write(store, (tx) =>
    sql`delete from worker_leases where process = ${process} and renewed_at = '-infinity'`.execute(tx),
  )
}

/** Ends the lease of a process that has put down all its work. */
export async function endLease(store: Store, process: string): Promise<void> {
  await write(store, (tx) => tx.deleteFrom('workerLeases').where('process', '=', process).execute())
}

/**
 * The open executions in which a lost process may have had an attempt: those first of which an attempt is
 * known, then the youngest, since an attempt that has just begun is not known yet. `waiting` are the types of
 * the nodes that no attempt carries out.
 */
export async function listMaybeHeld(store: Store, waiting: string[], limit: number): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`
    select id from executions e
    where status in ('PENDING', 'RUNNING') and queued_at is null
    order by exists (
        select from node_executions n
        where n.execution_id = e.id and n.status = 'RUNNING' and node_type <> all(${waiting}::text[])) desc,
      status = 'RUNNING' desc, coalesce(started_at, created_at) desc
    limit ${limit}`.execute(store.db)
  return rows.map(({ id }) => id)
}
