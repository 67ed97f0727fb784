import type { AgentStep, AgentStepResult, StepRunner } from '../../activities/agents/step.ts'
import { NodeFailure } from '../../activities/nodes/kit/failure.ts'
import type { NodeContext } from '../../activities/nodes/kit/node.ts'
import { openPause, readPause } from '../../db/executions/waits/pauses.ts'
import type { GraphNode } from '../../workflows/graph/graph.ts'
import { joinStep } from '../../workflows/run/walk.ts'
import { countCalls, type ExpectedNode, type FindFate } from './interpreter.ts'

/** How many tasks each turn of a simulated agent asks for, before the one that ends it; every other task may wait. */
type AgentPlan = { turns: number[]; asks: boolean }

/** What the agent knows between its turns: the number of the next, and what it was told of its tasks. */
type State = { turn: number }

const FAILED = 'failed'

/** The steps of an agent whose plan stands in its config. What becomes of each is the world's business. */
export const runSimulatedStep: StepRunner = async (context, step) =>
  step.kind === 'turn' ? takeTurn(context, step) : doTask(context, step)

async function takeTurn(
  context: NodeContext,
  { state, log, outcomes }: Extract<AgentStep, { kind: 'turn' }>,
): Promise<AgentStepResult> {
  const { turns, asks } = context.config as AgentPlan
  const { turn } = (state ?? { turn: 0 }) as State
  await callWorld(context)
  const news = outcomes.map((outcome) => ('error' in outcome ? FAILED : outcome.output))
  const shown = { kind: 'turn', input: { turn }, output: { turn } } as const
  if (turn >= turns.length) return { ...shown, done: { told: [...log, ...news] } }
  const tasks = Array.from({ length: turns[turn]! }, (_, at) => ({
    ...{ callId: `${turn}.${at}`, tool: 'tool', repeats: true },
    ...(asks && at % 2 === 1 ? { pauses: true as const } : {}),
  }))
  return { ...shown, state: { turn: turn + 1 }, log: news, tasks }
}

async function doTask(
  context: NodeContext,
  { task, resumes }: Extract<AgentStep, { kind: 'task' }>,
): Promise<AgentStepResult> {
  const { callId } = task
  const shown = { kind: 'task', input: { callId } } as const
  if (!task.pauses) return { ...shown, output: await callWorld(context) }
  const { spot, config } = context
  const pause = resumes
    ? await readPause(spot.store, spot)
    : await openPause(spot.store, spot, {
        ...{ kind: 'APPROVAL', message: null, approvers: [], approverIds: [], form: null, required: 1 },
        ...{ selfApproval: true, timeoutMs: (config.timeoutMs as number | undefined) ?? null },
      })
  if (!pause || pause.status === 'ABANDONED')
    throw new NodeFailure('The wait was abandoned', { type: 'Abandoned' })
  if (pause.status !== 'OPEN') return { ...shown, output: pause.status }
  return { ...shown, pause: { until: pause.leftMs === null ? null : Date.now() + Math.ceil(pause.leftMs) } }
}

async function callWorld({ http, idempotencyKey, signal }: NodeContext): Promise<unknown> {
  const headers = { 'idempotency-key': idempotencyKey }
  const { status, body } = await http.request({ method: 'POST', url: 'http://world.test/', headers, signal })
  if (status === 200) return JSON.parse(body.toString())
  throw new NodeFailure(`The world said ${status}`, { type: `Http${status}`, retryable: status === 503 })
}

/** What an agent comes to, by its plan and its fate; `told` is undefined if one of its turns fails. */
export function expectAgent(
  node: GraphNode,
  path: string,
  findFate: FindFate,
): { steps: Map<string, ExpectedNode>; told: unknown[] | undefined } {
  const { turns, asks } = node.config as AgentPlan
  const steps = new Map<string, ExpectedNode>()
  const told: unknown[] = []
  let step = 0
  const expect = (how: (place: string) => ExpectedNode): ExpectedNode => {
    const place = joinStep(path, ++step)
    const expected = how(place)
    steps.set(`${node.id}#${place}`, expected)
    return expected
  }
  const call = (output: (answer: unknown) => unknown) =>
    expect((place) => {
      const { calls, isAnswered, answer } = countCalls(node, findFate(node.id, place))
      if (!isAnswered) return { status: 'FAILED', calls }
      const { body } = answer as { body: unknown }
      return { status: 'SUCCESS', calls, left: { output: output(body), handle: null } }
    })
  for (const [turn, count] of [...turns, null].entries()) {
    if (!call(() => ({ turn })).left) return { steps, told: undefined }
    for (let at = 0; at < (count ?? 0); at++) {
      const task =
        asks && at % 2 === 1
          ? expect((place) => {
              const output = STATUSES[findFate(node.id, place).decision!]
              return { status: 'SUCCESS', calls: 0, left: { output, handle: null } }
            })
          : call((body) => body)
      told.push(task.left ? task.left.output : FAILED)
    }
  }
  return { steps, told }
}

const STATUSES: Record<string, string> = { approved: 'APPROVED', rejected: 'REJECTED', timeout: 'EXPIRED' }
