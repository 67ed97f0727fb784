/** The facts of a graph version that a run needs: the shape and how each node runs, never the configs. */
export type Plan = {
  workflowId: string
  version: number
  triggerNodeId: string
  /** In topological order, ties in the author's order. */
  nodes: PlanNode[]
  /** In the author's order. */
  edges: PlanEdge[]
  /** Outputs of up to this many bytes of JSON travel inline, which keeps within Temporal's limits. */
  inlineBytes: number
  /** The `$item` of a node that is executed alone. */
  item?: Envelope
}

export type PlanNode = {
  id: string
  name: string
  type: string
  kind: NodeKind
  /**
   * Pure, but with a retry or time limit of its own, or code that may take long: it is an activity instead of a step in
   * a segment.
   */
  alone?: true
  /** The loop whose body it is in. */
  parentId?: string
  loop?: LoopSpec
  /** It works on the items that come to it: on each by itself, or once on all of them. */
  items?: 'each' | 'all'
  /** The node whose items it works on, one in each iteration of the loop which that node is in the plan. */
  itemOf?: string
  /** Its config reads what comes to the node `itemOf`, and not only the item. */
  readsInput?: true
  /** Its config reads `$item` or `$index`. */
  readsItem?: true
  /** The node is preset: it is not run, and this is its output. */
  given?: Presets[string]
  /** An agent that goes on where it stopped in the execution that this one retries. */
  begun?: BegunAgent
  /** Disabled, or a placeholder: passes its input on, by its first handle, and leaves no record. */
  silent?: { handle: string | null }
  onError: OnError
  retry: Required<Retry>
  timeoutMs: number
  /** Its attempts wait in the queue of calls to models and tools of agents. */
  queue?: 'models'
  /** Its text is the reply in the chat that the run belongs to. */
  reply?: true
  /** How long its code may take, in milliseconds of processor time. */
  codeMs?: number
  /** The ids of nodes whose outputs its config names. */
  needs: string[]
  /**
   * Its config pairs items with those of nodes before it: the nodes through which they came, whose outputs it needs
   * too.
   */
  pairs?: string[]
}

/** The name of a further task queue of the workers that work on `taskQueue`. */
export function nameQueue(taskQueue: string, queue: NonNullable<PlanNode['queue']>): string {
  return `${taskQueue}-${queue}`
}

/** A node of kind `loop`. */
export type LoopNode = PlanNode & { loop: LoopSpec }

/** How a loop runs. `collects`: a failed iteration does not end it. `pure`: a segment can do all of it. */
export type LoopSpec = {
  mode: 'each' | 'repeat'
  concurrency: number
  collects: boolean
  max: number
  pure: boolean
}

/** The suffix of a node's id for the node that works on one of its items. No author's id has a `$`. */
const ITEM_SUFFIX = '$item'

/** The id, in the plan, of the node that works on one item of a node. */
export function itemNodeId(nodeId: string): string {
  return nodeId + ITEM_SUFFIX
}

/** The id that a node of the plan has in the author's graph. */
export function graphNodeId(nodeId: string): string {
  return nodeId.endsWith(ITEM_SUFFIX) ? nodeId.slice(0, -ITEM_SUFFIX.length) : nodeId
}

/**
 * The handles by which a node leaves at once, of those that it has, as one text in the place of a handle, which is
 * also how they are stored. Null for the only handle of a node. No handle of an author begins with a bracket.
 */
export function joinHandles(left: (string | null)[], all: (string | null)[]): string | null {
  return left.length === 1 && all.length === 1 && left[0] === null ? null : JSON.stringify(left)
}

/** The handles that joinHandles has joined; undefined for a single handle. */
export function splitHandles(handle: string | null): (string | null)[] | undefined {
  return handle?.startsWith('[') ? (JSON.parse(handle) as (string | null)[]) : undefined
}

export type PlanEdge = { source: string; handle: string | null; target: string }

