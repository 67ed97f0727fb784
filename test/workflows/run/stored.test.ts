import { readdirSync, readFileSync } from 'node:fs'
import { expect, expectTypeOf, test } from 'vitest'
import type { AgentInput, AgentResult } from '../../../workflows/run/agents.ts'
import type { FireActivities, Fired, FireInput, Firing } from '../../../workflows/run/fire.ts'
import type { Failure, Frame, Item, Loop, Result, Wait } from '../../../workflows/run/frame.ts'
import type {
  Activities,
  AttemptInput,
  AttemptResult,
  Carried,
  RunInput,
  SegmentInput,
} from '../../../workflows/run/messages.ts'
import type {
  Agent,
  AgentTask,
  BegunAgent,
  Envelope,
  ExecutionContext,
  LogChunk,
  LoopSpec,
  Plan,
  PlanEdge,
  PlanNode,
  Retry,
  SettledTask,
  TakenStep,
} from '../../../workflows/run/plan.ts'
import {
  ENGINE_FAILED,
  type ItemPage,
  NODE_FAILED,
  type NodeRecord,
  RUN_TIMED_OUT,
  STUCK_ENDED,
  STUCK_REASON,
  type TakenIterations,
  WORKER_LOST,
} from '../../../workflows/run/records.ts'
import { EXHAUSTED, NUDGE } from '../../../workflows/run/walk.ts'

// Keys in histories and rows must keep their names, since open executions have been written with them. Add
// new keys here; renaming or removing one breaks those executions.
const KEYS = {
  Plan: 'workflowId version triggerNodeId nodes edges inlineBytes item',
  PlanNode:
    'id name type kind alone parentId loop readsItem items itemOf readsInput given begun silent onError retry timeoutMs queue reply codeMs needs pairs',
  LoopSpec: 'mode concurrency collects max pure',
  PlanEdge: 'source handle target',
  Retry: 'maxAttempts initialIntervalMs backoffCoefficient maxIntervalMs',
  Envelope: 'v ref bytes',
  ExecutionContext:
    'id workflowId workflowName version trigger timezone retryOf traceparent tracestate startedAt',
  NodeRecord:
    'nodeId iteration status output error handle until pause loop over folded merged forMs startedAt completedAt notes',
  ItemPage: 'from items deep',
  Frame: 'iteration loopId at item outcomes outputs loops waits agents failure elsewhere',
  Loop: 'count pages next frames results chunks taken last over failure',
  TakenIterations: 'ranges chunks',
  Wait: 'until handle pause due step',
  Agent: 'step state log tasks settled paused',
  LogChunk: 'entries level',
  AgentTask: 'callId tool repeats pauses',
  SettledTask: 'callId output error',
  BegunAgent: 'agent steps from',
  TakenStep: 'tool input output errorMessage',
  AgentInput: 'kind step state log settled task resumes',
  AgentResult: 'record state log tasks pause',
  Item: 'page at deep result',
  Result: 'v ref bytes ends merge error',
  Failure: 'message type nodeId at',
  RunInput: 'plan context input timeoutMs continueAfterEvents carried',
  Carried: 'startedAt deadline root nudges awayUntil chain',
  SegmentInput: 'plan context input root busy drains',
  AttemptInput:
    'node context triggerNodeId inlineBytes sources taken around trail outputs iteration item agent',
  AttemptResult: 'output handle returned notes agent',
  Activities: 'walkSegment runNode',
  FireInput: 'workflowId nodeId cron timezone awaiting',
  Firing: 'workflowId nodeId cron timezone scheduledAt firedAt',
  Fired: 'executionId run teamId',
  FireActivities: 'recordFiring noteStarted cancelFired hasEnded',
} as const

type Split<S extends string> = S extends `${infer Word} ${infer Rest}` ? Word | Split<Rest> : S
type Listed = { -readonly [K in keyof typeof KEYS]: Split<(typeof KEYS)[K]> }
type KeysOf<T> = T extends unknown ? keyof T : never

