import { ApplicationFailure } from '@temporalio/common'
import type { Logger } from 'pino'
import { openEnvelope, packOutput } from '../db/blobs.ts'
import { isDatabaseAway } from '../db/connection.ts'
import { Fault } from '../db/fault.ts'
import type { Store } from '../db/scope.ts'
import { readVersion } from '../db/versions.ts'
import type { GraphNode } from '../workflows/graph.ts'
import { mergeInputs } from '../workflows/inputs.ts'
import type { Envelope, ExecutionContext } from '../workflows/plan.ts'
import type { NodeError } from '../workflows/walk.ts'
import type { AttemptLog } from './attempts.ts'
import { type Evaluator, EXPRESSIONS_DOWN } from './expressions.ts'
import type { HttpClient } from './http.ts'
import type { Metrics } from './metrics.ts'
import { NodeFailure } from './nodes/failure.ts'
import type { NodeContext, NodeResult } from './nodes/node.ts'
import { RUNNERS } from './nodes/runners.ts'
import type { Tracing } from './tracing.ts'
import { readVariables } from './variables.ts'

/** What activities need; made once per process. */
export type ActivityDeps = {
  store: Store
  evaluator: Evaluator
  http: HttpClient
  attempts: AttemptLog
  log: Logger
  metrics?: Metrics | undefined
  tracing?: Tracing | undefined
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

/** Opens envelopes once each: the values of the nodes before, by node id. */
export function createValues(deps: ActivityDeps, executionId: string, known: Record<string, Envelope>) {
  // By reference, where many nodes pass on one big value, else by node id.
  const opened = new Map<string, Promise<unknown>>()
  // Node ids are keys: without its prototype, `toString` is nobody's output.
  const outputs: Record<string, Envelope> = Object.assign(Object.create(null), known)
  let held = 0
  const keyOf = (nodeId: string, envelope: Envelope) =>
    'ref' in envelope ? `ref ${envelope.ref}` : `node ${nodeId}`
  const hold = (key: string, envelope: Envelope, value: Promise<unknown>) => {
    if (!opened.has(key)) held += envelope.bytes
    opened.set(key, value)
    return value
  }
  return {
    outputs,
    /** Bytes of JSON of all that was opened or written. */
    held: () => held,
    read(nodeId: string): Promise<unknown> {
      const envelope = outputs[nodeId]
      if (!envelope) return Promise.resolve(undefined)
      const key = keyOf(nodeId, envelope)
      return opened.get(key) ?? hold(key, envelope, openEnvelope(deps.store, executionId, envelope))
    },
    write(nodeId: string, envelope: Envelope, value: unknown): void {
      outputs[nodeId] = envelope
      hold(keyOf(nodeId, envelope), envelope, Promise.resolve(value))
    },
    /** Throws the NodeFailure of a node that would read more at once than a worker can hold. */
    demandRoom(nodeIds: string[]): void {
      const sizes = new Map<string, number>()
      for (const id of nodeIds) if (outputs[id]) sizes.set(keyOf(id, outputs[id]), outputs[id].bytes)
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
  triggerNodeId: string
  attempt: number
  idempotencyKey: string
  signal: AbortSignal
}

/** Everything a node's runner is given. Throws NodeFailure for too much of it, else only where values cannot be had. */
export async function prepareStep(deps: ActivityDeps, values: Values, step: Step): Promise<NodeContext> {
  values.demandRoom([...step.sources, ...step.needs])
  const inputs = await Promise.all(step.sources.map((id) => values.read(id)))
  const nodes: Record<string, unknown> = Object.create(null)
  for (const id of [...new Set([...step.sources, ...step.needs])]) nodes[id] = await values.read(id)
  const input = mergeInputs(inputs)
  const trigger = nodes[step.triggerNodeId]
  return {
    config: step.node.config,
    input,
    inputs,
    bindings: {
      input,
      nodes,
      trigger,
      vars: await readVariables(deps.store, step.context.workflowId, step.node.config),
      execution: showContext(step.context),
    },
    evaluator: deps.evaluator,
    http: deps.http,
    signal: step.signal,
    attempt: step.attempt,
    idempotencyKey: step.idempotencyKey,
  }
}

// A trace is the operator's, not the graph's.
function showContext(context: ExecutionContext): ExecutionContext {
  if (context.traceparent === undefined) return context
  const { traceparent: _, ...shown } = context
  return shown
}

/** Runs a node's own code: what it throws is the node's failure, never the engine's. */
export async function runStep(node: GraphNode, context: NodeContext): Promise<NodeResult> {
  if (node.disabled) return { output: context.input }
  const runner = RUNNERS[node.type as keyof typeof RUNNERS]
  if (!runner) throw new NodeFailure(`No runner for the node type ${node.type}`, { type: 'UnknownNodeType' })
  return runner(context)
}

/** Wraps a node's output; an output that is an input passed on keeps that input's envelope. */
export async function packResult(
  deps: ActivityDeps,
  executionId: string,
  values: Values,
  step: Pick<Step, 'sources'>,
  output: unknown,
  inlineBytes: number,
): Promise<Envelope> {
  const [only] = step.sources
  if (step.sources.length === 1 && only && (await values.read(only)) === output && values.outputs[only]) {
    return values.outputs[only]
  }
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
