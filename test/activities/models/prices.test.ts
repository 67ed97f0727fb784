import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, onTestFinished, test, vi } from 'vitest'
import type { ModelUsage } from '../../../activities/models/model.ts'
import { hasPrice, type PricedModel, priceCall } from '../../../activities/models/prices.ts'
import type { ModelPrice } from '../../../db/monitoring/usage/prices.ts'

const NOW = new Date('2026-11-22T12:00:00Z')

afterEach(() => vi.unstubAllGlobals())

const cost = (called: PricedModel, usage: Partial<ModelUsage>, own: ModelPrice[] = [], at = NOW) => {
  const whole = { input: 0, output: 0, cached: 0, cacheWrite: 0, reasoning: 0, ...usage }
  return priceCall(called, whole, { own, at })?.cost
}

const price = (model: string, inputPerMillion: number, more: Partial<ModelPrice> = {}): ModelPrice => ({
  provider: null,
  model,
  inputPerMillion,
  cachedInputPerMillion: null,
  cacheWritePerMillion: null,
  outputPerMillion: 0,
  validFrom: null,
  ...more,
})

test('the price list prices what comes from a cache, goes into one, and is output, each once', () => {
  const gpt4o = { provider: 'OPENAI', model: 'gpt-4o' }
  // 2.50 and 1.25 from the cache, 10.00 for the output.
  expect(cost(gpt4o, { input: 1_000_000, output: 100_000 })).toBe(3.5)
  expect(cost(gpt4o, { input: 1_000_000, cached: 400_000 })).toBe(2)
  // What a model thinks is among its output already.
  expect(cost(gpt4o, { output: 1_000, reasoning: 900 })).toBe(0.01)
  const sonnet = { provider: 'ANTHROPIC', model: 'claude-sonnet-4-5' }
  // 3.00, 3.75 into the cache, 0.30 from it, 15.00 for the output.
  expect(cost(sonnet, { input: 3_000, cached: 1_000, cacheWrite: 1_000, output: 100 })).toBe(0.00855)
  // Beyond 200,000 tokens all of them cost more.
  const gemini = { provider: 'GOOGLE_AI', model: 'gemini-2.5-pro' }
  expect(cost(gemini, { input: 200_000 })).toBe(0.25)
  expect(cost(gemini, { input: 300_000, output: 1_000 })).toBe(0.765)
  expect(cost({ provider: 'AZURE_OPENAI', model: 'gpt-4o' }, { input: 1_000_000 })).toBe(2.5)
})

test('the price that was used comes with the cost', () => {
  const usage = { input: 1, output: 1, cached: 0, cacheWrite: 0, reasoning: 0 }
  const listed = priceCall({ provider: 'OPENAI', model: 'gpt-4o' }, usage, { own: [], at: NOW })
  expect(listed?.price).toMatchObject({
    source: 'list',
    provider: 'openai',
    model: 'gpt-4o',
    input_mtok: 2.5,
  })
  const own = [price('gpt-4o', 1)]
  const set = priceCall({ provider: 'OPENAI', model: 'gpt-4o' }, usage, { own, at: NOW })
  expect(set?.price).toMatchObject({ source: 'team', model: 'gpt-4o', inputPerMillion: 1 })
})

test('a model that no list knows has no price, rather than none to pay', () => {
  expect(cost({ provider: 'OPENAI', model: 'gpt-from-the-future' }, { input: 1 })).toBeUndefined()
  expect(cost({ provider: 'SOMEONE', model: 'gpt-4o' }, { input: 1 })).toBeUndefined()
  // Embeddings have no price for output.
  const embeds = { provider: 'OPENAI', model: 'text-embedding-3-small' }
  expect(cost(embeds, { input: 1_000_000 })).toBe(0.02)
  expect(cost(embeds, { input: 1, output: 1 })).toBeUndefined()
  expect(hasPrice(embeds, { own: [], at: NOW })).toBe(false)
  expect(hasPrice({ provider: 'OPENAI', model: 'gpt-4o' }, { own: [], at: NOW })).toBe(true)
  expect(hasPrice({ provider: 'OPENAI', model: 'gpt-from-the-future' }, { own: [], at: NOW })).toBe(false)
})

