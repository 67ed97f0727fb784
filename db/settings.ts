import { findErrorTrigger, type Graph } from '../workflows/graph.ts'
import { invalid } from './fault.ts'
import type { Store } from './scope.ts'
import { readVersion } from './versions.ts'

/**
 * At most `limit` runs of a key at once; of all together where there is none. A run that finds no place waits for
 * one, is refused, or takes the place of the oldest.
 */
export type Concurrency = { limit: number; key: string | null; policy: 'queue' | 'reject' | 'replace' }

/** What holds for the runs of a workflow, whatever the version. */
export type Settings = {
  /** The time limit of a run; null is none. */
  timeoutMs: number | null
  concurrency: Concurrency | null
  /** The workflow that runs, from its ERROR_TRIGGER, when a run has failed. */
  errorWorkflowId: string | null
  /** IANA; of schedules and dates that name none, and `$execution.timezone`. */
  timezone: string | null
  /** Ended runs go when they ended `days` ago, and when `count` younger runs are there. */
  retention: { days: number | null; count: number | null } | null
  /** Whether what a run was started with, and what its nodes put out, is kept beyond its end. */
  saveData: { inputs: boolean; outputs: boolean }
}

export const DEFAULTS: Settings = {
  timeoutMs: null,
  concurrency: null,
  errorWorkflowId: null,
  timezone: null,
  retention: null,
  saveData: { inputs: true, outputs: true },
}

/** Stored settings may be older than some of their keys. */
export function readSettings(stored: unknown): Settings {
  return { ...DEFAULTS, ...(stored as Partial<Settings>) }
}

/** Throws INVALID unless the error workflow is one of the team with an ERROR_TRIGGER. `own` is the workflow itself. */
export async function checkErrorWorkflow(
  store: Store,
  teamId: string,
  errorWorkflowId: string,
  own?: { id: string; graph: Graph },
): Promise<void> {
  const problem = { path: 'settings.errorWorkflowId', message: 'must be a workflow of this team' }
  let graph = own?.id === errorWorkflowId ? own.graph : undefined
  if (!graph) {
    const row = await store.db
      .selectFrom('workflows')
      .select(['teamId', 'version'])
      .where('id', '=', errorWorkflowId)
      .executeTakeFirst()
    if (row?.teamId !== teamId) throw invalid([problem])
    graph = await readVersion(store, errorWorkflowId, row.version)
  }
  if (findErrorTrigger(graph)) return
  throw invalid([{ ...problem, message: 'must be a workflow with an ERROR_TRIGGER' }])
}
