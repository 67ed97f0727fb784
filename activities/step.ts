import { ApplicationFailure } from '@temporalio/common'
import type { Logger } from 'pino'
import { openEnvelope, packOutput } from '../db/blobs.ts'
import { isDatabaseAway } from '../db/connection.ts'
import { Fault } from '../db/fault.ts'
import { saveAnswer } from '../db/hooks.ts'
import type { Store } from '../db/scope.ts'
import { readVersion } from '../db/versions.ts'
import type { Item, Result } from '../workflows/frame.ts'
import type { GraphNode } from '../workflows/graph.ts'
import { findItem, mergeInputs } from '../workflows/inputs.ts'
import type { Envelope, ExecutionContext } from '../workflows/plan.ts'
import type { NodeError } from '../workflows/walk.ts'
import type { AttemptLog } from './attempts.ts'
import { type Evaluator, EXPRESSIONS_DOWN } from './expressions.ts'
import type { HttpClient } from './http.ts'
import type { Metrics } from './metrics.ts'
import { NodeFailure } from './nodes/failure.ts'
import type { NodeContext, NodeResult, NodeRunner } from './nodes/node.ts'
import { RESUMERS, RUNNERS } from './nodes/runners.ts'
import { readResumeUrls } from './resume.ts'
import type { Tracing } from './tracing.ts'
import { readVariables } from './variables.ts'

/** What activities need; made once per process. */
export type ActivityDeps = {
  store: Store
  evaluator: Evaluator
  http: HttpClient
  attempts: AttemptLog
  log: Logger
  /** The address users see: what an event's URL begins with. */
  publicUrl: string
  metrics?: Metrics | undefined
  tracing?: Tracing | undefined
  /** How many records a segment makes at most; fewer in tests than by default. */
  segmentRecords?: number | undefined
  /** Says that a run has news for its projection. */
  touch: (executionId: string) => void
}

/** The type of a failure that no retry can mend: the rows behind the run are gone. */
const EXECUTION_DELETED = 'ExecutionDeleted'

/** The config of a node, from its immutable version. */
export async function loadNode(
  deps: ActivityDeps,
  context: ExecutionContext,
  nodeId: string,
): Promise<GraphNode> {
  const graph = await readVersion(deps.store, context.workflowId, context.version)
  const node = graph.nodes.find((candidate) => candidate.id === nodeId)
  if (!node) throw new Fault('NOT_FOUND', `node ${nodeId} is not in version ${context.version}`)
  return node
}

/** What a step may read at once: each output is bounded, but a join may have hundreds of them. */
const MAX_INPUT_BYTES = 32_000_000

/** Opens envelopes once each. What was opened is shared and never changed. */
export function createValues(deps: ActivityDeps, executionId: string) {
  // By reference, where many nodes pass on one big value.
  const opened = new Map<Envelope | string, Promise<unknown>>()
  let held = 0
  const keyOf = (envelope: Envelope) => ('ref' in envelope ? envelope.ref : envelope)
  const hold = (envelope: Envelope, value: Promise<unknown>) => {
    if (!opened.has(keyOf(envelope))) held += envelope.bytes
    opened.set(keyOf(envelope), value)
    return value
  }
  const open = (envelope: Envelope): Promise<unknown> =>
    opened.get(keyOf(envelope)) ?? hold(envelope, openEnvelope(deps.store, executionId, envelope))
  return {
    /** Bytes of JSON of all that was opened or written and not forgotten. */
    held: () => held,
    open,
    /** A value that was packed just now. */
    keep: (envelope: Envelope, value: unknown) => void hold(envelope, Promise.resolve(value)),
    forget(envelope: Envelope): void {
      if (opened.delete(keyOf(envelope))) held -= envelope.bytes
    },
    /** What an iteration came to. */
    async readResult(result: Result): Promise<unknown> {
      if ('error' in result) return { error: result.error }
      if ('merge' in result) return mergeInputs(await Promise.all(result.merge.map(open)))
      if (!('ends' in result)) return open(result)
      const entries = Object.entries(result.ends).map(async ([id, end]) => [id, await open(end)] as const)
      return Object.fromEntries(await Promise.all(entries))
    },
    /** Throws the NodeFailure of a node that would read more at once than a worker can hold. */
    demandRoom(envelopes: Envelope[]): void {
      const sizes = new Map(envelopes.map((envelope) => [keyOf(envelope), envelope.bytes]))
      const bytes = [...sizes.values()].reduce((sum, size) => sum + size, 0)
      if (bytes <= MAX_INPUT_BYTES) return
      const message = `The node reads ${bytes} bytes at once; at most ${MAX_INPUT_BYTES} are allowed`
      throw new NodeFailure(message, { type: 'InputTooLarge' })
    },
  }
}

export type Values = ReturnType<typeof createValues>

export type Step = {
  node: GraphNode
  context: ExecutionContext
  /** The sources of the taken in-edges, in edge order. */
  sources: string[]
  needs: string[]
  /** The output of a node in this iteration or around it. */
  find: (nodeId: string) => Envelope | undefined
  triggerNodeId: string
  /** '' outside of loops. */
  iteration: string
  /** Of the iteration; for a node that nothing in the body comes before it is `$input` too. */
  item?: Item | undefined
  attempt: number
  idempotencyKey: string
  signal: AbortSignal
}

