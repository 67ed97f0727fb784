import { sql } from 'kysely'
import type { Graph } from '../../workflows/graph/graph.ts'
import { change, write } from '../change.ts'
import { json } from '../connection.ts'
import { noteCredentials } from '../credentials/references.ts'
import { type Store, serviceScope } from '../scope.ts'
import { auditMoved, type MovedSecret, moveSecrets } from './moves.ts'

/** How many versions of a workflow are read and written in one transaction. A graph has at most 1 MB. */
const BATCH = 20

const ACTOR = { kind: 'SYSTEM', id: null, name: 'upgrade' } as const

/** The numbers of moved secrets, and the workflows in which the move failed. */
export type MovedVersions = {
  versions: number
  credentials: number
  failed: { workflowId: string; error: unknown }[]
}

/**
 * Moves the secrets that are written into stored versions into credentials, version by version and in place, since a
 * version that is under way goes on as it was: no id, no number and no path of it changes. Equal secrets of a workflow
 * share a credential. A process of the release before cannot use these, so none may be left. It may be ended at any
 * time, done again, and done by several processes at once: each workflow is locked. A workflow in which it fails is
 * left as it was.
 */
export async function moveStoredSecrets(store: Store, signal?: AbortSignal): Promise<MovedVersions> {
  const done: MovedVersions = { versions: 0, credentials: 0, failed: [] }
  // Most versions have no node that could have a secret.
  await write(store, (tx) =>
    sql`update workflow_versions set secrets_moved = true
      where not secrets_moved and nodes::text !~ 'WEBHOOK_TRIGGER|CRYPTO|HTTP_REQUEST'`.execute(tx),
  )
  let after = '00000000-0000-0000-0000-000000000000'
  while (!signal?.aborted) {
    const workflow = await store.db
      .selectFrom('workflowVersions as v')
      .innerJoin('workflows as w', 'w.id', 'v.workflowId')
      .select(['w.id', 'w.teamId', 'w.name'])
      .where('v.secretsMoved', '=', false)
      .where('v.workflowId', '>', after)
      .orderBy('v.workflowId')
      .limit(1)
      .executeTakeFirst()
    if (!workflow) break
    try {
      for (let moved = BATCH; moved === BATCH && !signal?.aborted; ) {
        const batch = await moveBatch(store, workflow)
        moved = batch.versions
        done.versions += batch.versions
        done.credentials += batch.credentials
      }
    } catch (error) {
      done.failed.push({ workflowId: workflow.id, error })
    }
    after = workflow.id
  }
  return done
}

async function moveBatch(
  store: Store,
  { id, teamId, name }: { id: string; teamId: string; name: string },
): Promise<{ versions: number; credentials: number }> {
  const scope = serviceScope(store, ACTOR, [[teamId, 'BUILDER']])
  return change(scope, 'CREDENTIALS_EXTRACTED', teamId, async (tx) => {
    const own = { ...store, db: tx }
    // A transaction that saves a version waits, and so does another process that does the same.
    await tx.selectFrom('workflows').select('id').where('id', '=', id).forUpdate().execute()
    const rows = await tx
      .selectFrom('workflowVersions')
      .select(['version', 'nodes', 'edges', 'expressions'])
      .where('workflowId', '=', id)
      .where('secretsMoved', '=', false)
      .orderBy('version')
      .limit(BATCH)
      .execute()
    const before = await tx
      .selectFrom('workflowVersions')
      .select('nodes')
      .where('workflowId', '=', id)
      .where('secretsMoved', '=', true)
      .orderBy('version', 'desc')
      .limit(1)
      .executeTakeFirst()
    let known = (before?.nodes ?? []) as Graph['nodes']
    const found = new Map<string, MovedSecret>()
    let changed = 0
    for (const { version, ...row } of rows) {
      const graph = row as unknown as Graph
      const moved = await moveSecrets(tx, own, graph, { teamId, name, known, requests: true, found })
      const isSame = moved.graph.nodes.every((node, at) => node === graph.nodes[at])
      await tx
        .updateTable('workflowVersions')
        .set({ secretsMoved: true, ...(isSame ? {} : { nodes: json(moved.graph.nodes) }) })
        .where('workflowId', '=', id)
        .where('version', '=', version)
        .execute()
      if (!isSame) {
        changed++
        const named = tx.deleteFrom('versionCredentials').where('workflowId', '=', id)
        await named.where('version', '=', version).execute()
        await noteCredentials(tx, id, version, moved.graph)
      }
      known = moved.graph.nodes
    }
    const all = [...found.values()]
    const result = { versions: rows.length, credentials: all.length }
    if (changed === 0) return { result, unchanged: true }
    const [from, to] = [rows[0]?.version, rows.at(-1)?.version]
    const details = { name, versions: changed, from, to, made: all.length }
    return { result, resourceId: id, details, also: auditMoved(all, id) }
  })
}
