import { fileURLToPath } from 'node:url'
import { bundleWorkflowCode, DefaultLogger, type WorkflowBundleWithSourceMap } from '@temporalio/worker'
import { FAILURE_CONVERTER } from '../../activities/temporal/codec.ts'

const ENTRY = fileURLToPath(new URL('../../workflows/run/entry.ts', import.meta.url))
/** The entry of workers that are versioned. */
export const VERSIONED_ENTRY = fileURLToPath(new URL('../../workflows/run/versioned.ts', import.meta.url))

/** Bundles the workflow code into one script: the run, and the workflow that schedules start. */
export function bundleWorkflows(workflowsPath = ENTRY): Promise<WorkflowBundleWithSourceMap> {
  return bundleWorkflowCode({
    workflowsPath,
    // Evaluated once instead of for every run, so that it stays compiled. This is safe because no module of
    // ours keeps a run's state.
    preloadModules: ['@temporalio/workflow', workflowsPath],
    failureConverterPath: FAILURE_CONVERTER,
    logger: new DefaultLogger('WARN'),
  })
}
