import { findErrorTrigger, type Graph } from '../../workflows/graph/graph.ts'
import type { CanvasNote } from '../../workflows/graph/notes.ts'
import { invalid } from '../fault.ts'
import type { Store } from '../scope.ts'
import { readVersion } from './versions.ts'

/**
 * At most `limit` executions with the same key at once; of the whole workflow if `key` is null. An execution
 * that finds no place waits for one (queue), is refused (reject), or takes the place of the oldest (replace).
 */
export type ConcurrencySettings = { limit: number; key: string | null; policy: ConcurrencyPolicy }

export const CONCURRENCY_POLICIES = ['queue', 'reject', 'replace'] as const
type ConcurrencyPolicy = (typeof CONCURRENCY_POLICIES)[number]

/** The settings for the executions of a workflow, independent of its version but for `strict` and `notes`. */
export type WorkflowSettings = {
  /** The time limit of an execution; null means none. */
  timeoutMs: number | null
  concurrency: ConcurrencySettings | null
  /** The workflow to execute, from its ERROR_TRIGGER, when an execution has failed. */
  errorWorkflowId: string | null
  /** IANA time zone for schedules and dates that do not name one, also `$execution.timezone`. */
  timezone: string | null
  /** Ended executions are deleted if they ended `days` ago, or if there are `count` newer ones. */
  retention: { days: number | null; count: number | null } | null
  /** Whether the input of an execution, and the outputs of its nodes, are kept after its end. */
  saveData: { inputs: boolean; outputs: boolean }
  /** Whether an expression that reads a path which does not exist fails. It is kept with the graph's version. */
  strict: boolean
  /** About how many tokens of a chat's earlier messages an execution gets. */
  chatHistoryTokens: number
  /** What its authors have written onto the canvas; it means nothing to executions. It is kept with the version too. */
  notes: CanvasNote[]
}

export const DEFAULT_SETTINGS: WorkflowSettings = {
  timeoutMs: null,
  concurrency: null,
  errorWorkflowId: null,
  timezone: null,
  retention: null,
  saveData: { inputs: true, outputs: true },
  strict: false,
  chatHistoryTokens: 8_000,
  notes: [],
}

/**
 * The settings of a workflow's row: with the defaults of keys that are newer, and with the `strict` of the version's
 * graph, which only those need who show or change it.
 */
export function readSettings(
  stored: unknown,
  { strict = false }: Pick<Graph, 'strict'> = {},
): WorkflowSettings {
  return { ...DEFAULT_SETTINGS, ...(stored as Partial<WorkflowSettings>), strict }
}

/** What a workflow's row keeps of its settings. */
export function storeSettings({ strict: _, ...kept }: WorkflowSettings): Omit<WorkflowSettings, 'strict'> {
  return kept
}

/**
 * Throws INVALID unless the error workflow belongs to the team and has an ERROR_TRIGGER. `own` is the
 * workflow that has the setting, with its new graph, since it may name itself.
 */
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
