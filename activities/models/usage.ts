import { randomUUID } from 'node:crypto'
import type { Info } from '@temporalio/activity'
import type { Logger } from 'pino'
import { validate } from 'uuid'
import {
  type ModelCallEnd,
  type ModelCaller,
  noteModelCall,
  noteModelCallEnd,
  readEarlierCalls,
} from '../../db/monitoring/usage/calls.ts'
import { findModelPrices } from '../../db/monitoring/usage/prices.ts'
import type { Store } from '../../db/scope.ts'
import type { AttemptInput } from '../../workflows/run/messages.ts'
import { retryOutages } from '../run/outages.ts'
import type { UsageMeter } from './meter.ts'
import type { ModelUsage } from './model.ts'
import { hasPrice, priceCall } from './prices.ts'

/** More tokens than any model can take or give: a vendor that reports them reports nothing. */
const MOST_TOKENS = 1_000_000_000

/** PostgreSQL's largest integer. */
const MOST_MS = 2 ** 31 - 1

/**
 * `signal` is aborted when the attempt is over, `unwanted` once its outcome is not wanted. `pause` stops the node's
 * time limit until the function that it returns is called: if the limit passed while a note waits for PostgreSQL, the
 * call would be made and paid again.
 */
type Metered = {
  info: Pick<Info, 'activityId' | 'attempt'>
  teamId: string
  signal: AbortSignal
  unwanted: AbortSignal
  pause: () => () => void
}

/** The meter of one attempt, which notes its calls to models. While PostgreSQL is away, it waits. */
export function createMeter(
  deps: { store: Store; log: Logger },
  { context, node, iteration, agent }: Pick<AttemptInput, 'context' | 'node' | 'iteration' | 'agent'>,
  { info, teamId, ...metered }: Metered,
): UsageMeter {
  const { activityId, attempt } = info
  const by: ModelCaller = {
    executionId: context.id,
    activityId,
    attempt,
    caller: randomUUID(),
    teamId,
    workflowId: context.workflowId,
    nodeId: node.id,
    iteration,
    step: agent?.step ?? null,
  }
  return createCallerMeter(deps, by, metered)
}

/** The same for any caller. */
export function createCallerMeter(
  { store, log }: { store: Store; log: Logger },
  by: ModelCaller,
  { signal, unwanted, pause }: Pick<Metered, 'signal' | 'unwanted' | 'pause'>,
): UsageMeter {
  const { teamId } = by
  const retry = <T>(until: AbortSignal, work: () => Promise<T>): Promise<T> => {
    const goOn = pause()
    return retryOutages(until, work).finally(goOn)
  }
  const readPrices = () => retry(signal, () => findModelPrices(store, teamId))
  let calls = 0
  return {
    isPriced: async (provider, model, baseUrl) =>
      hasPrice({ provider, model, baseUrl }, { own: await readPrices(), at: new Date() }),
    async estimate(called, { input, output }) {
      const tokens = { input, output, cached: 0, cacheWrite: 0, reasoning: 0 }
      return priceCall(called, tokens, { own: await readPrices(), at: new Date() })?.cost
    },
    readEarlier: () => retryOutages(signal, () => readEarlierCalls(store, by)),
    async begin({ credentialId, ...called }) {
      const own = await readPrices()
      const at = new Date()
      const call = ++calls
      const to = { ...called, credentialId: validate(credentialId) ? credentialId : null }
      // The call is made in any case. If its row stays open, it counts as a call whose cost is unknown.
      const end = (outcome: ModelCallEnd) =>
        retry(unwanted, () => noteModelCallEnd(store, by, call, outcome)).catch((err) =>
          log.error(
            { err, executionId: by.executionId, outcome },
            'the end of a call to a model was not noted',
          ),
        )
      await retry(signal, () => noteModelCall(store, by, call, to))
      if (signal.aborted) {
        await end({ status: 'REFUSED', ...FREE, firstMs: null, latencyMs: 0 })
        throw signal.reason
      }
      return {
        async end({ status, usage, firstMs, latencyMs, units }) {
          const times = { firstMs: firstMs === null ? null : toMs(firstMs), latencyMs: toMs(latencyMs) }
          if (status === 'REFUSED') {
            await end({ status, ...FREE, ...times })
            return 0
          }
          // If the answer was cut off, a vendor may have reported only a part of the usage.
          const tokens = status === 'SUCCESS' && usage && isCounted(usage) ? usage : null
          const cost = tokens && priceCall(called, tokens, { own, at })
          await end({
            status,
            tokens,
            cost: cost ? cost.cost.toFixed(10) : null,
            price: cost ? cost.price : null,
            ...times,
            ...(units ? { units } : {}),
          })
          return cost ? cost.cost : null
        },
      }
    },
  }
}

/** What a call has cost that the vendor refused, or that was not sent. */
const FREE = {
  tokens: { input: 0, output: 0, cached: 0, cacheWrite: 0, reasoning: 0 },
  cost: '0',
  price: null,
}

const isCounted = (usage: ModelUsage) =>
  [usage.input, usage.output, usage.cached, usage.cacheWrite, usage.reasoning].every(
    (tokens) => Number.isSafeInteger(tokens) && tokens >= 0 && tokens <= MOST_TOKENS,
  )

const toMs = (ms: number) => Math.min(MOST_MS, Math.max(0, Math.round(ms)))