/** Everything a node's runner is given. Throws NodeFailure for too much of it, else only where values cannot be had. */
export async function prepareStep(deps: ActivityDeps, values: Values, step: Step): Promise<NodeContext> {
  const { sources, iteration, context } = step
  const read = [...new Set([...sources, ...step.needs])]
  values.demandRoom(read.flatMap((id) => step.find(id) ?? []))
  const nodes: Record<string, unknown> = Object.create(null)
  for (const id of read) {
    const output = step.find(id)
    if (output) nodes[id] = await values.open(output)
  }
  const item = step.item && (await readItem(values, step.item))
  const inputs = sources.length === 0 && step.item ? [item] : sources.map((id) => nodes[id])
  const input = mergeInputs(inputs)
  const loop =
    iteration === '' && !step.item
      ? {}
      : { item, index: Number(iteration.slice(iteration.lastIndexOf('.') + 1)) }
  const trigger = nodes[step.triggerNodeId]
  const vars = await readVariables(deps.store, context.workflowId, step.node.config)
  const execution = { ...showContext(context), ...(await readResumeUrls(deps, step)) }
  return {
    config: step.node.config,
    input,
    inputs,
    bindings: { input, nodes, trigger, vars, execution, ...loop },
    evaluator: deps.evaluator,
    http: deps.http,
    spot: {
      ...{ store: deps.store, executionId: context.id, traceparent: context.traceparent },
      ...{ nodeId: step.node.id, nodeName: step.node.name, iteration },
    },
    signal: step.signal,
    attempt: step.attempt,
    idempotencyKey: step.idempotencyKey,
    answer: (answer) => saveAnswer(deps.store, context.id, answer),
  }
}

async function readItem(values: Values, item: Item): Promise<unknown> {
  if ('result' in item) return values.readResult(item.result)
  return findItem(values.open, { items: item.page, ...item }, item.at)
}

// A trace is the operator's, not the graph's.
function showContext(context: ExecutionContext): ExecutionContext {
  if (context.traceparent === undefined) return context
  const { traceparent: _, ...shown } = context
  return shown
}

/** Runs a node's own code, or looks again at what a pause waits for: what it throws is the node's failure, never the engine's. */
export async function runStep(node: GraphNode, context: NodeContext, resumes = false): Promise<NodeResult> {
  if (node.disabled) return { output: context.input }
  const runners: Partial<Record<string, NodeRunner>> = resumes ? RESUMERS : RUNNERS
  const runner = Object.hasOwn(runners, node.type) ? runners[node.type] : undefined
  if (!runner) throw new NodeFailure(`No runner for the node type ${node.type}`, { type: 'UnknownNodeType' })
  return runner(context)
}

/** Wraps a node's output; an output that is an input passed on keeps that input's envelope. */
export async function packResult(
  deps: ActivityDeps,
  values: Values,
  step: Pick<Step, 'context' | 'sources' | 'find'>,
  output: unknown,
  inlineBytes: number,
): Promise<Envelope> {
  const [only] = step.sources
  const passed = step.sources.length === 1 ? step.find(only!) : undefined
  if (passed && (await values.open(passed)) === output) return passed
  const packed = await pack(deps, step.context.id, output, inlineBytes)
  values.keep(packed, output)
  return packed
}

/** Throws the NodeFailure of a value that is too big to be an output. */
export async function pack(
  deps: ActivityDeps,
  executionId: string,
  output: unknown,
  inlineBytes: number,
): Promise<Envelope> {
  try {
    return await packOutput(deps.store, executionId, output, inlineBytes)
  } catch (error) {
    if (error instanceof RangeError) throw new NodeFailure(error.message, { type: 'OutputTooLarge' })
    throw error
  }
}

export function describeFailure(error: unknown): NodeError {
  if (error instanceof NodeFailure) return { message: error.message, type: error.type }
  const message = error instanceof Error ? error.message : String(error)
  return { message: message || 'The node failed without a message', type: 'Error' }
}

/** Whether it was not the node that failed but what it stands on, which will be back: never counted, retried. */
export function isInfrastructure(error: unknown): boolean {
  return isDatabaseAway(error) || (error instanceof NodeFailure && error.type === EXPRESSIONS_DOWN)
}

/** Ends a run that was cancelled or deleted before it began. */
export function endedBefore(): ApplicationFailure {
  const message = 'The execution had ended before its run began'
  return ApplicationFailure.create({ message, type: 'ExecutionEnded', nonRetryable: true })
}

const FOREIGN_KEY_VIOLATION = '23503'

/** Rows that are gone never come back: such an error ends the run instead of being retried. */
export function finalIfDeleted(error: unknown): unknown {
  const gone =
    (error instanceof Fault && error.code === 'NOT_FOUND') ||
    (error as { code?: string }).code === FOREIGN_KEY_VIOLATION
  if (!gone) return error
  return ApplicationFailure.create({
    message: 'The execution or its workflow is deleted',
    type: EXECUTION_DELETED,
    nonRetryable: true,
  })
}
