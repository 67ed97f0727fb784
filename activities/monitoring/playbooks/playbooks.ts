import type { Logger } from 'pino'
import { v5 as uuidv5 } from 'uuid'
import { isDatabaseAway } from '../../../db/connection.ts'
import { addExecution } from '../../../db/executions/starts/add.ts'
import { readStartable } from '../../../db/executions/starts/startable.ts'
import { Fault } from '../../../db/fault.ts'
import { findChannel } from '../../../db/monitoring/channels/channels.ts'
import { readSentNotice, type SentNotice } from '../../../db/monitoring/channels/deliveries.ts'
import type { PlaybookStep } from '../../../db/monitoring/playbooks/playbooks.ts'
import {
  type ClaimedPlaybookRun,
  endRun,
  noteOutcomes,
  postponeRun,
  queueDelivery,
  type StepOutcome,
  wasActed,
} from '../../../db/monitoring/playbooks/runs.ts'
import { type Store, serviceScope } from '../../../db/scope.ts'
import { updateWorkflow } from '../../../db/workflows/update.ts'
import { findStart } from '../../../workflows/graph/graph.ts'

/** How long a run is held without a sign of life: a step takes far less. */
export const RUN_LEASE_MS = 30_000

const RETRY_MS = 10_000

/** After so many tries a step that goes on failing in an unknown way is given up. */
const MAX_ATTEMPTS = 10

/**
 * Does the steps of a claimed run that are not done, one after the other; one that fails does not keep the others from
 * being done. Each has its effect once, also if the process dies between the effect and its note. Never throws.
 */
export async function runPlaybook(
  { store, log }: { store: Store; log: Logger },
  run: ClaimedPlaybookRun,
  stopped: AbortSignal,
): Promise<void> {
  const outcomes = [...run.outcomes]
  try {
    const notice = await readSentNotice(store, run.noticeId)
    if (!notice) return
    while (outcomes.length < run.steps.length) {
      if (stopped.aborted) return await postponeRun(store, run, 0)
      // The run stops once its playbook is disabled or deleted.
      if (!(await noteOutcomes(store, run, outcomes, RUN_LEASE_MS))) return
      const at = outcomes.length
      const said = await doStep(store, run, at, notice).catch((error) => excuse(run, error))
      outcomes.push({ ...said, endedAt: new Date().toISOString() })
    }
    if (!(await noteOutcomes(store, run, outcomes, RUN_LEASE_MS))) return
    await endRun(store, run, outcomes.some(({ status }) => status === 'FAILED') ? 'FAILED' : 'COMPLETED')
  } catch (error) {
    log.warn(
      { err: error, runId: run.id, teamId: run.teamId },
      'a playbook could not go on; it is tried again',
    )
    await postponeRun(store, run, RETRY_MS).catch(() => {})
  }
}

type EndedStep = Omit<StepOutcome, 'endedAt'>

const done = (message: string, more: { executionId?: string } = {}): EndedStep => ({
  status: 'DONE',
  message,
  ...more,
})
const failed = (message: string): EndedStep => ({ status: 'FAILED', message })

async function doStep(
  store: Store,
  run: ClaimedPlaybookRun,
  at: number,
  notice: SentNotice,
): Promise<EndedStep> {
  const step = run.steps[at]!
  if (step.type === 'NOTIFY') return notify(store, run, step.channelId)
  if (step.type === 'START_WORKFLOW') return startWorkflow(store, run, at, step, notice)
  const workflowId = step.workflowId ?? notice.workflowId
  if (workflowId === null) return failed('The notice is about no workflow')
  return deactivate(store, run, at, workflowId)
}

async function notify(store: Store, run: ClaimedPlaybookRun, channelId: string): Promise<EndedStep> {
  const channel = await findChannel(store.db, run.teamId, channelId)
  if (!channel) return failed('The team has no such channel any more')
  if (!channel.enabled) return failed(`The channel "${channel.name}" is disabled`)
  const isNew = await queueDelivery(store, run, channelId)
  return done(
    isNew ? `Sent to "${channel.name}"; see its deliveries` : `It goes to "${channel.name}" already`,
  )
}

/** Started at its trigger, also if it is inactive. Its id follows from the run, so that it is started once. */
async function startWorkflow(
  store: Store,
  run: ClaimedPlaybookRun,
  at: number,
  { workflowId, input }: PlaybookStep & { type: 'START_WORKFLOW' },
  notice: SentNotice,
): Promise<EndedStep> {
  const workflow = await readStartable(store, workflowId, (teamId) => teamId === run.teamId)
  if (!workflow) return failed('The team has no such workflow any more')
  const node = findStart(workflow.graph)
  if (!node) return failed(`The workflow "${workflow.name}" has no trigger to start at`)
  const { executionId } = await addExecution(store, workflow, {
    origin: 'PLAYBOOK',
    id: uuidv5(`step ${at}`, run.id),
    node,
    trigger: 'PLAYBOOK',
    data: { ...input, notice: { ...notice, createdAt: notice.createdAt.toISOString() } },
    by: { kind: 'SYSTEM', id: null, name: run.playbookName },
    swept: true,
  })
  return done(`Started "${workflow.name}"`, { executionId })
}

async function deactivate(
  store: Store,
  run: ClaimedPlaybookRun,
  at: number,
  workflowId: string,
): Promise<EndedStep> {
  const { teamId } = run
  const workflow = await readStartable(store, workflowId, (team) => team === teamId)
  if (!workflow) return failed('The team has no such workflow any more')
  const requestId = `playbook-${run.id}-${at}`
  // A process may have done this and died before it could note it. It must not be done again: a user may have
  // activated the workflow since.
  const since = { requestId, resourceId: workflowId, since: run.createdAt }
  if (run.attempts > 1 && (await wasActed(store, { teamId, ...since })))
    return done(`Deactivated "${workflow.name}"`)
  if (!workflow.active) return done(`"${workflow.name}" was inactive already`)
  const actor = { kind: 'SYSTEM', id: null, name: `playbook ${run.playbookName}` } as const
  const scope = { ...serviceScope(store, actor, [[teamId, 'BUILDER']]), requestId }
  await updateWorkflow(scope, workflowId, { active: false })
  return done(`Deactivated "${workflow.name}"`)
}

/** What a step says that has thrown: only what may be seen. Throws what may pass. */
function excuse({ attempts }: ClaimedPlaybookRun, error: unknown): EndedStep {
  if (error instanceof Fault && error.code !== 'UNAVAILABLE' && error.code !== 'AUDIT_CHAIN_BROKEN')
    return failed(error.message)
  if (isDatabaseAway(error) || attempts < MAX_ATTEMPTS) throw error
  return failed(error instanceof Fault ? error.message : 'It failed again and again')
}
