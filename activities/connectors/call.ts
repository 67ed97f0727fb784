import { createHash } from 'node:crypto'
import type { ConnectorStep } from '../../workflows/connectors/connector.ts'
import { isMaking, isReading } from '../../workflows/connectors/connector.ts'
import { NEWEST_RULES } from '../../workflows/expressions/rules.ts'
import type { Bindings } from '../expressions/bindings.ts'
import type { NodeContext } from '../nodes/kit/node.ts'
import { sendOnce } from '../send/once.ts'
import { findMaker } from './makers/makers.ts'
import { sendPages } from './pages.ts'
import { type ActionCall, type Answer, sendStep } from './step.ts'

const WAY = 'Look there before it is done again, or set `repeat` if twice is better than never'

/**
 * Carries out an action, and resolves to its output. If it must not be repeated, each request that changes something is
 * sent at most once, whatever happens to the attempts: its answer is stored, and later attempts go on with that. Throws a
 * NodeFailure: `Http<status>` for what the service refuses (retried: 408, 425, 429 and 5xx), OutcomeUnknown if it is not
 * known whether a request was carried out, and those of expressions.
 */
export async function callAction(context: NodeContext, call: ActionCall): Promise<unknown> {
  const evaluator = context.evaluator.under({ rules: NEWEST_RULES, strict: false })
  const key = createHash('sha256').update(context.idempotencyKey).digest('hex').slice(0, 32)
  const bindings: Bindings & { args: Record<string, unknown> } = {
    ...{ input: call.input, nodes: {}, trigger: null, vars: {}, args: {} },
    execution: { ...context.bindings.execution, key },
  }
  const own = { ...context, evaluator, bindings }
  let last: unknown = null
  for (const step of call.action.steps) {
    if (step.when !== undefined && !(await evaluator.test(step.when, bindings))) continue
    if (isMaking(step)) {
      last = await findMaker(step.make)(await evaluator.render(step.of, bindings), own)
    } else {
      const { body, ...head } = await takeStep(own, call, step)
      bindings.args[step.name] = head
      last = body
    }
    bindings.nodes[step.name] = last
  }
  const { result } = call.action
  return result === undefined ? last : evaluator.render(result, bindings)
}

async function takeStep(context: NodeContext, call: ActionCall, step: ConnectorStep): Promise<Answer> {
  const { sending: _, share, idempotencyKey: key, ...rest } = context
  const isAlone = call.action.steps.length === 1 && !step.pages
  // What the attempt may hold shrinks to its answer, unless others follow.
  const own: NodeContext = { ...rest, idempotencyKey: `${key}/${step.name}`, ...(isAlone ? { share } : {}) }
  const isOnce = call.action.safety === 'ONCE' && !isReading(step.method) && !step.repeatable
  const isNoted = call.noted && (step.keep || step.done || isOnce)
  if (!isNoted) return (await isPaged(own, step)) ? sendPages(own, call, step) : sendStep(own, call, step)
  const repeat = call.repeat || step.keep === true || step.done !== undefined
  const what = `The request of "${call.action.name}" to ${call.connector.title}`
  const once = { what, uncertain: 'OutcomeUnknown', repeat, way: WAY } as const
  return (await sendOnce(own, once, (handover) => sendStep(own, call, step, handover))) as Answer
}

async function isPaged({ evaluator, bindings }: NodeContext, { pages }: ConnectorStep): Promise<boolean> {
  if (!pages) return false
  return pages.when === undefined || evaluator.test(pages.when, bindings)
}
