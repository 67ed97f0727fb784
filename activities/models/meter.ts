import type { ModelUsage } from './model.ts'

/** What a call took that is not counted in tokens. */
export type CallUnits = { unit: 'SECONDS' | 'CHARACTERS' | 'IMAGES'; count: number }

/** How a call to a vendor has ended: `REFUSED` cost nothing (429, 5xx, 4xx); the cost of `LOST` is unknown. */
export type ModelCallStatus = 'SUCCESS' | 'REFUSED' | 'LOST'

/**
 * Tokens and US dollars as far as they are known; `lost` counts the calls whose usage is unknown, which are in
 * neither.
 */
type EarlierCalls = { tokens: number; cost: number; lost: number }

/** Notes what a node's attempt sends to vendors of models: a row for each call, before it is sent. */
export type UsageMeter = {
  /**
   * Whether a price is known for the model: the team's own, or that of the price list. `baseUrl` is the address that an
   * OPENAI_COMPATIBLE credential names: it tells whose prices count.
   */
  isPriced(provider: string, model: string, baseUrl?: string): Promise<boolean>
  /** What a call of so many tokens would cost now, in US dollars; undefined if no price is known. */
  estimate(
    called: { provider: string; model: string; baseUrl?: string },
    tokens: { input: number; output: number },
  ): Promise<number | undefined>
  /** What earlier attempts of the same activity took. */
  readEarlier(): Promise<EarlierCalls>
  /** Notes a call that is about to be sent. Throws if it cannot be noted: then it must not be sent. */
  begin(call: { provider: string; model: string; credentialId: string; baseUrl?: string }): Promise<{
    /** Notes its end, with what the vendor reported, and returns the cost in US dollars; null if it is not known. */
    end(outcome: {
      status: ModelCallStatus
      usage: ModelUsage | null
      /** Milliseconds up to the first byte of text or of a tool call; null if none came. */
      firstMs: number | null
      latencyMs: number
      units?: CallUnits | undefined
    }): Promise<number | null>
  }>
}