/** Checked by the compiler, in `npm run check`. */
test('the stored types have exactly the listed keys', () => {
  expectTypeOf<Listed>().toEqualTypeOf<{
    Plan: KeysOf<Plan>
    PlanNode: KeysOf<PlanNode>
    LoopSpec: KeysOf<LoopSpec>
    PlanEdge: KeysOf<PlanEdge>
    Retry: KeysOf<Retry>
    Envelope: KeysOf<Envelope>
    ExecutionContext: KeysOf<ExecutionContext>
    NodeRecord: KeysOf<NodeRecord>
    ItemPage: KeysOf<ItemPage>
    Frame: KeysOf<Frame>
    Loop: KeysOf<Loop>
    TakenIterations: KeysOf<TakenIterations>
    Wait: KeysOf<Wait>
    Agent: KeysOf<Agent>
    LogChunk: KeysOf<LogChunk>
    AgentTask: KeysOf<AgentTask>
    SettledTask: KeysOf<SettledTask>
    BegunAgent: KeysOf<BegunAgent>
    TakenStep: KeysOf<TakenStep>
    AgentInput: KeysOf<AgentInput>
    AgentResult: KeysOf<AgentResult>
    Item: KeysOf<Item>
    Result: KeysOf<Result>
    Failure: KeysOf<Failure>
    RunInput: KeysOf<RunInput>
    Carried: KeysOf<Carried>
    SegmentInput: KeysOf<SegmentInput>
    AttemptInput: KeysOf<AttemptInput>
    AttemptResult: KeysOf<AttemptResult>
    Activities: KeysOf<Activities>
    FireInput: KeysOf<FireInput>
    Firing: KeysOf<Firing>
    Fired: KeysOf<Fired>
    FireActivities: KeysOf<FireActivities>
  }>()
})

test('the recorded histories have only listed keys, and all those that an ordinary run writes', () => {
  const seen = new Map<string, Set<string>>()
  const see = (type: keyof typeof KEYS, value: object) => {
    const keys = seen.get(type) ?? new Set()
    for (const key of Object.keys(value)) keys.add(key)
    seen.set(type, keys)
  }
  for (const value of listPayloads()) {
    const { plan, node, context } = value as Partial<RunInput & AttemptInput>
    if (plan) {
      see('RunInput', value)
      see('Plan', plan)
      for (const edge of plan.edges) see('PlanEdge', edge)
      for (const { loop } of plan.nodes) if (loop) see('LoopSpec', loop)
    } else if (node) see('AttemptInput', value)
    for (const one of [...(plan?.nodes ?? []), ...(node ? [node] : [])]) {
      see('PlanNode', one)
      see('Retry', one.retry)
    }
    if (context) see('ExecutionContext', context)
    if (Array.isArray(value) && value.every((record) => Object.hasOwn(Object(record), 'nodeId'))) {
      for (const record of value as NodeRecord[]) {
        see('NodeRecord', record)
        if (record.status === 'LOOPING') for (const page of record.loop.pages) see('ItemPage', page)
      }
    }
  }
  // Only some runs write these: a run of a single node, one with presets, one that a test makes continue as
  // new, a traced one, one with a loop of very many items or results, one in a time zone of its own, a retry, one with a
  // warning, one whose segment gave its slot back, and one that pairs items.
  const rare =
    'item alone given begun continueAfterEvents carried traceparent tracestate deep timezone folded merged forMs retryOf notes pairs trail agent'.split(
      ' ',
    )
  expect([...seen.keys()].sort()).toEqual(
    'AttemptInput ExecutionContext ItemPage LoopSpec NodeRecord Plan PlanEdge PlanNode Retry RunInput'.split(
      ' ',
    ),
  )
  for (const [type, keys] of seen) {
    const listed: string[] = KEYS[type as keyof typeof KEYS].split(' ')
    expect(
      [...keys].filter((key) => !listed.includes(key)),
      `${type} has keys that are not listed`,
    ).toEqual([])
    const missing = listed.filter((key) => !keys.has(key) && !rare.includes(key))
    expect(missing, `no history has these keys of ${type}`).toEqual([])
  }
})

test('the names that Temporal, rows and clients rely on do not change', () => {
  expect({
    NUDGE,
    EXHAUSTED,
    RUN_TIMED_OUT,
    NODE_FAILED,
    ENGINE_FAILED,
    STUCK_ENDED,
    STUCK_REASON,
    WORKER_LOST,
  }).toEqual({
    NUDGE: 'nudge',
    EXHAUSTED: 'exhausted',
    RUN_TIMED_OUT: 'RunTimedOut',
    NODE_FAILED: 'NodeFailed',
    ENGINE_FAILED: 'EngineFailed',
    STUCK_ENDED: 'The execution could not go on',
    STUCK_REASON: 'The run was stuck in its workflow code',
    WORKER_LOST: { message: 'No worker finished this node', type: 'WorkerLost' },
  })
})

/** The values of all payloads in the recorded histories. */
function listPayloads(): object[] {
  const folder = new URL('./histories/', import.meta.url)
  const values: object[] = []
  const visit = (tree: unknown): void => {
    if (typeof tree !== 'object' || tree === null) return
    const { metadata, data } = tree as { metadata?: unknown; data?: unknown }
    if (metadata && typeof data === 'string') {
      const value: unknown = JSON.parse(Buffer.from(data, 'base64').toString() || 'null')
      if (typeof value === 'object' && value !== null) values.push(value)
    } else Object.values(tree).forEach(visit)
  }
  for (const name of readdirSync(folder).filter((file) => file.endsWith('.json')))
    visit(JSON.parse(readFileSync(new URL(name, folder), 'utf8')))
  return values
}
