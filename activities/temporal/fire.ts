import { hasEnded } from '../../db/executions/executions.ts'
import { Fault } from '../../db/fault.ts'
import { cancelFiring, startFiring } from '../../db/starts/schedules.ts'
import { PlanError } from '../../workflows/graph/compile.ts'
import type { FireActivities, Fired } from '../../workflows/run/fire.ts'
import { carryOutErrand, type ErrandCarrier, noteStarted, prepareRun, refuseRun } from './outbox.ts'

/** The activities of the Temporal workflow that schedules start. They are retried during outages. */
export function createFireActivities(carrier: ErrandCarrier): FireActivities {
  const { store, metrics } = carrier
  return {
    async recordFiring(firing) {
      const executionId = await startFiring(store, firing).catch((error) => {
        // The workflow was deleted in the meantime.
        if (error instanceof Fault && error.code === 'NOT_FOUND') return null
        throw error
      })
      return executionId === null ? null : prepareFired(carrier, executionId)
    },
    async noteStarted(executionId) {
      if (await noteStarted(carrier, executionId)) metrics?.runsStarted.inc({ trigger: 'SCHEDULE' })
    },
    async cancelFired(executionId) {
      await cancelFiring(store, executionId)
      await carryOutErrand(carrier, { kind: 'CANCEL', subjectId: executionId, key: '' })
    },
    hasEnded: (executionId) => hasEnded(store, executionId),
  }
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
