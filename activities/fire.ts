import { hasEnded } from '../db/executions.ts'
import { Fault } from '../db/fault.ts'
import { cancelFiring, startFiring } from '../db/schedules.ts'
import type { FireActivities, Fired } from '../workflows/fire.ts'
import { PlanError } from '../workflows/plan.ts'
import { type Carrier, carryOut, noteStarted, prepareRun, refuseRun } from './outbox.ts'

/** The activities of the workflow that schedules start. What PostgreSQL's absence fails is repeated. */
export function createFireActivities(carrier: Carrier): FireActivities {
  const { store, metrics } = carrier
  return {
    async recordFiring(firing) {
      const executionId = await startFiring(store, firing).catch((error) => {
        // Deleted while we were at it.
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
      await carryOut(carrier, { kind: 'CANCEL', subjectId: executionId, key: '' })
    },
    hasEnded: (executionId) => hasEnded(store, executionId),
  }
}

async function prepareFired(carrier: Carrier, executionId: string): Promise<Fired | null> {
  try {
    const found = await prepareRun(carrier, executionId)
    if (!found) return null
    // One that waits for a place is started by whoever lets it in.
    return { executionId, run: found.run ?? null, teamId: found.teamId }
  } catch (error) {
    if (!(error instanceof PlanError)) throw error
    await refuseRun(carrier, executionId, error)
    return null
  }
}
