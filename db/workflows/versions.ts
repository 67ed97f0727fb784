import { sql } from 'kysely'
import { LRUCache } from 'lru-cache'
import type { Rules } from '../../workflows/expressions/rules.ts'
import { compareGraphs, type GraphDiff } from '../../workflows/graph/diff.ts'
import type { Graph, GraphNode } from '../../workflows/graph/graph.ts'
import { type CanvasNote, compareNotes, type NotesDiff } from '../../workflows/graph/notes.ts'
import { findLiterals } from '../../workflows/secrets/literals.ts'
import { covers } from '../acts.ts'
import { perDatabase } from '../cache.ts'
import { change } from '../change.ts'
import { json, type Tx } from '../connection.ts'
import { noteConnectors } from '../connectors/users.ts'
import { noteCredentials } from '../credentials/references.ts'
import { Fault, missing } from '../fault.ts'
import { readOwner } from '../owners.ts'
import { countRows, makePage, type Page, type PageRequest } from '../page.ts'
import { demand, type Scope, type Store } from '../scope.ts'
import { noteTables } from '../tables/users.ts'
import { type ApproverIds, presentApprovers } from './approvers.ts'
import { hideSecrets } from './secrets.ts'
import { describeVersion, selectVersions, type VersionItem } from './versionitems.ts'

export type VersionDetail = VersionItem & Graph & { workflowId: string; notes: CanvasNote[] }

const MAX_CACHED_BYTES = 64_000_000

/** Added to the size of each entry, so that the number of tiny graphs is bounded too. */
const ENTRY_BYTES = 4_000

/** A version as it is stored: whom its approvers meant, and the notes on the canvas, are kept beside the graph. */
export type StoredVersion = { graph: Graph; approverIds: ApproverIds | null; notes: CanvasNote[] }

const versionsOf = perDatabase(
  () =>
    new LRUCache<string, StoredVersion & { bytes: number }>({
      maxSize: MAX_CACHED_BYTES,
      sizeCalculation: ({ bytes }) => bytes + ENTRY_BYTES,
    }),
)

/**
 * The graph of a version. Versions never change, so graphs are cached and shared between callers, which must
 * not change them. Throws NOT_FOUND.
 */
export async function readVersion(store: Store, workflowId: string, version: number): Promise<Graph> {
  return (await readStoredVersion(store, workflowId, version)).graph
}

/** The graph of a version, if this process has it in memory. */
export function recallVersion(store: Store, workflowId: string, version: number): Graph | undefined {
  return versionsOf(store.db).get(`${workflowId}/${version}`)?.graph
}

/** Like readVersion, with whom the approvers meant. */
export async function readStoredVersion(
  store: Store,
  workflowId: string,
  version: number,
): Promise<StoredVersion> {
  const versions = versionsOf(store.db)
  const key = `${workflowId}/${version}`
  const known = versions.get(key)
  if (known) return known
  const row = await store.db
    .selectFrom('workflowVersions')
    .select(['nodes', 'edges', 'expressions', 'strict', 'approverIds', 'notes'])
    .select(
      sql<number>`octet_length(nodes::text) + octet_length(edges::text) + octet_length(notes::text)`.as(
        'bytes',
      ),
    )
    .where('workflowId', '=', workflowId)
    .where('version', '=', version)
    .executeTakeFirst()
  if (!row) throw new Fault('NOT_FOUND', 'There is no such version of the workflow')
  const { approverIds, bytes, notes, ...graph } = row
  const found = { graph, approverIds, notes, bytes } as unknown as StoredVersion & { bytes: number }
  versions.set(key, found)
  return found
}

/**
 * What else is known of a new version: the one that it continues (`from`) or restores, whether it is a draft, and what was
 * said when it was published.
 */
type Origin = {
  from?: number
  restoredFrom?: number | undefined
  draft?: boolean
  note?: string | null | undefined
}

/** Adds a version. The caller must have locked or just inserted the workflow's row, so the number is free. */
export async function addVersion(
  tx: Tx,
  { id: workflowId, teamId }: { id: string; teamId: string },
  version: number,
  { graph, approverIds, notes }: StoredVersion,
  createdBy: string | null,
  { from, restoredFrom, draft = false, note = null }: Origin = {},
): Promise<void> {
  await tx
    .insertInto('workflowVersions')
    .values({
      workflowId,
      version,
      nodes: json(graph.nodes),
      edges: json(graph.edges),
      expressions: graph.expressions ?? 1,
      strict: graph.strict ?? false,
      nodeCount: graph.nodes.length,
      approverIds: approverIds && json(approverIds),
      notes: json(notes),
      createdBy,
      restoredFrom: restoredFrom ?? null,
      draft,
      note,
      // Secrets that are still written into requests are left to the pass that moves all of them.
      secretsMoved: graph.nodes.every((node) => findLiterals(node, graph.expressions ?? 1).length === 0),
    })
    .execute()
  await noteCredentials(tx, workflowId, version, graph)
  await noteTables(tx, workflowId, version, graph)
  await noteConnectors(tx, version, { teamId, workflowId, from: restoredFrom ?? from }, graph)
}

/** A workflow's versions, the newest first (VIEWER). Throws NOT_FOUND. */
export async function listVersions(
  scope: Scope,
  workflowId: string,
  query: PageRequest,
): Promise<Page<VersionItem>> {
  await demandWorkflow(scope, workflowId)
  const found = scope.store.db.selectFrom('workflowVersions as v').where('v.workflowId', '=', workflowId)
  const total = await countRows(found)
  const rows = await selectVersions(scope.store, workflowId)
    .orderBy('v.version', 'desc')
    .limit(query.size)
    .offset(query.page * query.size)
    .execute()
  return makePage(rows.map(describeVersion), total, query)
}