test("on a server of one's own a model has no price, whatever its name; at a vendor's address it has that one's", () => {
  const called = { provider: 'OPENAI_COMPATIBLE', model: 'gpt-4o' }
  expect(cost(called, { input: 1 })).toBeUndefined()
  expect(cost({ ...called, baseUrl: 'http://127.0.0.1:11434/v1' }, { input: 1 })).toBeUndefined()
  const deepseek = {
    provider: 'OPENAI_COMPATIBLE',
    model: 'deepseek-chat',
    baseUrl: 'https://api.deepseek.com/v1',
  }
  expect(cost(deepseek, { input: 1_000_000 })).toBeGreaterThan(0)
  const sonar = { ...deepseek, model: 'sonar-deep-research', baseUrl: 'https://api.perplexity.ai' }
  // 8.00 for the output, but 3.00 for what is reasoning.
  expect(cost(sonar, { output: 1_000_000, reasoning: 600_000 })).toBe(5)
  expect(cost(called, { input: 1_000_000 }, [price('gpt-4o', 0.5)])).toBe(0.5)
})

test('the demo costs nothing, and contradictory numbers of tokens have no cost', () => {
  expect(cost({ provider: 'DEMO', model: 'demo' }, { input: 500, output: 500 })).toBe(0)
  const gpt4o = { provider: 'OPENAI', model: 'gpt-4o' }
  for (const wrong of [
    { input: 1, cached: 2 },
    { input: 3, cached: 2, cacheWrite: 2 },
    { output: 1, reasoning: 2 },
  ]) {
    expect(cost(gpt4o, wrong)).toBeUndefined()
    expect(cost(gpt4o, wrong, [price('*', 1)])).toBeUndefined()
  }
})

test("a team's prices: its exact name, the longest beginning, its provider, the latest that is valid", () => {
  const of = (own: ModelPrice[], at = NOW) =>
    cost({ provider: 'OPENAI', model: 'gpt-4o-mini' }, { input: 1_000_000 }, own, at)
  const all = price('*', 1)
  const some = price('gpt-4*', 2)
  const exact = price('gpt-4o-mini', 3)
  const openai = price('gpt-4o-mini', 4, { provider: 'OPENAI' })
  const azure = price('gpt-4o-mini', 5, { provider: 'AZURE_OPENAI' })
  const later = price('gpt-4o-mini', 6, { provider: 'OPENAI', validFrom: new Date('2026-11-22T00:00:00Z') })
  const last = price('gpt-4o-mini', 7, { provider: 'OPENAI', validFrom: new Date('2026-11-23T00:00:00Z') })
  expect(of([azure])).toBe(0.15)
  expect(of([all, azure])).toBe(1)
  expect(of([all, some, azure])).toBe(2)
  expect(of([some, exact, all])).toBe(3)
  expect(of([openai, exact, azure])).toBe(4)
  expect(of([later, openai, last])).toBe(6)
  expect(of([last, later, openai], last.validFrom!)).toBe(7)
  expect(of([openai, last, later], new Date('2026-11-21T23:59:59Z'))).toBe(4)
})

test("a team's prices for what comes from a cache and goes into one", () => {
  const usage = { input: 3_000_000, cached: 1_000_000, cacheWrite: 1_000_000, output: 1_000_000 }
  const called = { provider: 'ANTHROPIC', model: 'a' }
  expect(cost(called, usage, [price('a', 1, { outputPerMillion: 10 })])).toBe(13)
  const apart = { cachedInputPerMillion: 0.1, cacheWritePerMillion: 1.25, outputPerMillion: 10 }
  expect(cost(called, usage, [price('a', 1, apart)])).toBe(12.35)
  // A price of nothing is a price.
  expect(cost(called, usage, [price('a', 0)])).toBe(0)
})

test('costs have ten decimal places, without what floating point adds', () => {
  const called = { provider: 'OPENAI', model: 'gpt-4o' }
  const usage = { input: 1_000, cached: 200, output: 50 }
  expect(cost(called, usage)).toBe(0.00275)
  expect(cost(called, { input: 1 }, [price('gpt-4o', 0.0001)])).toBe(1e-10)
})

test('the price list is the one in the package: it is never fetched', () => {
  const fetch = vi.fn(() => Promise.reject(new Error('no')))
  vi.stubGlobal('fetch', fetch)
  onTestFinished(() => void vi.unstubAllGlobals())
  expect(cost({ provider: 'OPENAI', model: 'gpt-4o' }, { input: 1_000_000 })).toBe(2.5)
  expect(cost({ provider: 'OPENAI', model: 'unknown' }, { input: 1 })).toBeUndefined()
  expect(fetch).not.toHaveBeenCalled()
  // The package itself opens no connection; whoever wants that hands it a function, which nothing here does.
  const entry = fileURLToPath(import.meta.resolve('@pydantic/genai-prices'))
  expect(readFileSync(entry, 'utf8')).not.toMatch(/\bfetch\(|XMLHttpRequest|node:https?|require\(/)
  const own = readFileSync(new URL('../../../activities/models/prices.ts', import.meta.url), 'utf8')
  expect(own).not.toMatch(/updatePrices|waitForUpdate/)
})
