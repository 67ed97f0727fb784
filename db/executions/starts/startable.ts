import { type RawBuilder, sql } from 'kysely'
import type { Graph } from '../../../workflows/graph/graph.ts'
import { createMemory } from '../../memory.ts'
import type { Store } from '../../scope.ts'
import { readSettings, type WorkflowSettings } from '../../workflows/settings.ts'
import { noDraft, readVersion, recallVersion } from '../../workflows/versions.ts'

/**
 * A workflow as it is now, with all that starting an execution needs; `graph` is that of `version`, the published one
 * unless another was chosen (see chooseVersion).
 */
export type StartableWorkflow = {
  id: string
  teamId: string
  name: string
  version: number
  draftVersion: number | null
  active: boolean
  settings: WorkflowSettings
  graph: Graph
  /** Differs after every change of the workflow's row. */
  stamp?: string
}

/**
 * The workflow if it exists and `admits` returns true for its team, else undefined. `admits` may throw, to
 * report more than that there is no such workflow.
 */
export async function readStartable(
  store: Store,
  id: string,
  admits: (teamId: string) => boolean,
): Promise<StartableWorkflow | undefined> {
  const remember = rowsOf(store.db).begin()
  const row = await store.db
    .selectFrom('workflows')
    .select(['id', 'teamId', 'name', 'version', 'draftVersion', 'active', 'settings'])
    .select(sql<string>`xmin::text`.as('stamp'))
    .where('id', '=', id)
    .executeTakeFirst()
  if (!row || !admits(row.teamId)) return undefined
  const { stamp, ...found } = row
  const workflow = { ...found, settings: readSettings(row.settings) }
  remember(id, { ...workflow, stamp }, `workflow:${id}`)
  return { ...workflow, graph: await readVersion(store, id, row.version) }
}

/**
 * The workflow from memory, with a stamp that its start is to check, since another process may have changed it a moment
 * ago; else as readStartable reads it.
 */
export async function findStartable(store: Store, id: string): Promise<StartableWorkflow | undefined> {
  const row = rowsOf(store.db).find(id)
  if (!row) return readStartable(store, id, () => true)
  return { ...row, graph: await readVersion(store, id, row.version) }
}

/** The version that a test executes: the one of this number, or the draft. */
export type VersionChosen = number | 'draft'

/**
 * The workflow with the version that was asked for, the published one if none was. `draft`: it is another one. Throws
 * NOT_FOUND for a version that there is not, and CONFLICT if there is no draft.
 */
export async function chooseVersion(
  store: Store,
  workflow: StartableWorkflow,
  chosen: VersionChosen | undefined,
): Promise<{ workflow: StartableWorkflow; draft: boolean }> {
  const version = chosen === 'draft' ? workflow.draftVersion : (chosen ?? workflow.version)
  if (version === null) throw noDraft('CONFLICT')
  if (version === workflow.version) return { workflow, draft: false }
  const graph = await readVersion(store, workflow.id, version)
  return { workflow: { ...workflow, version, graph }, draft: true }
}

const rowsOf = createMemory<Omit<StartableWorkflow, 'graph'>>(5_000)

/** The workflow as this process read it last, with its stamp; undefined if it has not, or its graph is not in memory. */
export function recallStartable(store: Store, id: string): StartableWorkflow | undefined {
  const row = rowsOf(store.db).findLast(id)
  const graph = row && recallVersion(store, id, row.version)
  return graph && { ...row, graph }
}

/** Whether the workflow's row is still as it was when it had its `stamp`; true if it has none. */
export function isUnchanged({ id, stamp }: StartableWorkflow): RawBuilder<boolean> {
  const known = stamp ?? null
  return sql<boolean>`(${known}::text is null or exists (select from workflows where id = ${id} and xmin::text = ${known}))`
}
