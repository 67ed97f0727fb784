import { sql } from 'kysely'
import { change } from '../../change.ts'
import type { Db, Tx } from '../../connection.ts'
import { describeChange } from '../../redaction/difference.ts'
import { demandTeam, type Scope } from '../../scope.ts'

/** For how many days a team's audit entries are kept at least, and whether older ones are removed by themselves. */
export type RetentionPolicy = {
  retentionDays: number
  autoDeleteEnabled: boolean
  /** For how many days reports are kept that are asked for from now on. */
  reportRetentionDays: number
  lastPurgedAt: Date | null
}

export const MIN_RETENTION_DAYS = 30
export const MAX_RETENTION_DAYS = 36_500

const DEFAULTS: RetentionPolicy = {
  ...{ retentionDays: 365, autoDeleteEnabled: false, reportRetentionDays: 365 },
  lastPurgedAt: null,
}

/** Reads the policy of a team (ADMIN). Throws FORBIDDEN, and NOT_FOUND if there is no such team. */
export async function readRetention(scope: Scope, teamId: string): Promise<RetentionPolicy> {
  await demandTeam(scope, teamId, 'ADMIN')
  return findPolicy(scope.store.db, teamId)
}

/** Changes the policy of a team (ADMIN), and keeps what is not given. Throws as `change`. */
export async function updateRetention(
  scope: Scope,
  teamId: string,
  input: {
    retentionDays: number
    autoDeleteEnabled?: boolean | undefined
    reportRetentionDays?: number | undefined
  },
): Promise<RetentionPolicy> {
  return change(scope, 'AUDIT_RETENTION_UPDATED', teamId, async (tx) => {
    await addPolicy(tx, teamId)
    const { lastPurgedAt, ...before } = await findPolicy(tx, teamId, { locked: true })
    const { retentionDays, autoDeleteEnabled = before.autoDeleteEnabled } = input
    const { reportRetentionDays = before.reportRetentionDays } = input
    const after = { retentionDays, autoDeleteEnabled, reportRetentionDays }
    const result = { ...after, lastPurgedAt }
    const details = describeChange(before, after)
    if (details.changed.length === 0) return { result, unchanged: true }
    await tx.updateTable('auditRetention').set(after).where('teamId', '=', teamId).execute()
    return { result, resourceId: teamId, details }
  })
}

/** The policy of a team; the caller must have checked the right. `locked`: it cannot be changed until the commit. */
export async function findPolicy(
  db: Db,
  teamId: string,
  { locked = false }: { locked?: boolean } = {},
): Promise<RetentionPolicy> {
  const found = await db
    .selectFrom('auditRetention')
    .select(['retentionDays', 'autoDeleteEnabled', 'reportRetentionDays', 'lastPurgedAt'])
    .where('teamId', '=', teamId)
    .$if(locked, (query) => query.forUpdate())
    .executeTakeFirst()
  return found ?? DEFAULTS
}

/** Makes sure that the team has a row, which can be locked. */
export async function addPolicy(tx: Tx, teamId: string): Promise<void> {
  await sql`insert into audit_retention (team_id) values (${teamId}) on conflict do nothing`.execute(tx)
}
