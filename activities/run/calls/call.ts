import type { Info } from '@temporalio/activity'
import type { Exchange } from '../../../db/executions/requests/exchange.ts'
import type { GraphNode } from '../../../workflows/graph/graph.ts'
import { getOwn, isObject } from '../../../workflows/json.ts'
import type { AttemptInput, AttemptResult } from '../../../workflows/run/messages.ts'
import { unlessAborted } from '../../abort.ts'
import { openAgentStep, packAgentStep, runAgentStep } from '../../agents/run.ts'
import { findReplySpot } from '../../chat/replies.ts'
import { createCredentials } from '../../credentials/credentials.ts'
import { createMasking } from '../../credentials/masking.ts'
import type { ActivityDeps } from '../../deps.ts'
import { findTeam, isTurnedAway, readRunTeam } from '../../fairness/turns.ts'
import { createFiles } from '../../files/store.ts'
import { BESIDE_WORK, type CheckOptions, createCheck, IN_ATTEMPT } from '../../guardrails/check.ts'
import { noteExchanges } from '../../http/exchanges.ts'
import { createMeter } from '../../models/usage.ts'
import { NodeFailure } from '../../nodes/kit/failure.ts'
import type { NodeContext, NodeResult } from '../../nodes/kit/node.ts'
import { demandIdentity } from '../../temporal/identity.ts'
import { createTimeLimit } from '../../timelimit.ts'
import { describeFailure, finalIfDeleted, isInfrastructure } from '../failures.ts'
import { retryOutages } from '../outages.ts'
import { NoRoom } from '../share.ts'
import { loadNode, prepareStep, runStep } from '../step.ts'
import { createRunValues, packResult, packValue, packWritten } from '../values.ts'
import { type KeptAnswer, openAnswer } from './answers.ts'
import type { CallControl } from './calls.ts'
import { describeAttempt, prepareSending } from './idempotencykey.ts'

/**
 * Carries out a node once: reads what it needs, calls its runner within the node's time limit, and stores its
 * answer. Whatever hinders the storing, the runner is not called again: only the storing is.
 */
export async function makeCall(
  deps: ActivityDeps,
  input: AttemptInput,
  { info, number, signal: unwanted, answered }: CallControl & { info: Info; number: number },
): Promise<AttemptResult> {
  const { node, context, outputs } = input
  const values = createRunValues(deps, context.id)
  const limit = new AbortController()
  const time = createTimeLimit(node.timeoutMs, () => {
    const message = `The node took longer than its limit of ${node.timeoutMs} ms`
    limit.abort(new NodeFailure(message, { type: 'NodeTimedOut', retryable: true }))
  })
  const signal = AbortSignal.any([unwanted, limit.signal])
  const { sources, taken, around, trail, triggerNodeId, iteration, item, agent } = input
  const find = (id: string) => getOwn(outputs, id)
  const needs = [...node.needs, ...(node.pairs ?? [])]
  const place = { triggerNodeId, context, iteration, item, agentStep: agent?.step }
  const step = { sources, taken, around, trail, needs, find, ...place }
  const loaded = await retryOutages(unwanted, async () => {
    await demandIdentity(deps.store, context, { open: true })
    return loadNode(deps, context, node.id)
  })
  const more = {
    ...loaded,
    attempt: number,
    idempotencyKey: `${context.id}:${info.activityId}`,
    signal,
  }
  const attempt = describeAttempt(input, info, number)
  const teamId = await retryOutages(unwanted, () => readRunTeam(deps, context))
  const outside = await retryOutages(unwanted, () => deps.outside.forTeam(teamId))
  const credentials = createCredentials(deps.store, outside.http, {
    teamId,
    workflowId: context.workflowId,
  })
  const masking = createMasking(credentials)
  const placed = {
    ...deps,
    // Time that the node waits for a process of others does not count, and the wait ends with the node.
    evaluator: deps.evaluator.for({ waits: time.pause, signal }),
  }
  const sending = await retryOutages(unwanted, () => prepareSending(deps, attempt, more, context.retryOf))
  const share = await deps.shares.take(loaded.node, input, { info, cancellationSignal: unwanted })
  const files = createFiles(deps.store, context.id, signal)
  const spot = findReplySpot(input, info.attempt)
  const reply = spot && deps.replies.open(spot, masking.pieces())
  const meter = createMeter(deps, input, { info, teamId, signal, unwanted, pause: time.pause })
  const reach = {
    http: noteExchanges(outside.http, attempt, (exchange) =>
      deps.attempts.noteExchange(withoutGuarded(loaded.node, masking.exchange(exchange))),
    ),
    dial: outside.dial,
    credentials,
    files: masking.files(files),
    meter,
    ...openChecks(placed, input, number, { meter, signal }),
    models: { silenceMs: deps.modelSilenceMs, metrics: deps.metrics },
    ...(reply ? { reply } : {}),
  }
  let working: Promise<NodeResult> | undefined
  let noted: NodeContext['notes'] | undefined
  let hasAnswer = false
  try {
    const prepared = await retryOutages(unwanted, () => prepareStep(placed, values, { ...step, ...more }))
    noted = prepared.notes
    const agentStep = agent && (await retryOutages(unwanted, () => openAgentStep(values, agent)))
    const given = { ...prepared, ...reach, share, sending }
    time.start()
    working = agentStep ? runAgentStep(loaded.node, given, agentStep) : runStep(loaded.node, given)
    const done = await unlessAborted(working, limit.signal, unwanted).finally(time.stop)
    const result = await masking.result({ ...done, ...noted.kept() })
    hasAnswer = true
    answered(result)
    reply?.end()
    const { written } = result
    if (agent) return storeOnly(unwanted, () => packAgentStep(deps, input, result))
    const output = await storeOnly(unwanted, () =>
      written
        ? packWritten(deps, context.id, written)
        : packResult(deps, values, step, result.output, input.inlineBytes),
    )
    return { output, handle: result.handle ?? null, ...(result.notes ? { notes: result.notes } : {}) }
  } catch (thrown) {
    if (thrown instanceof NodeFailure) Object.assign(thrown, noted?.kept())
    const error = masking.error(thrown)
    await reply?.cut()
    // An answer that could not be stored may travel to the next attempt, and its files with it.
    if (!hasAnswer) await files.discard().catch((err) => deps.log.warn({ err }, 'files were not removed'))
    await sending.noteFailure(unwanted)
    if (!isTurnedAway(error)) throw error
    const afterMs = deps.places.processes.turnAway(await findTeam(deps, context))
    throw new NoRoom('the expressions of this node', afterMs)
  } finally {
    // An attempt that is over because of its limit or a cancellation may still hold an answer for a moment.
    void Promise.allSettled([working]).then(() => share?.release())
  }
}

