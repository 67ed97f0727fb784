import { Context } from '@temporalio/activity'
import { LRUCache } from 'lru-cache'
import { validate as isUuid } from 'uuid'
import { perDatabase } from '../../db/cache.ts'
import { readIdentity } from '../../db/executions/executions.ts'
import { isEnded } from '../../db/executions/status.ts'
import type { Store } from '../../db/scope.ts'
import { isRefused } from '../../workflows/run/messages.ts'
import type { RunContext } from '../../workflows/run/plan.ts'
import { RUN_REFUSED } from '../../workflows/run/records.ts'
import { NodeFailure } from '../nodes/kit/failure.ts'
import { finalFailure } from '../run/failures.ts'

/**
 * Returns the message of a run to an activity. Throws what ends the run if that, or a heartbeat of an earlier
 * attempt, was not sealed for this run, or the message is about another one.
 */
export function demandCaller<T extends { context: RunContext }>(message: T): T {
  const { workflowExecution, heartbeatDetails } = Context.current().info
  for (const given of [message, heartbeatDetails])
    if (isRefused(given)) throw finalFailure(RUN_REFUSED, given.message)
  if (workflowExecution?.workflowId === message.context.id) return message
  throw finalFailure(RUN_REFUSED, `This run was given what belongs to the execution ${message.context.id}`)
}

/**
 * Throws what ends the run unless there is an execution of its id, of the workflow and version that it says it
 * executes. With `open` it must not have ended either. That never changes but for the end, so without `open`
 * each execution is looked up once.
 */
export async function demandIdentity(
  store: Store,
  { id, workflowId, version }: RunContext,
  { open }: { open: boolean },
): Promise<void> {
  const known = identitiesOf(store.db)
  const claim = claimOf({ workflowId, version })
  if (!open && known.get(id) === claim) return
  const row = isUuid(id) ? await readIdentity(store, id) : undefined
  if (!row)
    throw refused('There is no execution of this run: it was deleted, or somebody else has started the run')
  if (claimOf({ workflowId: row.workflowId, version: row.workflowVersion }) !== claim)
    throw refused('This run executes another workflow or version than its execution')
  if (open && isEnded(row.status)) throw refused('The execution of this run has ended already')
  known.set(id, claim)
}

/** Says that there is an execution of this identity, so that its run need not look it up. */
export function noteIdentity(store: Store, context: Pick<RunContext, 'id' | 'workflowId' | 'version'>): void {
  identitiesOf(store.db).set(context.id, claimOf(context))
}

function claimOf({ workflowId, version }: Pick<RunContext, 'workflowId' | 'version'>): string {
  return `${workflowId} ${version}`
}

const identitiesOf = perDatabase(() => new LRUCache<string, string>({ max: 10_000 }))

function refused(message: string): NodeFailure {
  return new NodeFailure(message, { type: RUN_REFUSED })
}
