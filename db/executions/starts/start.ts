import { findStart } from '../../../workflows/graph/graph.ts'
import { covers } from '../../acts.ts'
import { write } from '../../change.ts'
import type { Tx } from '../../connection.ts'
import { Fault } from '../../fault.ts'
import { copyTeamFiles } from '../../files/files.ts'
import { findFileIds } from '../../files/named.ts'
import type { Right } from '../../people/rights.ts'
import { demand, type Scope, type Store } from '../../scope.ts'
import { type CallbackTarget, makeCallback } from '../callbacks.ts'
import { writeData } from '../waits/jsontext.ts'
import { addExecution, insertExecution, type StartedExecution } from './add.ts'
import { NO_GATE } from './gate.ts'
import type { AnyStart, TraceContext } from './origins.ts'
import { type Pins, readPins } from './pins.ts'
import { rememberStarted } from './runstart.ts'
import { chooseVersion, readStartable, recallStartable, type VersionChosen } from './startable.ts'

/**
 * Accepts an execution that a caller asks for (OPERATOR; BUILDER if outputs are `pinned` or a `version` is chosen): writes the PENDING row and
 * its START errand in one statement. The workflow may be inactive. Throws NOT_FOUND if the team has no such workflow,
 * CONFLICT if the graph has no trigger, there is no draft, the key was used with other data, or the workflow's limit turns it away, and
 * INVALID for pinned outputs that do not fit the graph.
 */
export async function startExecution(
  scope: Scope,
  workflowId: string,
  {
    pinned = {},
    callback: target,
    version,
    ...input
  }: {
    teamId: string
    pinned?: Pins | undefined
    callback?: CallbackTarget | undefined
    version?: VersionChosen | undefined
  } & Pick<AnyStart, 'data' | 'inputWarning' | 'idempotencyKey' | keyof TraceContext>,
): Promise<StartedExecution> {
  const { store, actor: by } = scope
  const hasPins = Object.keys(pinned).length > 0
  // An approval can be skipped by pinning it, or in a version without it, so this needs the right to change the graph.
  const right: Right = { scope, least: hasPins || version !== undefined ? 'BUILDER' : 'OPERATOR' }
  const trigger = by.kind === 'SDK_TOKEN' ? 'API' : 'MANUAL'
  // A caller who may start executions may read those of the team, except in others' chats, and so may give their files
  // to a new one.
  const files = findFileIds(input.data, pinned)
  const adopt =
    files.size > 0
      ? (tx: Tx, id: string) => copyTeamFiles(tx, scope, { teamId: input.teamId, to: id, which: files })
      : undefined
  if (!hasPins && !target && !adopt && version === undefined) {
    const started = await startUnchanged(store, workflowId, input.teamId, { ...input, trigger, by, right })
    if (started) return started
  }
  const found = await readStartable(store, workflowId, (teamId) => {
    demand(scope, teamId, 'OPERATOR')
    return teamId === input.teamId
  })
  if (!found) throw new Fault('NOT_FOUND', 'The team has no such workflow')
  if (version !== undefined) demand(scope, found.teamId, right.least)
  const { workflow, draft } = await chooseVersion(store, found, version)
  const node = findStart(workflow.graph)
  if (!node) throw new Fault('CONFLICT', 'The workflow has no trigger to start at')
  demand(scope, workflow.teamId, right.least)
  const given = hasPins ? readPins(workflow.graph, pinned) : undefined
  const callback = target && makeCallback(store.keys, target)
  return addExecution(store, workflow, {
    ...input,
    origin: 'REQUEST',
    asked: version,
    draft,
    node,
    trigger,
    by,
    right,
    given,
    callback,
    adopt,
  })
}

/**
 * Writes an execution of a workflow as this process read it last, if its row is still the same and nothing speaks
 * against it. Undefined if all of it must be looked at again.
 */
async function startUnchanged(
  store: Store,
  workflowId: string,
  teamId: string,
  start: Omit<AnyStart, 'node'> & { right: Right },
): Promise<StartedExecution | undefined> {
  const workflow = recallStartable(store, workflowId)
  const node = workflow && findStart(workflow.graph)
  const { scope, least } = start.right
  const held = scope.roles.get(teamId)
  if (!held || !covers(held, least)) return undefined
  if (!node || workflow.teamId !== teamId || workflow.settings.concurrency || start.idempotencyKey)
    return undefined
  const whole = { ...start, node, text: writeData(start.data) }
  const added = await write(store, (tx) => insertExecution(tx, workflow, whole, NO_GATE)).catch((error) => {
    // It was deleted at this moment.
    if ((error as { code?: string }).code === '23503') return undefined
    throw error
  })
  if (added) rememberStarted(store, workflow, whole, added)
  return added
}
