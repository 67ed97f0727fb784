import { saveAnswer } from '../../db/executions/starts/webhooks.ts'
import { Fault } from '../../db/fault.ts'
import { readVersion } from '../../db/workflows/versions.ts'
import type { Language } from '../../workflows/expressions/rules.ts'
import { listHandles } from '../../workflows/graph/check.ts'
import { findNodeNames, type GraphNode, isOnItems, languageOf } from '../../workflows/graph/graph.ts'
import { findItem, itemsOf, joinItems, mergeInputs, valueAlong } from '../../workflows/input.ts'
import { getOwn } from '../../workflows/json.ts'
import { joinPath } from '../../workflows/problem.ts'
import type { Item, Trail } from '../../workflows/run/frame.ts'
import { type Envelope, type ExecutionContext, graphNodeId, joinHandles } from '../../workflows/run/plan.ts'
import { joinStep, type TakenEdge } from '../../workflows/run/walk.ts'
import type { ActivityDeps } from '../deps.ts'
import { NOWHERE } from '../egress/outside.ts'
import { createCheck, IN_SEGMENT } from '../guardrails/check.ts'
import { NodeFailure } from '../nodes/kit/failure.ts'
import type { NodeContext, NodeResult, NodeRunner } from '../nodes/kit/node.ts'
import { createNoteKeeper } from '../nodes/kit/notes.ts'
import { RESUMERS, RUNNERS } from '../nodes/runners.ts'
import { runOnAll, runPerItem } from './items/items.ts'
import { writeCall } from './items/output.ts'
import { readResumeUrls } from './resumeurls.ts'
import { demandInputRoom, type RunValues } from './values.ts'
import { readVariables } from './variables.ts'

/** One step or attempt of a node in a run: its place in the run and what it reads. */
export type NodeStep = {
  node: GraphNode
  /** What its expressions mean. */
  language: Language
  /** The ids of the graph's nodes by their names, as far as those are unique. */
  names: Record<string, string>
  /** Whether an edge leads on from a handle of the node. */
  leads: NodeContext['leads']
  context: ExecutionContext
  /** The sources of the taken in-edges, in edge order. */
  sources: string[]
  needs: string[]
  /** The taken in-edges, if one of the sources left by several handles. */
  taken?: TakenEdge[] | undefined
  /** The item of a loop around that comes to the node whose one item this is. */
  around?: Item | undefined
  /** If its config pairs its items with those of nodes before it. */
  trail?: Trail | undefined
  /** Finds the output of a node, in this iteration or around it. */
  find: (nodeId: string) => Envelope | undefined
  triggerNodeId: string
  /** The path of the iteration; '' outside of loops. */
  iteration: string
  /** The item of the iteration. It is also `$input` for nodes that have no node before them in the body. */
  item?: Item | undefined
  /** The number of the agent's step. */
  agentStep?: number | undefined
  attempt: number
  idempotencyKey: string
  signal: AbortSignal
}

/** What a version says of a node. */
type LoadedNode = Pick<NodeStep, 'node' | 'language' | 'names' | 'leads'>

/**
 * A node of the workflow's version, with its config, and what expressions mean there. Throws NOT_FOUND if it is not in
 * there.
 */
export async function loadNode(
  { store }: Pick<ActivityDeps, 'store'>,
  { workflowId, version }: ExecutionContext,
  nodeId: string,
): Promise<LoadedNode> {
  const graph = await readVersion(store, workflowId, version)
  const id = graphNodeId(nodeId)
  const node = graph.nodes.find((candidate) => candidate.id === id)
  if (!node) throw new Fault('NOT_FOUND', `node ${id} is not in version ${version}`)
  return {
    node: id === nodeId ? node : { ...node, id: nodeId },
    language: languageOf(graph),
    names: findNodeNames(graph),
    leads: (handle) => graph.edges.some((edge) => edge.source === id && edge.sourceHandle === handle),
  }
}

/**
 * The context for a node's runner. Throws a NodeFailure if its inputs are too large; other errors mean that
 * values cannot be read.
 */
