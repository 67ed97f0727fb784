import { findStart, type Graph } from '../../../workflows/graph/graph.ts'
import { INPUT_TRIGGER, ITEM_PRESET, presetInput } from '../../../workflows/graph/single.ts'
import { isObject } from '../../../workflows/json.ts'
import { nodeType } from '../../../workflows/nodes/nodes.ts'
import { joinPath, type Problem } from '../../../workflows/problem.ts'
import type { Presets } from '../../../workflows/run/plan.ts'
import { Fault, invalid } from '../../fault.ts'
import { copyTeamFiles } from '../../files/files.ts'
import { findFileIds } from '../../files/named.ts'
import type { Scope } from '../../scope.ts'
import { addExecution, type StartedExecution } from './add.ts'
import type { AnyStart, TraceContext } from './origins.ts'
import { PINNED, wrapOutput } from './pins.ts'
import type { VersionChosen } from './startable.ts'
import { readExecuted } from './startnode.ts'

/**
 * What a node that is executed alone works with: `nodes` are outputs of other nodes by id, for its
 * expressions; `item` is for a node in a loop's body. `version` is the published one unless given.
 */
export type SingleNodeRun = {
  input?: unknown
  nodes?: Record<string, unknown> | undefined
  item?: unknown
  version?: VersionChosen | undefined
} & Pick<AnyStart, 'inputWarning' | 'idempotencyKey' | keyof TraceContext>

/**
 * Accepts an execution of one node, with its body if it is a loop. It needs a BUILDER, because it skips the
 * nodes before this one, which may be approvals. The input is `input`, else `item`, else `{}`; `$trigger` is
 * the trigger's output if `nodes` has it, else the input. Throws NOT_FOUND for the workflow, version or node,
 * CONFLICT if the node cannot be executed alone or there is no draft, and INVALID if `nodes` names nodes that do not
 * exist or are executed themselves.
 */
export async function startSingleNode(
  scope: Scope,
  workflowId: string,
  nodeId: string,
  single: SingleNodeRun,
): Promise<StartedExecution> {
  const { store } = scope
  const { version, inputWarning, idempotencyKey, traceparent, tracestate } = single
  const { workflow, draft } = await readExecuted(scope, workflowId, { version, least: 'BUILDER' })
  const { graph } = workflow
  checkSingleNode(graph, nodeId)
  const nodes = single.nodes ?? {}
  const problems = Object.keys(nodes).flatMap((id) => checkOther(graph, id, nodeId))
  if (problems.length > 0) throw invalid(problems)
  const given: Presets = Object.create(null)
  for (const [id, output] of Object.entries(nodes)) given[id] = presetOf(output)
  if (single.item !== undefined) given[ITEM_PRESET] = presetOf(single.item)
  const input = single.input ?? single.item ?? {}
  if (!isObject(input)) Object.assign(given, presetInput(wrapOutput(input)))
  const start = findStart(graph)
  const files = findFileIds(input, nodes, single.item)
  return addExecution(store, workflow, {
    origin: 'SINGLE_NODE',
    draft,
    node: { id: start && Object.hasOwn(nodes, start.id) ? start.id : INPUT_TRIGGER },
    trigger: scope.actor.kind === 'SDK_TOKEN' ? 'API' : 'MANUAL',
    data: isObject(input) ? input : { value: input },
    by: scope.actor,
    right: { scope, least: 'BUILDER' },
    onlyNode: nodeId,
    asked: version,
    inputWarning,
    ...(Object.keys(given).length > 0 ? { given } : {}),
    ...(files.size > 0
      ? { adopt: (tx, id) => copyTeamFiles(tx, scope, { teamId: workflow.teamId, to: id, which: files }) }
      : {}),
    idempotencyKey,
    traceparent,
    tracestate,
  })
}

/** Throws NOT_FOUND if the graph has no such node, and CONFLICT if the node cannot be executed alone. */
export function checkSingleNode(graph: Graph, nodeId: string): void {
  const node = graph.nodes.find(({ id }) => id === nodeId)
  if (!node) throw new Fault('NOT_FOUND', `The version has no node "${nodeId}"`)
  if (nodeType(node.type)?.kind === 'trigger')
    throw new Fault('CONFLICT', 'The node is a trigger, which cannot be executed alone')
  if (node.disabled) throw new Fault('CONFLICT', 'The node is disabled')
}

function checkOther(graph: Graph, id: string, nodeId: string): Problem[] {
  const path = joinPath('nodes', id)
  const byId = new Map(graph.nodes.map((node) => [node.id, node]))
  if (!byId.has(id)) return [{ path, message: 'there is no such node' }]
  for (let around: string | undefined = id; around !== undefined; around = byId.get(around)?.parentId) {
    if (around === nodeId) return [{ path, message: 'must not be the executed node or inside it' }]
  }
  return []
}

function presetOf(output: unknown): Presets[string] {
  return { output: wrapOutput(output), handle: null, from: PINNED }
}
