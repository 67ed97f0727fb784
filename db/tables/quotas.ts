import { sql } from 'kysely'
import type { Tx } from '../connection.ts'
import { Fault } from '../fault.ts'
import type { TeamPlan } from '../people/teams.ts'

/** What a team may keep in its data tables, by its plan. `bytes` are those of the values as JSON. */
export const TABLE_QUOTAS = {
  FREE: { tables: 5, rows: 50_000, bytes: 50_000_000 },
  TEAM: { tables: 50, rows: 1_000_000, bytes: 1_000_000_000 },
  BUSINESS: { tables: 200, rows: 5_000_000, bytes: 5_000_000_000 },
  ENTERPRISE: { tables: 500, rows: 20_000_000, bytes: 20_000_000_000 },
} as const satisfies Record<TeamPlan, { tables: number; rows: number; bytes: number }>

/** The team's plan, with what it allows. */
export async function readQuota(tx: Tx, teamId: string) {
  const { plan } = await tx
    .selectFrom('teams')
    .select('plan')
    .where('id', '=', teamId)
    .executeTakeFirstOrThrow()
  return { plan, ...TABLE_QUOTAS[plan as TeamPlan] }
}

/**
 * Counts what a table, which the transaction holds, has more or less than before. Others who write to tables of the team
 * wait from here to the commit, so that it comes last. Throws CONFLICT if the team would have more than its plan allows.
 */
export async function countRowsOf(
  tx: Tx,
  { id, teamId }: { id: string; teamId: string },
  { rows, bytes }: { rows: number; bytes: number },
): Promise<void> {
  await sql`update data_tables set row_count = row_count + ${rows}, bytes = bytes + ${bytes} where id = ${id}`.execute(
    tx,
  )
  const used = await sql<{ rowCount: number; bytes: number }>`
    insert into data_table_usage as u (team_id, row_count, bytes) values (${teamId}, ${rows}, ${bytes})
    on conflict (team_id) do update set row_count = u.row_count + excluded.row_count, bytes = u.bytes + excluded.bytes
    returning row_count, bytes`.execute(tx)
  const now = used.rows[0]!
  if (rows <= 0 && bytes <= 0) return
  const { plan, ...quota } = await readQuota(tx, teamId)
  const write = (count: number) => count.toLocaleString('en-US')
  if (rows > 0 && now.rowCount > quota.rows)
    throw new Fault(
      'CONFLICT',
      `A team with the plan ${plan} can have ${write(quota.rows)} rows in its data tables: delete some`,
    )
  if (bytes > 0 && now.bytes > quota.bytes)
    throw new Fault(
      'CONFLICT',
      `A team with the plan ${plan} can have ${write(quota.bytes)} bytes in its data tables: delete some rows`,
    )
}
