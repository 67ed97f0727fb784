import { afterEach, describe, expect, test } from 'vitest'
import { startAgents } from '../../support/agents/agents.ts'
import { keep } from '../../support/keep.ts'
import type { VendorCall } from '../../support/servers/models/vendor.ts'

const agents = await keep(startAgents())

const double = {
  type: 'CODE',
  name: 'double',
  description: 'Doubles a number',
  parameters: { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] },
  code: 'return { n: 2 * $args.n }',
}
const again = { tools: [{ name: 'double', args: { n: 1 } }] }
/** The limits of the answers that the vendor was asked for. */
const limits = () => agents.vendor.calls.map(({ body }) => limitOf(body) ?? null)
const limitOf = (body: VendorCall['body']) => (body.max_tokens ?? body.max_completion_tokens) as number
const quick = { retry: { maxAttempts: 20, initialIntervalMs: 1, backoffCoefficient: 1, maxIntervalMs: 10 } }
const usage = (input: number, output: number) => ({
  prompt_tokens: input,
  completion_tokens: output,
  total_tokens: input + output,
})

describe('maxTokens', () => {
  test('limits each answer to what is left beside what the call takes before it', async () => {
    const script = [
      { ...again, usage: usage(100, 20) },
      { text: 'Two.', usage: usage(125, 4) },
    ]
    const { run, agent } = await agents.runAgent([double], script, { config: { maxTokens: 1_000 } })
    expect(run.status, agent.errorMessage ?? '').toBe('SUCCESS')
    const [first, second] = limits()
    expect(first).toBeGreaterThan(900)
    expect(first).toBeLessThan(1_000)
    // 120 are used, the next call takes those and the tool's result, {"n":2}.
    expect(second).toBe(1_000 - 120 - 120 - 2)
  })

  test('an answer that is cut by it is no answer', async () => {
    const cut = { text: 'It is forty', finish: 'length', usage: usage(100, 90) }
    const { run, agent } = await agents.runAgent([double], cut, { config: { maxTokens: 200 } })
    expect(run.status).toBe('FAILED')
    expect(agent.errorMessage).toMatch(/The answer was cut after the 1\d\d tokens that were left/)
    const empty = { finish: 'length', usage: usage(100, 90) }
    const silent = await agents.runAgent([double], empty, { config: { maxTokens: 200 } })
    expect(silent.agent.errorMessage).toMatch(/The answer was cut after the 1\d\d tokens that were left/)
    // By its own limit the model may cut it.
    const own = await agents.runAgent([double], cut)
    expect(own.run.status).toBe('SUCCESS')
  })

  test('a limit that the vendor refuses is above its own, which counts then', async () => {
    const { run, agent } = await agents.runAgent(
      [double],
      ({ body }, number) =>
        limitOf(body) > 4_096
          ? { status: 400, json: { error: { message: 'max_tokens is too large: at most 4096 are taken' } } }
          : number < 7
            ? { ...again, usage: usage(100, 900) }
            : { text: 'Enough.', usage: usage(100, 5) },
      { config: { maxTokens: 9_000 } },
    )
    expect(run.status, agent.errorMessage ?? '').toBe('SUCCESS')
    const asked = limits()
    expect(asked[0]).toBeGreaterThan(8_000)
    expect(asked.slice(1, 5)).toEqual([null, null, null, null])
    expect(asked[5]).toBeLessThan(4_096)
  })

  test('attempts of which nobody knows what they took count too, so that they come to an end', async () => {
    const { run, agent } = await agents.runAgent(
      [double],
      { text: 'I think that this is', cutAfter: 3 },
      { config: { maxTokens: 3_500 }, node: quick },
    )
    expect(run.status).toBe('FAILED')
    expect(agent.errorMessage).toMatch(/The agent has used \d+ tokens, and its next call|maxTokens is 3500/)
    expect(agents.vendor.calls).toHaveLength(4)
    const calls = agents.store.db.selectFrom('modelCalls').select('status')
    expect(await calls.where('executionId', '=', run.id).execute()).toEqual(Array(4).fill({ status: 'LOST' }))
  })
})

describe('maxCost', () => {
  const priced = async (inputPerMillion: number, outputPerMillion: number) => {
    const prices = [{ provider: null, model: 'dear', inputPerMillion, outputPerMillion }]
    await agents.ask('PUT', `/api/teams/${agents.teamId}/model-prices`, { prices })
  }
  afterEach(() => agents.ask('PUT', `/api/teams/${agents.teamId}/model-prices`, { prices: [] }))

  test('limits each answer, and stops attempts of which nobody knows what they cost', async () => {
    // A dollar for a thousand tokens of the input, ten for as many of an answer.
    await priced(1_000, 10_000)
    const model = { model: 'dear' }
    const script = [
      { ...again, usage: usage(100, 20) },
      { text: 'Two.', usage: usage(125, 4) },
    ]
    const { run, agent } = await agents.runAgent([double], script, { config: { ...model, maxCost: 2 } })
    expect(run.status, agent.errorMessage ?? '').toBe('SUCCESS')
    const [first, second] = limits()
    expect(first).toBeGreaterThan(180)
    expect(first).toBeLessThan(200)
    // 0.30 are spent, and 0.122 is what the next call costs before its answer.
    expect(second).toBe(Math.floor((2 - 0.3 - 0.122) * 100))
    const cut = { text: 'I think that this is', cutAfter: 3 }
    const lost = await agents.runAgent([double], cut, { config: { ...model, maxCost: 25 }, node: quick })
    expect(lost.agent.errorMessage).toMatch(/The agent has used .* US dollars.*maxCost is 25/)
    expect(agents.vendor.calls).toHaveLength(3)
  })

  test('a call whose vendor reports no usage counts by its estimate', { tags: 'long' }, async () => {
    await priced(1_000, 10_000)
    const script = [
      { ...again, usage: null },
      { text: 'Two.', usage: null },
    ]
    const asked = { config: { model: 'dear', maxCost: 2 } }
    const { run, agent } = await agents.runAgent([double], script, asked)
    expect(run.status, agent.errorMessage ?? '').toBe('SUCCESS')
    const [first, second] = limits()
    // What the first call took is not left to the second: at least its answer, a call of the tool.
    expect(second).toBeLessThan(first! - 1)
    const calls = agents.store.db.selectFrom('modelCalls').select(['status', 'inputTokens', 'cost'])
    expect(await calls.where('executionId', '=', run.id).execute()).toEqual(
      Array(2).fill({ status: 'SUCCESS', inputTokens: null, cost: null }),
    )
    // Without an end it would ask for ever: the estimates use the budget up.
    const endless = await agents.runAgent([double], { ...again, usage: null }, asked)
    expect(endless.run.status).toBe('FAILED')
    expect(endless.agent.errorMessage).toMatch(/The agent has used .* US dollars.*maxCost is 2/)
    expect(agents.vendor.calls.length).toBeGreaterThan(1)
  })
})
