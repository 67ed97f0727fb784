import { beginAgent, describeStep, moveAgent } from './agents.ts'
import { attemptNode, demandOurs, readFailure, refusal } from './commands.ts'
import { inputOf, isUnder, outputsAround, trailOf } from './frame.ts'
import { type Task, taskKey } from './loops.ts'
import type { AttemptInput } from './messages.ts'
import type { Envelope, PlanNode } from './plan.ts'
import { type NodeError, RUN_REFUSED, type StepResult } from './records.ts'
import { isEntry, settleFailure } from './walk.ts'
import { beginWork, noteRecord, type Run } from './work.ts'

/** Starts the activity of a node. */
export function startAttempt(run: Run, task: Task): void {
  const { node, frame } = task
  const attempt = describeAttempt(run, task)
  beginWork(run, {
    within: run.scopes.find(frame),
    keys: [taskKey(task)],
    work: () => attemptNode(attempt),
    done(result) {
      demandOurs(result)
      noteResult(run, task, { status: 'SUCCESS', ...result })
    },
    failed: (error) => noteResult(run, task, settleAttempt(node, readOwnFailure(error))),
  })
}

/** Does the next step of an agent, whose outcome says what comes then. */
export function startStep(run: Run, task: Task): void {
  const { node, frame } = task
  const { agents, waits } = frame
  agents[node.id] ??= beginAgent(node)
  const agent = agents[node.id]!
  const attempt = { ...describeAttempt(run, task), agent: describeStep(agent) }
  const move = (outcome: Parameters<typeof moveAgent>[1]) => {
    // Its iteration may have ended meanwhile.
    if (!isUnder(run.input.plan, run.root, frame)) return
    delete waits[node.id]
    const next = moveAgent(agent, outcome)
    if ('ended' in next) {
      const { ended } = next
      noteResult(run, task, ended.status === 'FAILED' ? settleAttempt(node, ended.error) : ended)
      return
    }
    agents[node.id] = next.agent
    if (next.until !== undefined)
      waits[node.id] = { until: next.until, handle: null, pause: true, step: agent.step }
  }
  beginWork(run, {
    within: run.scopes.find(frame),
    keys: [taskKey(task)],
    work: () => attemptNode(attempt),
    done(result) {
      demandOurs(result)
      move(result)
    },
    failed: (error) => move({ error: readOwnFailure(error) }),
  })
}

function noteResult(run: Run, { node, frame }: Task, result: StepResult): void {
  noteRecord(run, {
    nodeId: node.id,
    iteration: frame.iteration,
    startedAt: 0,
    completedAt: 0,
    ...result,
  })
}

/** The input of the activity: the node, and the outputs that it takes or names. */
function describeAttempt({ input: { plan }, root, context }: Run, { node, frame }: Task): AttemptInput {
  const { taken, around } = inputOf(plan, root, node, frame)
  const sources = [...new Set(taken.map(({ source }) => source))]
  const outputs: Record<string, Envelope> = {}
  const find = outputsAround(plan, root, frame)
  const trail = trailOf(plan, root, node, frame)
  for (const id of [...sources, ...node.needs, ...(node.pairs ?? [])]) {
    const output = find(id)
    if (output) outputs[id] = output
  }
  return {
    node,
    context,
    triggerNodeId: plan.triggerNodeId,
    inlineBytes: plan.inlineBytes,
    sources,
    ...(taken.some(({ part }) => part !== undefined) ? { taken } : {}),
    ...(around ? { around } : {}),
    ...(trail ? { trail } : {}),
    outputs,
    iteration: frame.iteration,
    ...(frame.item && (isEntry(plan, node) || node.readsItem) ? { item: frame.item } : {}),
  }
}

/** The failure of an attempt. Throws the one that ends the run, if what came from Temporal was refused. */
function readOwnFailure(error: unknown): NodeError {
  const failed = readFailure(error)
  if (failed.type === RUN_REFUSED) throw refusal(failed.message)
  return failed
}

/** How a node is settled whose attempt failed: with the error as its output, if onError says so. */
function settleAttempt(node: PlanNode, error: NodeError): StepResult {
  const handled = settleFailure(node, error)
  if (handled === 'fatal') return { status: 'FAILED', error, handle: null }
  const { output, handle } = handled
  const bytes = JSON.stringify(output ?? null).length
  return { status: 'FAILED', error, output: { v: output, bytes }, handle }
}