/**
 * How a node runs. `trigger`: its output is the data that started the run. `pure`: computes from its inputs alone, in a
 * segment. `wait`: pure up to an instant, then a timer. `effect`: touches the world, an activity of its own. `loop`:
 * its children run once per iteration. `pause`: waits for an answer from outside, which is written into its row.
 * `agent`: works in steps, each an activity of its own, as many as it wants.
 */
export const NODE_KINDS = ['trigger', 'pure', 'wait', 'effect', 'loop', 'pause', 'agent'] as const
export type NodeKind = (typeof NODE_KINDS)[number]

/** The effect of a node's failure: it ends the run, goes on with the error as output, or leaves by `error`. */
export const ON_ERROR = ['FAIL', 'CONTINUE', 'BRANCH'] as const
export type OnError = (typeof ON_ERROR)[number]

/** Temporal's retry policy for one node; `maxAttempts` counts the first attempt too. */
export type Retry = {
  maxAttempts?: number
  initialIntervalMs?: number
  backoffCoefficient?: number
  maxIntervalMs?: number
}

/** An output on its way: the value, or a reference to where it is stored. `bytes` is its size as JSON. */
export type Envelope = { v: unknown; bytes: number } | { ref: string; bytes: number }

/**
 * Outputs that nodes are given instead of being run, by node id. `from` is PINNED, or the id of the execution
 * whose output is reused.
 */
export type Presets = Record<string, Preset>

/** With `begun` it is no output: the node is an agent that goes on where it stopped. */
type Preset = { output: Envelope; handle: string | null; from: string; begun?: Omit<BegunAgent, 'from'> }

/** One call of a tool that a turn of an agent has asked for. */
export type AgentTask = {
  /** The id that the model gave the call. The call's arguments are in the state. */
  callId: string
  /** The name of the tool, for the record. */
  tool: string
  /** Whether a task whose worker was lost may be done again; else its outcome is unknown. */
  repeats: boolean
  /** It may wait for something outside the run: a sub-workflow, an approval. */
  pauses?: true
}

/** The outcome of a task, on its way to the next turn. */
export type SettledTask = { callId: string } & (
  | { output: Envelope }
  | { error: { message: string; type: string } }
)

/** A part of what an agent's turns have logged: entries one after the other. `level` says how often it was joined. */
export type LogChunk = { entries: Envelope; level: number }

/** The state of an agent that is under way, between its steps and in one. Plain JSON. */
export type Agent = {
  /** The number of the step that is next or under way, from 1. */
  step: number
  /** The state that the last turn has left for the next. */
  state?: Envelope
  /** The log of all turns, in their order; not set in agents that have logged nothing. */
  log?: LogChunk[]
  /** The tasks of the last turn that are not settled; the first is next or under way. */
  tasks: AgentTask[]
  settled: SettledTask[]
  /** The first task waits for something outside the run, or has waited. */
  paused?: true
}

/** A step that an execution takes over from the one that it retries. */
export type TakenStep = {
  tool: string | null
  input: Envelope
  output: Envelope | null
  errorMessage: string | null
}

/** An agent that goes on where it stopped in the execution `from`, after the steps that it has made there. */
export type BegunAgent = { agent: Agent; steps: TakenStep[]; from: string }

/** The reference to the execution's own input, which is kept in its row. */
export const INPUT_REF = 'input'

/** The facts about a run that are known before it starts. */
export type RunContext = {
  id: string
  workflowId: string
  workflowName: string
  version: number
  trigger: string
  /** The IANA name of the workflow's time zone, else UTC. */
  timezone: string
  /** The execution of the same version that this one retries. */
  retryOf?: string
  /** The W3C trace context of the run's own span, if runs are traced. */
  traceparent?: string
  /** The tracestate that the caller's tracing systems sent with it. */
  tracestate?: string
}

/** The run as expressions see it in `$execution`; `startedAt` is ISO 8601. */
export type ExecutionContext = RunContext & { startedAt: string }
