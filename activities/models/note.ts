import type { NodeContext } from '../nodes/kit/node.ts'
import type { ModelUsage } from './model.ts'

/** What is noted of one call: begun before it is sent, ended once, whatever becomes of it. */
export type ModelCallNote = {
  /** Throws if the call cannot be noted: then it must not be sent. */
  begin(): Promise<void>
  /** Nothing was charged: it has not reached the vendor, or the vendor has refused it before it began to answer. */
  refuse(): void
  /** The first byte of text or of a tool's call is there. */
  first(): void
  /** The whole answer is there, with what the vendor reported. */
  succeed(usage: ModelUsage | null): void
  /** Ends it; resolves to the cost in US dollars, null if it is not known. Never throws. */
  end(): Promise<number | null>
}

/** Notes a call with the meter of the attempt, and with the metrics of the process. */
export function openNote(
  { meter }: Pick<NodeContext, 'meter'>,
  call: { provider: string; model: string; credentialId: string },
): ModelCallNote {
  let started:
    | { at: number; row: Awaited<ReturnType<NonNullable<NodeContext['meter']>['begin']>> | undefined }
    | undefined
  let status: 'SUCCESS' | 'REFUSED' | 'LOST' = 'LOST'
  let usage: ModelUsage | null = null
  let firstMs: number | null = null
  const elapsed = () => (started ? Math.round(performance.now() - started.at) : 0)
  return {
    async begin() {
      const row = await meter?.begin(call)
      started = { at: performance.now(), row }
    },
    refuse: () => void (status = 'REFUSED'),
    first: () => void (firstMs ??= elapsed()),
    succeed(reported) {
      status = 'SUCCESS'
      usage = reported
    },
    async end() {
      if (!started) return null
      const cost = await started.row?.end({ status, usage, firstMs, latencyMs: elapsed() })
      return cost ?? null
    },
  }
}
