import { afterAll, beforeAll, expect, test } from 'vitest'
import { takes } from '../../support/agents/agents.ts'
import { type Installation, type Name, startInstallation } from '../../support/engine/installation.ts'
import { startOpenAi } from '../../support/servers/models/openai.ts'
import { startLoopback } from '../../support/servers/tools.ts'

// An agent of 41 steps that is killed ten times on its way: what its tools do must be done once, and in order.

const TASKS = 20

let host: Installation
let vendor: Awaited<ReturnType<typeof startOpenAi>>
let site: Awaited<ReturnType<typeof startLoopback>>
beforeAll(async () => {
  host = await startInstallation()
  vendor = await startOpenAi({ text: '' })
  site = await startLoopback()
}, 180_000)
afterAll(async () => {
  await host?.stop()
  await vendor?.stop()
  await site?.stop()
}, 60_000)

type Kill = { where: `task ${number}` | `turn ${number}`; what: Name | 'all' }

/** Odd tasks may be repeated, even ones not; each of both is hit by the loss of the worker. */
const KILLS: Kill[] = [
  { where: 'task 1', what: 'service' },
  { where: 'task 2', what: 'service' },
  { where: 'turn 3', what: 'service' },
  { where: 'task 5', what: 'temporal' },
  { where: 'task 6', what: 'temporal' },
  { where: 'task 8', what: 'postgres' },
  { where: 'turn 10', what: 'postgres' },
  { where: 'task 13', what: 'all' },
  { where: 'task 14', what: 'all' },
  { where: 'turn 17', what: 'all' },
]
const UNKNOWN = [2, 14]

/** Holds the first who comes to a place, until it is let go. */
function createGates() {
  const arrived = new Map<string, () => void>()
  const held = new Set<string>()
  return {
    hasArrived: (where: string) => arrived.has(where),
    async pass(where: string): Promise<void> {
      if (!KILLS.some((kill) => kill.where === where) || held.has(where)) return
      held.add(where)
      await new Promise<void>((resolve) => arrived.set(where, resolve))
    },
    letGo: (where: string) => arrived.get(where)!(),
  }
}

async function strike(what: Kill['what']): Promise<void> {
  if (what === 'all') {
    await host.killAll()
    return host.boot()
  }
  await host.recovered(what, host.kill(what))
}

test('a long agent goes on at the step at which it was killed, and its tools do everything once and in order', {
  tags: 'long',
  timeout: 600_000,
}, async ({ annotate }) => {
  const gates = createGates()
  vendor.say(async ({ body }) => {
    const told = (body.messages as { role: string }[]).filter(({ role }) => role === 'tool').length
    await gates.pass(`turn ${told}`)
    if (told === TASKS) return { text: 'Done.' }
    const n = told + 1
    return { tools: [{ name: n % 2 === 1 ? 'mark' : 'pay', args: { n: String(n) } }] }
  })
  site.answer(async ({ path }, _, response) => {
    await gates.pass(`task ${path.split('/').at(-1)}`)
    response.setHeader('content-type', 'application/json')
    response.end('{"ok":true}')
  })
  const tool = (name: string, more: object) => ({
    ...{ type: 'HTTP', name, description: name, parameters: takes('n'), method: 'POST' },
    url: `${site.origin}/${name}/{{ $args.n }}`,
    ...more,
  })
  const { id: credentialId } = await host.ask<{ id: string }>('POST', '/api/credentials', {
    teamId: host.teamId,
    name: 'vendor',
    type: 'OPENAI_COMPATIBLE',
    data: { baseUrl: vendor.url, apiKey: 'key-of-the-vendor' },
  })
  const config = {
    ...{ credentialId, model: 'gpt-test', instructions: 'Count.', prompt: 'Go.', maxSteps: 60 },
    tools: [tool('mark', { idempotent: true }), tool('pay', {})],
  }
  const id = await host.execute(
    await host.create({
      nodes: [
        { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
        { id: 'agent', type: 'AI_AGENT', config },
      ],
      edges: [{ source: 'start', target: 'agent' }],
    }),
  )
  for (const { where, what } of KILLS) {
    await expect.poll(() => gates.hasArrived(where), { timeout: 120_000, message: where }).toBe(true)
    await strike(what)
    gates.letGo(where)
  }
  const run = await host.ended(id, 180_000)
  expect(run.status, JSON.stringify(run, null, 1).slice(0, 5_000)).toBe('SUCCESS')
  type Step = { step: number | null; tool: string | null; status: string; errorMessage: string | null }
  const [own, ...steps] = (
    run.nodeExecutions as unknown as (Step & { nodeId: string; outputData: unknown })[]
  ).filter(({ nodeId }) => nodeId === 'agent')
  expect(own).toMatchObject({ step: null, outputData: { text: 'Done.', steps: 2 * TASKS + 1 } })
  expect(steps.map(({ step, tool }) => [step, tool])).toEqual(
    Array.from({ length: 2 * TASKS + 1 }, (_, at) => [
      at + 1,
      at % 2 === 0 ? null : at % 4 === 1 ? 'mark' : 'pay',
    ]),
  )
  const failed = steps.filter(({ status }) => status !== 'SUCCESS')
  expect(failed.map(({ step, status }) => [step, status])).toEqual(UNKNOWN.map((n) => [2 * n, 'FAILED']))

  // What is sent again has the same key, so that the other side knows it; everything else is sent once.
  const sent = site.calls.map(({ path, headers }) => ({
    n: Number(path.split('/').at(-1)),
    key: String(headers['idempotency-key']),
  }))
  const effects = sent.filter(({ key }, at) => sent.findIndex((other) => other.key === key) === at)
  expect(effects.map(({ n }) => n)).toEqual(Array.from({ length: TASKS }, (_, at) => at + 1))
  expect(effects.map(({ key }) => key)).toEqual(effects.map(({ n }) => `${id}:agent!${2 * n}`))
  for (let n = 2; n <= TASKS; n += 2) expect(sent.filter((one) => one.n === n)).toHaveLength(1)
  const last = vendor.calls.at(-1)!.body.messages as { role: string; content: string }[]
  const told = last.filter(({ role }) => role === 'tool').map(({ content }) => JSON.parse(content))
  expect(told.flatMap(({ error }, at) => (error ? [[at + 1, error]] : []))).toEqual(
    UNKNOWN.map((n) => [n, 'outcome unknown']),
  )
  await annotate(
    `${KILLS.length} kills; ${sent.length - effects.length} requests repeated under their key; ` +
      `${vendor.calls.length - TASKS - 1} calls to the model repeated`,
  )
})
