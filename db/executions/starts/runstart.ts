import { LRUCache } from 'lru-cache'
import { type Envelope, INPUT_REF } from '../../../workflows/run/plan.ts'
import { perDatabase } from '../../cache.ts'
import { rememberOwner } from '../../owners.ts'
import type { Store } from '../../scope.ts'
import { readSettings } from '../../workflows/settings.ts'
import { isNotSingle } from '../part.ts'
import type { StartableWorkflow } from './startable.ts'

/** Bigger trigger data stays in the execution's row, and the run gets a reference to it. */
const INLINE_INPUT_BYTES = 2_000

const DEFAULT_TIMEZONE = 'UTC'

/** `fresh`: it was not read, but has just been written; with no limit of its workflow on how many run at once. */
type RunStart = NonNullable<Awaited<ReturnType<typeof readStored>>> & { fresh?: boolean }

/** The start data that was written a moment ago, by execution: each is used once, right after it was written. */
const freshOf = perDatabase(() => new LRUCache<string, RunStart>({ max: 1_000, ttl: 200 }))

/**
 * What an execution's run is started with; its input is an envelope. Undefined if it is deleted. One that this process
 * has just written is not read again: it may have been cancelled or deleted since, as between a read and the start.
 */
export async function readRunStart(
  store: Pick<Store, 'db'>,
  executionId: string,
): Promise<RunStart | undefined> {
  const fresh = freshOf(store.db).get(executionId)
  freshOf(store.db).delete(executionId)
  return fresh ?? readStored(store, executionId)
}

/** Makes the next read of an execution's start a real one: its row has changed. */
export function forgetStarted(store: Pick<Store, 'db'>, executionId: string): void {
  freshOf(store.db).delete(executionId)
}

type Written = {
  workflow: StartableWorkflow
  start: {
    data: Record<string, unknown>
    text: string
    trigger: string
    node: { id: string }
    traceparent?: string | undefined
    tracestate?: string | undefined
    given?: unknown
    retriedFrom?: string | undefined
    onlyNode?: string | undefined
    swept?: boolean
  }
  added: { executionId: string; status: string; queued: boolean }
}

/** Remembers what was just written: the team, and what the run is started with, unless others are to start it. */
export function rememberStarted(
  store: Store,
  { teamId, id: workflowId, name, version, settings }: Written['workflow'],
  {
    data,
    text,
    trigger,
    node,
    traceparent,
    tracestate,
    given,
    retriedFrom,
    onlyNode,
    swept,
  }: Written['start'],
  { executionId: id, status, queued }: Written['added'],
): void {
  // The caller's next request is likely to be for this execution.
  rememberOwner(store, id, teamId)
  if (status !== 'PENDING' || queued || given || retriedFrom || swept) return
  freshOf(store.db).set(id, {
    fresh: !settings.concurrency,
    id,
    workflowId,
    workflowName: name,
    workflowVersion: version,
    trigger,
    triggerNodeId: node.id,
    status,
    timeoutMs: settings.timeoutMs,
    traceparent: traceparent ?? null,
    tracestate: tracestate ?? null,
    queuedAt: null,
    teamId,
    given: null,
    retryOf: null,
    onlyNode: onlyNode ?? null,
    timezone: settings.timezone ?? DEFAULT_TIMEZONE,
    input: makeInput(data, Buffer.byteLength(text)),
  })
}

function makeInput(data: unknown, bytes: number): Envelope {
  return bytes <= INLINE_INPUT_BYTES ? { v: data, bytes } : { ref: INPUT_REF, bytes }
}

async function readStored({ db }: Pick<Store, 'db'>, executionId: string) {
  const row = await db
    .selectFrom('executions')
    .select(['id', 'workflowId', 'workflowName', 'workflowVersion', 'trigger', 'triggerNodeId', 'status'])
    .select([
      'timeoutMs',
      'inputBytes',
      'traceparent',
      'tracestate',
      'queuedAt',
      'teamId',
      'given',
      'onlyNode',
    ])
    .select((eb) =>
      eb.case().when('inputBytes', '<=', INLINE_INPUT_BYTES).then(eb.ref('inputData')).end().as('inputData'),
    )
    .select((eb) =>
      eb
        .selectFrom('executions as earlier')
        .select('earlier.id')
        .whereRef('earlier.id', '=', 'executions.retriedFrom')
        .whereRef('earlier.workflowVersion', '=', 'executions.workflowVersion')
        .where('executions.recovery', '=', 'RETRY')
        .where(isNotSingle('executions.only_node'))
        .as('retryOf'),
    )
    .select((eb) =>
      eb
        .selectFrom('workflows')
        .select('settings')
        .whereRef('workflows.id', '=', 'executions.workflowId')
        .as('settings'),
    )
    .where('id', '=', executionId)
    .executeTakeFirst()
  if (!row) return undefined
  const { settings, inputBytes: bytes, inputData, ...execution } = row
  return {
    ...execution,
    input: makeInput(inputData, bytes),
    timezone: readSettings(settings).timezone ?? DEFAULT_TIMEZONE,
  }
}
