import { sql } from 'kysely'
import type { Graph } from '../../../workflows/graph/graph.ts'
import { readPart } from '../../../workflows/graph/part.ts'
import type { Presets } from '../../../workflows/run/plan.ts'
import { chatPrivacyOf, isHiddenFrom, isPrivate } from '../../chat/privacy.ts'
import { Fault, missing } from '../../fault.ts'
import { demand, type Scope } from '../../scope.ts'
import { isEnded } from '../status.ts'
import type { Recovery } from '../triggers.ts'
import { findPinProblem, PINNED } from './pins.ts'

/** Why an execution is not repeated: its reply belongs to a message that is there already. */
export const IN_CHAT = 'The execution replies in a chat: post the message again instead'

export type EndedExecution = Awaited<ReturnType<typeof readEnded>>

/** What is repeated of an ended execution, or reused in another one. */
export async function readEnded(scope: Scope, id: string, how: Recovery | 'REUSE') {
  const run = await scope.store.db
    .selectFrom('executions')
    .select(['id', 'teamId', 'workflowId', 'workflowVersion', 'status', 'trigger', 'triggerNodeId'])
    .select(['inputData', 'inputWarning', 'keepInputs', 'given', 'onlyNode', 'draft', 'parentId'])
    .select(chatPrivacyOf().as('privacy'))
    .select(
      sql<boolean>`exists (select from node_executions n
        where n.execution_id = executions.id and n.given_by = ${PINNED})`.as('pinned'),
    )
    .where('id', '=', id)
    .executeTakeFirst()
  if (!run) throw missing('execution')
  demand(scope, run.teamId, 'OPERATOR')
  if (isHiddenFrom(scope, run.teamId, run.privacy)) throw isPrivate()
  if (run.trigger === 'CHAT') throw new Fault('CONFLICT', IN_CHAT)
  if (!isEnded(run.status)) throw new Fault('CONFLICT', 'The execution is still under way')
  if (how === 'RETRY' && run.status === 'SUCCESS') {
    throw new Fault('CONFLICT', 'The execution succeeded, so it has no failed node; rerun it instead')
  }
  if (!run.keepInputs) throw new Fault('CONFLICT', 'The input of the execution was not kept')
  return run
}

/** The execution's pinned outputs. Throws if one cannot be pinned again: its node must not be executed. */
export function keepPins(graph: Graph, { given, pinned, onlyNode: part }: EndedExecution): Presets {
  if (given === null && pinned)
    throw new Fault('CONFLICT', 'The pinned outputs of the execution were not kept')
  const pins = Object.entries((given ?? {}) as Presets).filter(([, { from }]) => from === PINNED)
  const { onlyNode } = readPart(part)
  const nodes = new Map(graph.nodes.map((node) => [node.id, node]))
  for (const [id] of pins) {
    const problem = onlyNode === null ? findPinProblem(nodes.get(id)) : undefined
    if (problem)
      throw new Fault('CONFLICT', `The output of node "${id}" cannot be pinned in this version: ${problem}`)
  }
  return Object.fromEntries(pins)
}
