import type { Scope } from '../scope.ts'

/** Temporal's own web UI, as its users' browsers reach it, and the namespace that the executions run in. */
export type TemporalUi = { url: string; namespace: string }

/** Where an execution is in Temporal. `runId` is that of its newest run: a long one goes on in others. */
export type TemporalPlace = {
  namespace: string
  workflowId: string
  runId: string
  /** The newest run's history in the UI, and the list of all the execution's runs. */
  url: string
  runsUrl: string
}

/**
 * Where an execution is in Temporal's UI. The UI shows the runs of all teams, so only the instance's admin is told;
 * null for others, without a UI, and while no run is known.
 */
export function showTemporal(
  { instanceAdmin }: Scope,
  ui: TemporalUi | undefined,
  { id, runId }: { id: string; runId: string | null },
): TemporalPlace | null {
  if (!ui || !instanceAdmin || runId === null) return null
  const { url, namespace } = ui
  const runs = `${url}/namespaces/${encodeURIComponent(namespace)}/workflows`
  return {
    namespace,
    workflowId: id,
    runId,
    url: `${runs}/${id}/${encodeURIComponent(runId)}/history`,
    runsUrl: `${runs}?query=${encodeURIComponent(`WorkflowId="${id}"`)}`,
  }
}
