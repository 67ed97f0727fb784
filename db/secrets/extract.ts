import { sql } from 'kysely'
import type { Problem } from '../../workflows/problem.ts'
import { change } from '../change.ts'
import type { Tx } from '../connection.ts'
import { missing } from '../fault.ts'
import { readOwner } from '../owners.ts'
import type { Scope } from '../scope.ts'
import { addVersion, readStoredVersion } from '../workflows/versions.ts'
import { auditMoved, type MovedSecret } from './keeping.ts'
import { moveSecrets } from './moves.ts'

/** The result of moving the secrets of a workflow's graph: `version` is the new one, or the one that has none to move. */
export type Extraction = {
  workflowId: string
  version: number
  credentials: MovedSecret[]
  /** The secrets that are still in the graph, and why. */
  problems: Problem[]
}

/**
 * Moves the secrets that are written into a workflow's newest graph into credentials, which makes a new version
 * (BUILDER). With `dryRun` it only says what it would do. Throws NOT_FOUND, and CONFLICT if the team would have too
 * many credentials.
 */
export async function extractCredentials(
  scope: Scope,
  workflowId: string,
  { dryRun = false }: { dryRun?: boolean } = {},
): Promise<Extraction> {
  const teamId = await readOwner(scope.store, 'workflows', workflowId)
  return change(scope, 'CREDENTIALS_EXTRACTED', teamId, async (tx) => {
    const { name, version } = await lockNamed(tx, workflowId)
    const store = { ...scope.store, db: tx }
    const stored = await readStoredVersion(store, workflowId, version)
    const options = { teamId, name, known: stored.graph.nodes, requests: true, dryRun }
    const { graph, made, left } = await moveSecrets(tx, store, stored.graph, options)
    const result = { workflowId, version, credentials: made, problems: left }
    const isSame = graph.nodes.every((node, at) => node === stored.graph.nodes[at])
    if (dryRun || isSame) return { result, unchanged: true }
    const next = version + 1
    await addVersion(tx, workflowId, next, { ...stored, graph }, scope.userId)
    await tx
      .updateTable('workflows')
      .set({ version: next, updatedAt: sql<Date>`now()` })
      .where('id', '=', workflowId)
      .execute()
    return {
      result: { ...result, version: next },
      resourceId: workflowId,
      details: { name, version: next, made: made.length, left: left.length },
      also: auditMoved(made, workflowId),
    }
  })
}

async function lockNamed(tx: Tx, id: string): Promise<{ name: string; version: number }> {
  const row = await tx
    .selectFrom('workflows')
    .select(['name', 'version'])
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirst()
  if (!row) throw missing('workflow')
  return row
}
