import { Context } from '@temporalio/activity'
import { hasEnded, readIdentity } from '../../db/executions/executions.ts'
import { Fault } from '../../db/fault.ts'
import { cancelFiring, startFiring } from '../../db/schedules/schedules.ts'
import { PlanError } from '../../workflows/graph/compile.ts'
import type { FireActivities, Fired } from '../../workflows/run/fire.ts'
import { RUN_REFUSED } from '../../workflows/run/records.ts'
import { finalFailure } from '../run/failures.ts'
import { nameSchedule, readScheduleName } from '../schedules/schedules.ts'
import type { ErrandCarrier } from './carrier.ts'
import { carryOutErrand, noteStarted, prepareRun, refuseRun } from './outbox.ts'
import { nameSealed } from './sealer.ts'

/** The activities of the Temporal workflow that schedules start. They are retried during outages. */
export function createFireActivities(carrier: ErrandCarrier): FireActivities {
  const { store, metrics, taskQueue } = carrier
  return {
    async recordFiring(firing) {
      const { workflowId, nodeId } = firing
      demandFiring(nameSchedule(taskQueue, workflowId, nodeId) === readCaller())
      const executionId = await startFiring(store, firing).catch((error) => {
        // The workflow was deleted in the meantime.
        if (error instanceof Fault && error.code === 'NOT_FOUND') return null
        throw error
      })
      return executionId === null ? null : prepareFired(carrier, executionId)
    },
    async noteStarted(executionId) {
      await demandFired(executionId)
      if (await noteStarted(carrier, executionId)) metrics?.runsStarted.inc({ trigger: 'SCHEDULE' })
    },
    async cancelFired(executionId) {
      await demandFired(executionId)
      await cancelFiring(store, executionId)
      await carryOutErrand(carrier, { kind: 'CANCEL', subjectId: executionId, key: '' })
    },
    hasEnded: (executionId) => hasEnded(store, executionId),
  }

  async function demandFired(executionId: string): Promise<void> {
    const row = await readIdentity(store, executionId)
    const owner = readScheduleName(taskQueue, readCaller())
    demandFiring(!row || (row.trigger === 'SCHEDULE' && row.workflowId === owner?.workflowId))
  }
}

/** The id of the schedule whose firing calls the activity. */
function readCaller(): string {
  return nameSealed(Context.current().info.workflowExecution?.workflowId ?? '')
}

/** Ends a firing that was given what belongs to another schedule. */
function demandFiring(isOwn: boolean): void {
  if (!isOwn) throw finalFailure(RUN_REFUSED, 'This firing was given what belongs to another schedule')
}

async function prepareFired(carrier: ErrandCarrier, executionId: string): Promise<Fired | null> {
  try {
    const found = await prepareRun(carrier, executionId)
    if (!found) return null
    // A queued execution has no run yet: it is started when the gate lets it in.
    return { executionId, run: found.run ?? null, teamId: found.teamId }
  } catch (error) {
    if (!(error instanceof PlanError)) throw error
    await refuseRun(carrier, executionId, error)
    return null
  }
}
