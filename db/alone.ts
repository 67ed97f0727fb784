import { giveInput, ITEM, NO_TRIGGER } from '../workflows/alone.ts'
import { findStart, type Graph, type Problem } from '../workflows/graph.ts'
import { isObject } from '../workflows/inputs.ts'
import { nodeType } from '../workflows/nodes.ts'
import type { Given } from '../workflows/plan.ts'
import { joinPath } from '../workflows/problem.ts'
import { Fault, invalid, missing } from './fault.ts'
import { PINNED, wrapOutput } from './pins.ts'
import { demand, type Scope } from './scope.ts'
import { addExecution, readStartable, type Start, type Started } from './start.ts'
import { readVersion } from './versions.ts'

/** What a node that runs alone finds: `nodes` are outputs of others by id, for its expressions. */
export type Bench = {
  input?: unknown
  nodes?: Record<string, unknown> | undefined
  item?: unknown
  version?: number | undefined
} & Pick<Start, 'idempotencyKey' | 'traceparent'>

/**
 * Accepts a run of one node, with its body if it is a loop (BUILDER, for what stands before the node, an approval
 * perhaps, is passed by). Without `input` the item is it. `$trigger` is the output of the trigger where `nodes` has
 * that, else the input. Throws NOT_FOUND, CONFLICT where the node cannot be run, INVALID for what `nodes` names.
 */
export async function runAlone(
  scope: Scope,
  workflowId: string,
  nodeId: string,
  bench: Bench,
): Promise<Started> {
  const { store } = scope
  const found = await readStartable(store, workflowId, (teamId) => {
    demand(scope, teamId, 'BUILDER')
    return true
  })
  if (!found) throw missing('workflow')
  const { version = found.version, idempotencyKey, traceparent } = bench
  const graph = version === found.version ? found.graph : await readVersion(store, workflowId, version)
  checkAlone(graph, nodeId)
  const nodes = bench.nodes ?? {}
  const problems = Object.keys(nodes).flatMap((id) => checkBeside(graph, id, nodeId))
  if (problems.length > 0) throw invalid(problems)
  const given: Given = Object.create(null)
  for (const [id, output] of Object.entries(nodes)) given[id] = give(output)
  if (bench.item !== undefined) given[ITEM] = give(bench.item)
  const input = bench.input ?? bench.item ?? {}
  if (!isObject(input)) Object.assign(given, giveInput(wrapOutput(input)))
  const start = findStart(graph)
  return addExecution(
    store,
    { ...found, version, graph },
    {
      node: { id: start && Object.hasOwn(nodes, start.id) ? start.id : NO_TRIGGER },
      trigger: scope.actor.kind === 'SDK_TOKEN' ? 'API' : 'MANUAL',
      data: isObject(input) ? input : { value: input },
      by: scope.actor,
      onlyNode: nodeId,
      asked: bench.version,
      ...(Object.keys(given).length > 0 ? { given } : {}),
      idempotencyKey,
      traceparent,
    },
  )
}

/** Throws NOT_FOUND or CONFLICT unless the node of the graph can be run alone. */
export function checkAlone(graph: Graph, nodeId: string): void {
  const node = graph.nodes.find(({ id }) => id === nodeId)
  if (!node) throw new Fault('NOT_FOUND', `The version has no node "${nodeId}"`)
  if (nodeType(node.type)?.kind === 'trigger') throw new Fault('CONFLICT', 'A trigger does nothing by itself')
  if (node.disabled) throw new Fault('CONFLICT', 'The node is disabled')
}

function checkBeside(graph: Graph, id: string, nodeId: string): Problem[] {
  const path = joinPath('nodes', id)
  const byId = new Map(graph.nodes.map((node) => [node.id, node]))
  if (!byId.has(id)) return [{ path, message: 'there is no such node' }]
  for (let around: string | undefined = id; around !== undefined; around = byId.get(around)?.parentId) {
    if (around === nodeId) return [{ path, message: 'is run itself' }]
  }
  return []
}

function give(output: unknown): Given[string] {
  return { output: wrapOutput(output), handle: null, from: PINNED }
}
