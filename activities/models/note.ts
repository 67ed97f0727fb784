import type { NodeContext } from '../nodes/kit/node.ts'
import type { CallUnits, ModelCallStatus } from './meter.ts'
import type { ModelUsage } from './model.ts'

/** The note of one call: begun before the call is sent, and ended once, whatever becomes of it. */
export type ModelCallNote = {
  /** Throws if the call cannot be noted: then it must not be sent. */
  begin(): Promise<void>
  /** Nothing was charged: it has not reached the vendor, or the vendor has refused it before it began to answer. */
  refuse(): void
  /** The first piece of text, of reasoning or of a tool's call is there. */
  first(): void
  /** The whole answer is there, with what the vendor reported. */
  succeed(usage: ModelUsage | null, units?: CallUnits): void
  /** Ends it; resolves to the cost in US dollars, null if it is not known. Never throws. */
  end(): Promise<number | null>
}

/** Notes a call with the meter of the attempt, and with the metrics of the process. */
export function openNote(
  { meter, models }: Pick<NodeContext, 'meter' | 'models'>,
  call: { provider: string; model: string; credentialId: string; baseUrl?: string },
): ModelCallNote {
  const { provider } = call
  const metrics = models?.metrics
  let row: Awaited<ReturnType<NonNullable<NodeContext['meter']>['begin']>> | undefined
  let sentAt: number | undefined
  let status: ModelCallStatus = 'LOST'
  let usage: ModelUsage | null = null
  let units: CallUnits | undefined
  let firstMs: number | null = null
  return {
    async begin() {
      row = await meter?.begin(call)
      sentAt = performance.now()
    },
    refuse() {
      status = 'REFUSED'
    },
    first() {
      if (firstMs !== null || sentAt === undefined) return
      firstMs = Math.round(performance.now() - sentAt)
      metrics?.modelFirst.observe({ provider }, firstMs / 1_000)
    },
    succeed(reported, counted) {
      status = 'SUCCESS'
      usage = reported
      units = counted
    },
    async end() {
      if (sentAt === undefined) return null
      metrics?.modelCalls.inc({ provider, status })
      for (const [kind, tokens] of Object.entries(usage ?? {}))
        metrics?.modelTokens.inc({ provider, kind }, tokens)
      const latencyMs = Math.round(performance.now() - sentAt)
      // If the end cannot be noted, the note stays open: its cost counts as unknown.
      const cost = await row?.end({ status, usage, firstMs, latencyMs, units }).catch(() => null)
      return cost ?? null
    },
  }
}