/** A version with its graph (VIEWER). Only a BUILDER sees its secrets. Throws NOT_FOUND. */
export async function readVersionDetail(
  scope: Scope,
  workflowId: string,
  version: number,
): Promise<VersionDetail> {
  const { teamId, show } = await demandWorkflow(scope, workflowId)
  const row = await selectVersions(scope.store, workflowId)
    .select(['v.nodes', 'v.edges', 'v.approverIds', 'v.notes'])
    .where('v.version', '=', version)
    .executeTakeFirst()
  if (!row) throw noVersion(version)
  const { nodes, edges } = await presentVersion(scope.store, teamId, row)
  const notes = row.notes as unknown as CanvasNote[]
  return { workflowId, ...describeVersion(row), nodes: nodes.map(show), edges, notes }
}

/**
 * The changes from one version to another (VIEWER). For a secret that the caller may not see, the result says only that
 * it has changed. Throws NOT_FOUND.
 */
export async function compareVersions(
  scope: Scope,
  workflowId: string,
  from: number,
  to: number,
): Promise<VersionDiff> {
  const { teamId, show } = await demandWorkflow(scope, workflowId)
  const rows = await scope.store.db
    .selectFrom('workflowVersions')
    .select(['version', 'nodes', 'edges', 'expressions', 'strict', 'approverIds', 'notes'])
    .where('workflowId', '=', workflowId)
    .where('version', 'in', [from, to])
    .execute()
  const find = (version: number) => {
    const row = rows.find((one) => one.version === version)
    if (!row) throw noVersion(version)
    return row
  }
  const [before, after] = [find(from), find(to)]
  const changeOf = <K extends 'expressions' | 'strict'>(key: K) =>
    before[key] === after[key] ? {} : { [key]: { from: before[key], to: after[key] } }
  const present = (row: typeof before) => presentVersion(scope.store, teamId, row)
  const changes = compareGraphs(await present(before), await present(after), show)
  const [old, young] = [before.notes, after.notes] as unknown as [CanvasNote[], CanvasNote[]]
  const notes = compareNotes(old, young)
  return { from, to, ...changes, notes, ...changeOf('expressions'), ...changeOf('strict') }
}

/** What changed between two versions; `expressions` and `strict` are there only if they differ. */
type VersionDiff = GraphDiff & {
  from: number
  to: number
  notes: NotesDiff
  expressions?: { from: Rules; to: Rules }
  strict?: { from: boolean; to: boolean }
}

/**
 * Deletes a version (BUILDER). Throws NOT_FOUND, or CONFLICT if it is the published one or the draft, or has executions.
 */
export async function deleteVersion(scope: Scope, workflowId: string, version: number): Promise<void> {
  const teamId = await readOwner(scope.store, 'workflows', workflowId)
  await change(scope, 'WORKFLOW_VERSION_DELETED', teamId, async (tx) => {
    // The lock keeps other transactions from making this version the published one. If a start has read the version as
    // the published one, the later of that start and this deletion fails at the foreign key.
    const workflow = await tx
      .selectFrom('workflows')
      .select(['name', 'version', 'draftVersion'])
      .where('id', '=', workflowId)
      .forNoKeyUpdate()
      .executeTakeFirst()
    if (!workflow) throw missing('workflow')
    if (workflow.version === version) throw new Fault('CONFLICT', `Version ${version} is the published one`)
    if (workflow.draftVersion === version)
      throw new Fault('CONFLICT', `Version ${version} is the draft: discard that instead`)
    const { numDeletedRows } = await tx
      .deleteFrom('workflowVersions')
      .where('workflowId', '=', workflowId)
      .where('version', '=', version)
      .executeTakeFirst()
      .catch((error: { constraint?: string }) => {
        if (error.constraint !== 'executions_version_fkey') throw error
        throw new Fault('CONFLICT', `Version ${version} has executions, so it cannot be deleted`)
      })
    if (numDeletedRows === 0n) throw noVersion(version)
    return { result: undefined, resourceId: workflowId, details: { name: workflow.name, version } }
  })
}

/**
 * Checks that the caller may read the workflow, and returns a function that hides secrets they may not see.
 */
async function demandWorkflow(scope: Scope, id: string) {
  const teamId = await readOwner(scope.store, 'workflows', id)
  demand(scope, teamId, 'VIEWER')
  const show = covers(scope.roles.get(teamId)!, 'BUILDER') ? (node: GraphNode) => node : hideSecrets
  return { teamId, show }
}

/** The graph of a version's row, with the present addresses of its approvers. */
async function presentVersion(
  store: Store,
  teamId: string,
  row: { nodes: unknown; edges: unknown; approverIds: unknown },
): Promise<Graph> {
  const { nodes, edges } = row as Graph
  const present = await presentApprovers(store, teamId, row.approverIds as ApproverIds | null)
  return { nodes: nodes.map(present), edges }
}

function noVersion(version: number): Fault {
  return new Fault('NOT_FOUND', `The workflow has no version ${version}`)
}

/** That there is no draft, for reads (NOT_FOUND) or for what needs one (CONFLICT). */
export function noDraft(code: 'NOT_FOUND' | 'CONFLICT'): Fault {
  return new Fault(code, 'The workflow has no draft')
}
