import { calcPrice, type PriceCalculation, type Usage } from '@pydantic/genai-prices'
import type { ModelPrice } from '../../db/monitoring/usage/prices.ts'
import type { ModelUsage } from './model.ts'

/** The called model: the credential's type, the model's name, and the address, if it is not the vendor's own. */
export type PricedModel = { provider: string; model: string; baseUrl?: string | undefined }

/** What a call cost in US dollars, with the price that this was calculated with, to be kept. */
export type CallCost = { cost: number; price: Record<string, unknown> }

/** Whose list of prices counts for a type of credential. */
const LISTED: Record<string, string> = {
  OPENAI: 'openai',
  ANTHROPIC: 'anthropic',
  GOOGLE_AI: 'google',
  AZURE_OPENAI: 'azure',
}

/** No cost has more places. */
const PLACES = 10

const MILLION = 1_000_000

/**
 * What a call cost that began at `at`: by the team's own prices, else by the price list. Undefined if no price is known
 * for the model, or if what the vendor reported contradicts itself.
 */
export function priceCall(
  called: PricedModel,
  usage: ModelUsage,
  { own, at }: { own: ModelPrice[]; at: Date },
): CallCost | undefined {
  const { input, output, cached, cacheWrite, reasoning } = usage
  if (cached + cacheWrite > input || reasoning > output) return undefined
  if (called.provider === 'DEMO') return { cost: 0, price: { source: 'demo' } }
  const price = findOwnPrice(own, called, at)
  if (!price) return priceByList(called, usage, at)
  const { inputPerMillion, outputPerMillion } = price
  const cachedInputPerMillion = price.cachedInputPerMillion ?? inputPerMillion
  const cacheWritePerMillion = price.cacheWritePerMillion ?? inputPerMillion
  const millions =
    (input - cached - cacheWrite) * inputPerMillion +
    cached * cachedInputPerMillion +
    cacheWrite * cacheWritePerMillion +
    output * outputPerMillion
  return { cost: round(millions / MILLION), price: { source: 'team', ...price } }
}

/** Whether a price is known for a call that begins at `at`. */
export function hasPrice(called: PricedModel, known: { own: ModelPrice[]; at: Date }): boolean {
  return (
    priceCall(called, { input: 1, output: 1, cached: 0, cacheWrite: 0, reasoning: 0 }, known) !== undefined
  )
}

/**
 * The team's price for a model: one for its exact name before one for how it begins, the longest before others; then
 * one for its provider before one for any; then the one that has been valid for the shortest time.
 */
function findOwnPrice(own: ModelPrice[], { provider, model }: PricedModel, at: Date): ModelPrice | undefined {
  const exact = (price: ModelPrice) => (price.model.endsWith('*') ? 0 : 1)
  const since = (price: ModelPrice) => price.validFrom?.getTime() ?? Number.NEGATIVE_INFINITY
  const fits = own.filter(
    (price) =>
      (price.provider === null || price.provider === provider) &&
      (price.model.endsWith('*') ? model.startsWith(price.model.slice(0, -1)) : price.model === model) &&
      since(price) <= at.getTime(),
  )
  const [best] = fits.sort(
    (a, b) =>
      exact(b) - exact(a) ||
      b.model.length - a.model.length ||
      Number(b.provider !== null) - Number(a.provider !== null) ||
      (since(b) > since(a) ? 1 : -1),
  )
  return best
}

/**
 * The price of the list that is part of the package: it is never fetched. A model on a server of one's own has none,
 * whatever its name; where the address is that of a vendor in the list, such as Groq's, it has that vendor's.
 */
function priceByList(
  { provider, model, baseUrl }: PricedModel,
  { input, output, cached, cacheWrite, reasoning }: ModelUsage,
  at: Date,
): CallCost | undefined {
  const providerId = LISTED[provider]
  if (providerId === undefined && baseUrl === undefined) return undefined
  const by = providerId === undefined ? { providerApiUrl: baseUrl! } : { providerId }
  const usage: Usage = {
    input_tokens: input,
    cache_read_tokens: cached,
    cache_write_tokens: cacheWrite,
    output_tokens: output,
    output_reasoning_tokens: reasoning,
  }
  const found = calculate(usage, model, { ...by, timestamp: at })
  if (found?.model_price.input_mtok === undefined) return undefined
  // Embeddings and the like have no price for texts that they do not write.
  if (found.model_price.output_mtok === undefined && output > 0) return undefined
  const price = { source: 'list', provider: found.provider.id, model: found.model.id, ...found.model_price }
  return { cost: round(found.total_price), price }
}

/** The list's own calculation; null if it has no price, or one that it cannot calculate with. */
function calculate(...[usage, model, options]: Parameters<typeof calcPrice>): PriceCalculation | null {
  try {
    return calcPrice(usage, model, options)
  } catch {
    return null
  }
}

const round = (cost: number) => Number(cost.toFixed(PLACES))
