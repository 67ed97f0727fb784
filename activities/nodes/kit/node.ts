import type { WrittenOutput } from '../../../db/executions/records/written.ts'
import type { WebhookAnswer } from '../../../db/executions/starts/webhooks.ts'
import type { NodeInstance } from '../../../db/executions/waits/pauses.ts'
import type { Store } from '../../../db/scope.ts'
import type { ItemList } from '../../../workflows/input.ts'
import type { NodeNotes } from '../../../workflows/run/records.ts'
import type { ReplyWriter } from '../../agents/reply.ts'
import type { Share } from '../../budget.ts'
import type { Credentials } from '../../credentials/credentials.ts'
import type { Dial } from '../../egress/dial.ts'
import type { Bindings } from '../../expressions/bindings.ts'
import type { Evaluator } from '../../expressions/evaluator.ts'
import type { Files } from '../../files/files.ts'
import type { CheckText } from '../../guardrails/violations.ts'
import type { HttpClient } from '../../http/http.ts'
import type { Metrics } from '../../metrics.ts'
import type { UsageMeter } from '../../models/meter.ts'
import type { NoteKeeper } from './notes.ts'

/** What a runner gets for one attempt. Its values are plain JSON, shared between nodes: never change them. */
export type NodeContext = {
  /** The config as stored: checked when it was saved, with templates not yet rendered. */
  config: Record<string, unknown>
  /** `$input`. */
  input: unknown
  /** The outputs of the taken in-edges' sources, in edge order. */
  inputs: unknown[]
  bindings: Bindings
  evaluator: Evaluator
  /** What the node notes beside its output goes here: it is kept if the node fails, too. */
  notes: NoteKeeper
  /** Aborted on cancel, on shutdown and when the attempt's time is up. */
  signal: AbortSignal
  /** The number of this attempt, from 1. */
  attempt: number
  /** The same for every attempt of the node: execution id and activity id. */
  idempotencyKey: string
  /** Only attempts have it: they may send what the execution that is retried has sent, under the same key. */
  sending?: Sending
  http: HttpClient
  /** Only attempts have them: a secret is opened in an activity of its own. */
  credentials?: Credentials
  /** Only attempts have them. */
  files?: Files
  /** Only attempts have it. */
  dial?: Dial
  /** Only attempts have it: makes the checks of the node's guardrails beside its work, which is not done again for them. */
  guard?: CheckText
  /** Only attempts have it: every call to a model is noted there before it is sent. */
  meter?: UsageMeter
  /**
   * A task of an agent that must not be repeated has it: commits the note that its tool is called now. It is called as late
   * as possible before anything that may have an effect; what it throws, the task fails with.
   */
  begin?: () => Promise<void>
  /** How models are asked in this process. Only attempts have it. */
  models?: { silenceMs?: number | undefined; metrics?: Metrics | undefined }
  /** The reply node of a chat has it, in attempts. */
  reply?: ReplyWriter
  /** What the attempt may take of the process's budget: it shrinks with what its answer needs. */
  share?: Share | undefined
  /** Checks a text in the name of the team. */
  check: CheckText
  /** Whether an edge leads on from this handle of the node. */
  leads: (handle: string | null) => boolean
  /** Where the node is in its run. Nodes that pause keep their rows under it. */
  spot: NodeInstance & { store: Store; traceparent: string | undefined; tracestate: string | undefined }
  /** Sets the response to the webhook request that started the run; only the first call counts. */
  answer: (answer: WebhookAnswer) => Promise<void>
}

/**
 * Without `handle` it is the main handle. `until` (epoch milliseconds) makes the run wait before it goes on. `pause`
 * means that there is no result yet: a caller outside the run writes into the node's row and nudges the run, or the
 * time `until` comes (null is never). `written` is an output that another process has written, instead of `output`;
 * only attempts may have it. `notes` are added to what the context's keeper has.
 */
export type NodeResult = {
  output?: unknown
  written?: WrittenOutput
  handle?: string
  until?: number
  /** What leaves by each of several handles at once. */
  branches?: Record<string, { items: unknown[]; from: number[][] }>
  /** The handles by which the output leaves, if they are several. */
  handles?: string[]
  pause?: { until: number | null }
  /** For a list of items: the list that they were made of, and for each the index in there (or several). */
  places?: { of: unknown[]; from: ItemList['from'] }
  notes?: NodeNotes
}

/** How a runner sends a request that changes something. */
export type Sending = {
  /** The key under which to send the request, which is noted for a retry of the execution. */
  begin(request: { method: string; url: string; body?: string | undefined }): string
  /** The whole answer to the request has come, whatever it says. */
  answered(): void
}

/** Executes one attempt of a node; throws a NodeFailure if the node itself fails. */
export type NodeRunner = (context: NodeContext) => Promise<NodeResult>
