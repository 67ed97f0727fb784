// The entry of the bundle where workers are versioned, which the other entry's workflows must know: Temporal refuses
// what a worker without a version says about versions.
import { setWorkflowOptions } from '@temporalio/workflow'
import { fire } from './entry.ts'

// A firing lives as long as its run, over all of the run's Temporal runs. Pinned as runs are, it would hold its version
// for that long; so it moves to the current one at its next task.
setWorkflowOptions({ versioningBehavior: 'AUTO_UPGRADE' }, fire)

export { runGraph } from './entry.ts'
export { fire }
