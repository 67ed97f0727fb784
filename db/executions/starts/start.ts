import { findStart, type GraphNode } from '../../../workflows/graph/graph.ts'
import { writeUntil } from '../../../workflows/graph/part.ts'
import type { Presets } from '../../../workflows/run/plan.ts'
import { covers } from '../../acts.ts'
import type { Tx } from '../../connection.ts'
import { copyTeamFiles } from '../../files/files.ts'
import { findFileIds } from '../../files/named.ts'
import { addFiles, type StoredFile } from '../../files/store.ts'
import type { Right } from '../../people/rights.ts'
import { demand, type Scope, type Store } from '../../scope.ts'
import { type CallbackTarget, makeCallback } from '../callbacks.ts'
import { writeData } from '../waits/jsontext.ts'
import { addExecution, insertUngated, type StartedExecution } from './add.ts'
import type { AnyStart, TraceContext } from './origins.ts'
import { type Pins, readPins } from './pins.ts'
import { type AskedPart, checkPart, copyReused, readReusable, takeOverPart } from './reused.ts'
import { rememberStarted } from './runstart.ts'
import { recallStartable, type VersionChosen } from './startable.ts'
import { chooseStart, readExecuted } from './startnode.ts'
import { listTakenOver } from './takeover.ts'

/**
 * What a caller asks for. `trigger` is the node to start at, if it is not the one that findStart finds; `version` is
 * the version to try, if it is not the published one. With a `call`, the data was shaped from `asked`, and it comes
 * with `files`. Without `data` it is that of the execution `reuseFrom`.
 */
type AskedExecution = {
  teamId: string
  data?: Record<string, unknown> | undefined
  pinned?: Pins | undefined
  callback?: CallbackTarget | undefined
  trigger?: string | undefined
  version?: VersionChosen | undefined
  call?: { asked: unknown; files: StoredFile[] } | undefined
} & AskedPart &
  Pick<AnyStart, 'inputWarning' | 'idempotencyKey' | keyof TraceContext>

/** `start` is the node that it starts at; `takenOver` has the nodes whose outputs it reuses, if it was to. */
type StartedByRequest = StartedExecution & { start: GraphNode; takenOver?: string[] }

/**
 * Accepts an execution that a caller asks for (OPERATOR; BUILDER if outputs are `pinned`, a `version` is chosen, or it
 * is of a part): writes the PENDING row and its START errand in one statement. The workflow may be inactive. Throws
 * NOT_FOUND if the team has no such workflow or execution, CONFLICT if the graph has no trigger, there is no draft, the
 * key was used with other data, the workflow's limit turns it away, or the execution cannot be reused, and INVALID for
 * what does not fit the graph.
 */
export async function startExecution(
  scope: Scope,
  workflowId: string,
  asked: AskedExecution,
): Promise<StartedByRequest> {
  const { teamId, data = {}, pinned = {}, callback: target, trigger: startId, version, call, ...more } = asked
  const { until, reuseFrom, ...input } = more
  const { store, actor: by } = scope
  const hasPins = Object.keys(pinned).length > 0
  const isPart = until !== undefined || reuseFrom !== undefined
  const isOther = isPart || startId !== undefined || version !== undefined
  // An approval can be skipped by pinning or reusing it, or in a version without it, so this needs the right to change
  // the graph.
  const right: Right = { scope, least: hasPins || isPart || version !== undefined ? 'BUILDER' : 'OPERATOR' }
  const trigger = by.kind === 'SDK_TOKEN' ? 'API' : 'MANUAL'
  // A caller who may start executions may read those of the team, except in others' chats, and so may give their files
  // to a new one.
  const adopt = makeAdopter(scope, teamId, findFileIds(call || reuseFrom ? {} : data, pinned), call?.files)
  if (!hasPins && !target && !adopt && !isOther) {
    const start = { ...input, data, trigger, by, right } as const
    const started = await startUnchanged(store, workflowId, teamId, start)
    if (started) return started
  }
  const { workflow, draft } = await readExecuted(scope, workflowId, { teamId, version })
  demand(scope, teamId, right.least)
  const run = reuseFrom === undefined ? undefined : await readReusable(scope, workflow, reuseFrom)
  const node = chooseStart(workflow.graph, startId ?? run?.triggerNodeId)
  checkPart(workflow, node.id, { until, run, data: asked.data })
  const pins = hasPins ? readPins(workflow.graph, pinned) : {}
  const taken = run && (await takeOverPart(scope, workflow, run, { until, pinned: Object.keys(pinned) }))
  const given: Presets = { ...taken, ...pins }
  const reuse = run && copyReused(scope, run.id, given)
  const started = await addExecution(store, workflow, {
    ...input,
    origin: 'REQUEST',
    draft,
    node,
    trigger,
    data: run ? (run.inputData as Record<string, unknown>) : data,
    by,
    right,
    given: Object.keys(given).length > 0 ? given : undefined,
    onlyNode: until === undefined ? undefined : writeUntil(until),
    reusedFrom: reuseFrom,
    callback: target && makeCallback(store.keys, target),
    adopt: reuse
      ? async (tx, id) => {
          await reuse(tx, id)
          await adopt?.(tx, id)
        }
      : adopt,
    ...(isOther ? { sent: [call ? call.asked : data, pinned, startId, until, reuseFrom, version] } : {}),
  })
  if (!run) return { ...started, start: node }
  const made = { workflowId, workflowVersion: workflow.version, given }
  return { ...started, start: node, takenOver: (await listTakenOver(store, started, made)).takenOver }
}

/** Gives an execution the files of the team that its data names, and those that came with it; undefined without any. */
function makeAdopter(scope: Scope, teamId: string, which: Set<string>, brought: StoredFile[] = []) {
  if (which.size === 0 && brought.length === 0) return undefined
  return async (tx: Tx, id: string) => {
    if (which.size > 0) await copyTeamFiles(tx, scope, { teamId, to: id, which })
    if (brought.length > 0) await addFiles(tx, id, teamId, brought)
  }
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
): Promise<StartedByRequest | undefined> {
  const workflow = recallStartable(store, workflowId)
  const node = workflow && findStart(workflow.graph)
  const { scope, least } = start.right
  const held = scope.roles.get(teamId)
  if (!held || !covers(held, least)) return undefined
  if (!node || workflow.teamId !== teamId || workflow.settings.concurrency || start.idempotencyKey)
    return undefined
  const whole = { ...start, node, text: writeData(start.data) }
  const added = await insertUngated(store, workflow, whole).catch((error) => {
    // It was deleted at this moment.
    if ((error as { code?: string }).code === '23503') return undefined
    throw error
  })
  if (!added) return undefined
  rememberStarted(store, workflow, whole, added)
  return { ...added, start: node }
}
