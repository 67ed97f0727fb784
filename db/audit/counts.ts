import { type RawBuilder, sql } from 'kysely'
import { record } from '../change.ts'
import type { Db, Tx } from '../connection.ts'
import { lockFor } from '../locks.ts'
import type { Store } from '../scope.ts'
import { personBehind, type ViewFilter, type ViewSpan } from './filter.ts'

/** How many numbers of a chain are counted together. Never changes: what is stored is by these blocks. */
const AUDIT_BLOCK = 4_096

/** The number of blocks that one transaction counts. */
const AT_ONCE = 8

/**
 * Counts the entries of all chains by what lists filter by, in blocks that are complete. Any number of processes may do so.
 * Stops early when `signal` is aborted.
 */
export async function countAuditBlocks(store: Store, signal?: AbortSignal): Promise<void> {
  const { rows } = await sql<{ id: string }>`
    select h.team_id as id from audit_heads h left join audit_count_folds f using (team_id)
    where h.seq >= coalesce(f.until, 0) + ${AUDIT_BLOCK} order by 1`.execute(store.db)
  for (const { id } of rows) while (!signal?.aborted && (await record(store, (tx) => countSome(tx, id))));
}

/** Counts the next blocks of a chain, and returns whether there were any. */
async function countSome(tx: Tx, teamId: string): Promise<boolean> {
  await lockFor(tx, 'auditChains', teamId)
  const base = sql`(select max(base_seq) from audit_anchors where team_id = ${teamId})`
  const { rows } = await sql<{ after: number; until: number }>`
    select after, least(after + ${AUDIT_BLOCK * AT_ONCE}::bigint, seq / ${AUDIT_BLOCK} * ${AUDIT_BLOCK}) as until
    from audit_heads h, lateral (select greatest(coalesce(${base} / ${AUDIT_BLOCK} * ${AUDIT_BLOCK}, 0),
      coalesce((select until from audit_count_folds where team_id = ${teamId}), 0)) as after) begun
    where h.team_id = ${teamId}`.execute(tx)
  const { after, until } = rows[0] ?? { after: 0, until: 0 }
  if (after >= until) return false
  await sql`
    insert into audit_counts (team_id, block, action, resource_type, outcome, person, n)
    select ${teamId}, (seq - 1) / ${AUDIT_BLOCK}, action, resource_type, outcome, ${personBehind}, count(*)
    from audit_entries where team_id = ${teamId} and seq > ${after} and seq <= ${until} group by 2, 3, 4, 5, 6`.execute(
    tx,
  )
  await sql`delete from audit_counts where team_id = ${teamId} and (block + 1) * ${AUDIT_BLOCK} <= ${base}`.execute(
    tx,
  )
  await sql`insert into audit_count_folds (team_id, until) values (${teamId}, ${until})
    on conflict (team_id) do update set until = excluded.until`.execute(tx)
  return true
}

/** The entries of a chain are counted anew: some may be gone. The caller holds the chain's lock. */
export async function forgetAuditCounts(tx: Tx, teamId: string): Promise<void> {
  await sql`delete from audit_counts where team_id = ${teamId}`.execute(tx)
  await sql`delete from audit_count_folds where team_id = ${teamId}`.execute(tx)
}

/**
 * How many entries of a span a filter finds: those of whole blocks from the counts, the rest from the entries. All of it is
 * one statement, so that it is right while blocks are being counted.
 */
export async function countAudit(
  db: Db,
  teamId: string,
  filter: ViewFilter,
  { low, high }: ViewSpan,
): Promise<number> {
  const { action, userId, resourceType, resourceId, outcome } = filter
  const found = matchAll([
    [sql`action`, action],
    [sql`resource_type`, resourceType],
    [sql`outcome`, outcome],
  ])
  const ofEntry = matchAll([
    [personBehind, userId],
    [sql`resource_id`, resourceId],
  ])
  const counted = (after: RawBuilder<unknown>, until: RawBuilder<unknown>) =>
    sql`(select count(*) from audit_entries where team_id = ${teamId} and seq > ${after} and seq <= ${until}
      and ${found} and ${ofEntry})`
  // Resources are too many for counts; each has few entries.
  const until =
    resourceId === undefined ? sql`(select until from audit_count_folds where team_id = ${teamId})` : sql`0`
  const { rows } = await sql<{ total: number }>`
    with span as materialized (
      select ${low}::bigint - 1 as after, ${high}::bigint as until,
        (${low}::bigint + ${AUDIT_BLOCK - 2}) / ${AUDIT_BLOCK} as first,
        least(${high}::bigint, coalesce(${until}, 0)) / ${AUDIT_BLOCK} as last)
    select case when first >= last then ${counted(sql`after`, sql`until`)}
      else ${counted(sql`after`, sql`first * ${AUDIT_BLOCK}`)} + ${counted(sql`last * ${AUDIT_BLOCK}`, sql`until`)}
        + (select coalesce(sum(n), 0) from audit_counts
          where team_id = ${teamId} and block >= first and block < last and ${found}
            and ${matchAll([[sql`person`, userId]])}) end::bigint as total
    from span`.execute(db)
  return rows[0]!.total
}

function matchAll(conditions: [RawBuilder<unknown>, string | undefined][]): RawBuilder<unknown> {
  const asked = conditions.filter(([, value]) => value !== undefined)
  return asked.length === 0
    ? sql`true`
    : sql.join(
        asked.map(([column, value]) => sql`${column} = ${value}`),
        sql` and `,
      )
}