/** How an attempt checks texts: those of its node, and those of a guarded node beside its work. */
function openChecks(
  deps: Parameters<typeof createCheck>[0],
  { node, context }: Pick<AttemptInput, 'node' | 'context'>,
  number: number,
  given: Pick<CheckOptions, 'meter' | 'signal'>,
): Pick<NodeContext, 'check' | 'guard'> {
  const isLast = number >= node.retry.maxAttempts
  return {
    check: createCheck(deps, context, { ...IN_ATTEMPT, ...(isLast ? {} : { retry: 'later' }), ...given }),
    guard: createCheck(deps, context, { ...BESIDE_WORK, ...given }),
  }
}

/** Leaves out the bodies of nodes whose texts are checked: the texts are in there. */
function withoutGuarded({ config }: GraphNode, exchange: Exchange): Exchange {
  if (!isObject(config.guardrails)) return exchange
  const { body, response } = exchange
  const drop = (start: Exchange['body']) => ({ ...start, text: null })
  return {
    ...exchange,
    body: drop(body),
    response: response && { ...response, body: drop(response.body) },
  }
}

/** Stores the answer that an earlier attempt has got and could not store. */
export async function storeKept(
  deps: ActivityDeps,
  input: AttemptInput,
  kept: KeptAnswer,
  { signal, answered }: CallControl,
): Promise<AttemptResult> {
  const { context, inlineBytes } = input
  const result = openAnswer(kept)
  answered(result, kept)
  const { written } = result
  const demandOpen = () => demandIdentity(deps.store, context, { open: true })
  if (input.agent) {
    return storeOnly(signal, async () => {
      await demandOpen()
      return packAgentStep(deps, input, result)
    })
  }
  const output = await storeOnly(signal, async () => {
    await demandOpen()
    return written
      ? packWritten(deps, context.id, written)
      : packValue(deps, context.id, result.output, inlineBytes)
  })
  return { output, handle: result.handle ?? null, ...(result.notes ? { notes: result.notes } : {}) }
}

/** Repeats the storing while it may succeed. If it cannot, the node fails for good: its call has been answered. */
async function storeOnly<T>(signal: AbortSignal, store: () => Promise<T>): Promise<T> {
  try {
    return await unlessAborted(retryOutages(signal, store), signal)
  } catch (error) {
    if (signal.aborted || isInfrastructure(error) || finalIfDeleted(error) !== error) throw error
    if (error instanceof NodeFailure && !error.retryable) throw error
    const { message, type } = describeFailure(error)
    throw new NodeFailure(message, { type, retryable: false })
  }
}