export async function prepareStep(
  deps: ActivityDeps,
  values: RunValues,
  step: NodeStep,
): Promise<NodeContext> {
  const { node, sources, iteration, context } = step
  const { store } = deps
  const read = [...new Set([...sources, ...step.needs])]
  demandInputRoom(read.flatMap((id) => step.find(id) ?? []))
  const nodes: Record<string, unknown> = Object.create(null)
  for (const id of read) {
    const output = step.find(id)
    if (output) nodes[id] = await values.open(output)
  }
  const item = step.item && (await readItem(values, step.item))
  const taken = step.taken ?? sources.map((source) => ({ source }))
  const own =
    taken.length === 0 && step.item ? [step.around ? await readItem(values, step.around) : item] : undefined
  const given = own ?? taken.map((edge) => valueAlong(edge, nodes[edge.source]))
  const input = isOnItems(node) ? joinItems(given) : mergeInputs(given)
  const inputs = node.id === graphNodeId(node.id) ? given : [item]
  const loop =
    iteration === '' && !step.item
      ? {}
      : { item, index: Number(iteration.slice(iteration.lastIndexOf('.') + 1)) }
  const items = node.perItem ? { items: itemsOf(input) } : {}
  const trigger = nodes[step.triggerNodeId]
  const vars = await readVariables(store, context.workflowId, node.config)
  const execution = { ...showContext(context), ...(await readResumeUrls(deps, step)) }
  const notes = createNoteKeeper()
  const note = (text: string, message: string) =>
    notes.add({ warnings: findPlaces(node.config, text).map((path) => ({ path, message })) })
  return {
    config: node.config,
    input: inputs === given ? input : item,
    inputs,
    bindings: {
      input,
      nodes,
      trigger,
      vars,
      execution,
      names: step.names,
      ...(step.trail ? { trail: step.trail } : {}),
      ...loop,
      ...items,
      ...countRuns(node, iteration),
    },
    evaluator: deps.evaluator.under({
      ...step.language,
      note,
      log: (console) => notes.add({ console: [...console] }),
    }),
    notes,
    http: NOWHERE,
    check: createCheck(deps, context, IN_SEGMENT),
    leads: step.leads,
    spot: {
      store,
      executionId: context.id,
      traceparent: context.traceparent,
      tracestate: context.tracestate,
      nodeId: node.id,
      nodeName: node.name,
      iteration: joinStep(iteration, step.agentStep),
    },
    signal: step.signal,
    attempt: step.attempt,
    idempotencyKey: step.idempotencyKey,
    answer: (answer) => saveAnswer(store, context.id, answer),
  }
}

/** The number of the iteration around a node. A node that works on one item has one of its own for that. */
function countRuns({ id }: GraphNode, iteration: string): { runIndex?: number } {
  const path = iteration === '' ? [] : iteration.split('.')
  const around = id === graphNodeId(id) ? path : path.slice(0, -1)
  return around.length === 0 ? {} : { runIndex: Number(around.at(-1)) }
}

/** At how many places of a config the same text is named. */
const MAX_PLACES = 5

/** The paths of the strings in a config that are this text. */
function findPlaces(config: object, text: string): string[] {
  const places: string[] = []
  const open: { path: string; value: unknown }[] = [{ path: 'config', value: config }]
  for (const { path, value } of open) {
    if (value === text) places.push(path)
    if (places.length >= MAX_PLACES) break
    if (typeof value !== 'object' || value === null) continue
    const isList = Array.isArray(value)
    for (const [key, child] of Object.entries(value))
      open.push({ path: joinPath(path, isList ? Number(key) : key), value: child })
  }
  return places.length > 0 ? places : ['config']
}

async function readItem(values: RunValues, item: Item): Promise<unknown> {
  if ('result' in item) return values.readResult(item.result)
  return findItem(values.open, { items: item.page, ...item }, item.at)
}

// The trace is for operators, and what is retried is for us: graphs do not see them in `$execution`.
function showContext(context: ExecutionContext): ExecutionContext {
  if (context.traceparent === undefined && context.retryOf === undefined) return context
  const { traceparent: _, tracestate: __, retryOf: ___, ...shown } = context
  return shown
}

/**
 * Calls the node's runner; with `resumes`, looks again at what the node's pause waits for. What the runner
 * throws is a failure of the node, not of the engine.
 */
export async function runStep(node: GraphNode, context: NodeContext, resumes = false): Promise<NodeResult> {
  if (node.disabled) return { output: context.input }
  const runners: Partial<Record<string, NodeRunner>> = resumes ? RESUMERS : RUNNERS
  const runner = getOwn(runners, node.type)
  if (!runner) throw new NodeFailure(`No runner for the node type ${node.type}`, { type: 'UnknownNodeType' })
  try {
    const result = await runOn(node, context, runner)
    if (result.notes) context.notes.add(result.notes)
    return result
  } catch (error) {
    if (error instanceof NodeFailure && error.notes) context.notes.add(error.notes)
    throw error
  }
}

/** A SWITCH that takes all cases which hold leaves by the handles of all of them. */
function leaveBySeveral(node: GraphNode, result: NodeResult): NodeResult {
  const { handles, ...rest } = result
  if (!handles || handles.length < 2) return result
  return { ...rest, handle: joinHandles(handles, listHandles(node) ?? [null])! }
}

async function runOn(node: GraphNode, context: NodeContext, runner: NodeRunner): Promise<NodeResult> {
  if (!isOnItems(node)) return leaveBySeveral(node, await runner(context))
  if (node.id !== graphNodeId(node.id)) return writeCall(node, await runner(context))
  return node.perItem ? runPerItem(node, context, runner) : runOnAll(node, context, runner)
}
