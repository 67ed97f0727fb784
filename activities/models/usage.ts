import { randomUUID } from 'node:crypto'
import type { Info } from '@temporalio/activity'
import { validate } from 'uuid'
import { type ModelCaller, noteModelCall, noteModelCallEnd } from '../../db/usage/calls.ts'
import { findModelPrices } from '../../db/usage/prices.ts'
import type { AttemptInput } from '../../workflows/run/messages.ts'
import type { ActivityDeps } from '../deps.ts'
import { retryOutages } from '../run/outages.ts'
import type { UsageMeter } from './meter.ts'
import type { ModelUsage } from './model.ts'
import { hasPrice, priceCall } from './prices.ts'

/** More tokens than any model can take or give: a vendor that reports them reports nothing. */
const MOST_TOKENS = 1_000_000_000

/** PostgreSQL's largest integer. */
const MOST_MS = 2 ** 31 - 1

/** `signal` is aborted when the attempt is over, `unwanted` once nobody wants to know what has become of it. */
type Metered = {
  info: Pick<Info, 'activityId' | 'attempt'>
  teamId: string
  signal: AbortSignal
  unwanted: AbortSignal
}

/** The meter of one attempt, which notes its calls to models. While PostgreSQL is away, it waits. */
export function createMeter(
  { store }: Pick<ActivityDeps, 'store'>,
  { context, node, iteration }: Pick<AttemptInput, 'context' | 'node' | 'iteration'>,
  { info, teamId, signal, unwanted }: Metered,
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
    step: readStep(activityId),
  }
  const readPrices = () => retryOutages(signal, () => findModelPrices(store, teamId))
  let calls = 0
  return {
    isPriced: async (provider, model, baseUrl) =>
      hasPrice({ provider, model, baseUrl }, { own: await readPrices(), at: new Date() }),
    async begin({ credentialId, ...called }) {
      const own = await readPrices()
      const at = new Date()
      const call = ++calls
      const to = { ...called, credentialId: validate(credentialId) ? credentialId : null }
      const end = (outcome: Parameters<typeof noteModelCallEnd>[3]) =>
        retryOutages(unwanted, () => noteModelCallEnd(store, by, call, outcome))
      await retryOutages(signal, () => noteModelCall(store, by, call, to))
      if (signal.aborted) {
        await end({ status: 'REFUSED', ...FREE, firstMs: null, latencyMs: 0 })
        throw signal.reason
      }
      return {
        async end({ status, usage, firstMs, latencyMs }) {
          const times = { firstMs: firstMs === null ? null : toMs(firstMs), latencyMs: toMs(latencyMs) }
          if (status === 'REFUSED') {
            await end({ status, ...FREE, ...times })
            return 0
          }
          // Of an answer that was cut off, a vendor may have reported a part.
          const tokens = status === 'SUCCESS' && usage && isCounted(usage) ? usage : null
          const cost = tokens && priceCall(called, tokens, { own, at })
          await end({
            status,
            tokens,
            cost: cost ? cost.cost.toFixed(10) : null,
            price: cost ? cost.price : null,
            ...times,
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

/** The step of an agent that an activity carries out, which ends its id; null for all others. */
function readStep(activityId: string): number | null {
  const step = /!(\d{1,9})$/.exec(activityId)?.[1]
  return step === undefined ? null : Number(step)
}

const isCounted = (usage: ModelUsage) =>
  [usage.input, usage.output, usage.cached, usage.cacheWrite, usage.reasoning].every(
    (tokens) => Number.isSafeInteger(tokens) && tokens >= 0 && tokens <= MOST_TOKENS,
  )

const toMs = (ms: number) => Math.min(MOST_MS, Math.max(0, Math.round(ms)))
