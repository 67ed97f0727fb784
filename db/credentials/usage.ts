import { sql } from 'kysely'
import { listCredentials } from '../../workflows/graph/credentials.ts'
import type { Db } from '../connection.ts'
import { readOwner } from '../owners.ts'
import { countRows, makePage, type Page, type PageRequest } from '../page.ts'
import { demand, type Scope } from '../scope.ts'
import { readVersion } from '../workflows/versions.ts'

/**
 * A workflow that names a credential: `nodes` in its published version, none if only others do; `inDraft`: its draft does;
 * `versions` is in how many it does.
 */
export type CredentialUsage = {
  workflowId: string
  workflowName: string
  active: boolean
  versions: number
  inDraft: boolean
  nodes: { id: string; name: string; type: string }[]
}

/** The active workflows whose published version names a credential, by name. */
export async function listActiveUsers(db: Db, id: string): Promise<{ id: string; name: string }[]> {
  return db
    .selectFrom('versionCredentials as c')
    .innerJoin('workflows as w', (join) =>
      join.onRef('w.id', '=', 'c.workflowId').onRef('w.version', '=', 'c.version'),
    )
    .select(['w.id', 'w.name'])
    .where('c.credentialId', '=', id)
    .where('w.active', '=', true)
    .orderBy('w.name')
    .execute()
}

/** The names of the enabled audit forwarders that sign in with a credential. */
export async function listForwarderUsers(db: Db, id: string): Promise<string[]> {
  const rows = await db
    .selectFrom('auditForwarders')
    .select('name')
    .where('credentialId', '=', id)
    .where('enabled', '=', true)
    .where('endsAt', 'is', null)
    .orderBy('name')
    .execute()
  return rows.map(({ name }) => name)
}

/** The names of the enabled notification channels that send with a credential. */
export async function listChannelUsers(db: Db, id: string): Promise<string[]> {
  const rows = await db
    .selectFrom('notificationChannels')
    .select('name')
    .where('credentialId', '=', id)
    .where('enabled', '=', true)
    .orderBy('name')
    .execute()
  return rows.map(({ name }) => name)
}

/** The names of the enabled scheduled reports that are sent with a credential. */
export async function listReportUsers(db: Db, id: string): Promise<string[]> {
  const rows = await db
    .selectFrom('scheduledReports')
    .select('name')
    .where('credentialId', '=', id)
    .where('enabled', '=', true)
    .orderBy('name')
    .execute()
  return rows.map(({ name }) => name)
}

/**
 * The workflows that name a credential (BUILDER): those that do now first, by name; then those of which the draft does,
 * and those of which only older versions do. Throws NOT_FOUND.
 */
export async function listCredentialUsage(
  scope: Scope,
  id: string,
  query: PageRequest,
): Promise<Page<CredentialUsage>> {
  const teamId = await readOwner(scope.store, 'credentials', id)
  demand(scope, teamId, 'BUILDER')
  const found = scope.store.db
    .selectFrom('workflows as w')
    .where('w.teamId', '=', teamId)
    .where('w.id', 'in', (eb) =>
      eb.selectFrom('versionCredentials as c').select('c.workflowId').where('c.credentialId', '=', id),
    )
  const total = await countRows(found)
  const rows = await found
    .select(['w.id as workflowId', 'w.name as workflowName', 'w.active', 'w.version'])
    .select(
      sql<number>`(select count(*) from version_credentials c
        where c.credential_id = ${id} and c.workflow_id = w.id)`.as('versions'),
    )
    .select(
      sql<boolean>`exists (select from version_credentials c
        where c.credential_id = ${id} and c.workflow_id = w.id and c.version = w.version)`.as('current'),
    )
    .select(
      sql<boolean>`exists (select from version_credentials c
        where c.credential_id = ${id} and c.workflow_id = w.id and c.version = w.draft_version)`.as(
        'inDraft',
      ),
    )
    .orderBy('current', 'desc')
    .orderBy('inDraft', 'desc')
    .orderBy('w.name')
    .orderBy('w.id')
    .limit(query.size)
    .offset(query.page * query.size)
    .execute()
  const content: CredentialUsage[] = []
  for (const { version, current, ...row } of rows) {
    const { nodes } = current ? await readVersion(scope.store, row.workflowId, version) : { nodes: [] }
    const naming = nodes.filter((node) => listCredentials(node).some((named) => named.id === id))
    content.push({ ...row, nodes: naming.map(({ id, name, type }) => ({ id, name, type })) })
  }
  return makePage(content, total, query)
}
