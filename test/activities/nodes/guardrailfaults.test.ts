import { afterAll, beforeEach, expect, test } from 'vitest'
import { keep } from '../../support/keep.ts'
import { nodeOf, type Running, startRunning } from '../../support/running.ts'
import { startJudge } from '../../support/servers/models/judge.ts'
import { until } from '../../support/until.ts'

type Config = Record<string, unknown>

/** A thread that says it found nothing, unless the text tells it to hang, to end, or to be slow. */
const PROGRAM = `
  import { parentPort } from 'node:worker_threads'
  parentPort.on('message', ({ text, detection }) => {
    if (text.startsWith('hang')) for (;;);
    if (text.startsWith('die')) process.exit(1)
    for (const type of Object.keys(detection)) parentPort.postMessage({ type, ms: 1, findings: [] })
    setTimeout(() => parentPort.postMessage('done'), text.startsWith('slow') ? 2500 : 0)
  })
  parentPort.postMessage('ready')`
const threads = {
  threads: 2,
  deadlineMs: 300,
  program: new URL(`data:text/javascript,${encodeURIComponent(PROGRAM)}`),
}

const closed = await keep(startRunning({ guardrails: { threads } }))
const open = await keep(startRunning({ guardrails: { threads, onError: 'open' } }))
const plain = await keep(startRunning())
let judge: Awaited<ReturnType<typeof startJudge>> | undefined
beforeEach(async () => {
  await judge?.stop()
  judge = await startJudge()
})
afterAll(async () => judge?.stop())

const graphOf = (config: Config, { leads = true, ...more }: Config = {}) => ({
  nodes: [
    { id: 'start', type: 'MANUAL_TRIGGER' },
    { id: 'guard', type: 'GUARDRAIL', config, ...more },
    { id: 'on', type: 'NO_OP' },
    { id: 'off', type: 'NO_OP' },
  ],
  edges: [
    { source: 'start', target: 'guard' },
    { source: 'guard', sourceHandle: 'passed', target: 'on' },
    ...(leads ? [{ source: 'guard', sourceHandle: 'blocked', target: 'off' }] : []),
  ],
})

const guard = async (host: Running, config: Config, more: Config = {}) =>
  nodeOf(await host.run(graphOf(config, more)), 'guard')

test.each([
  ['hang', 'It took too long'],
  ['die', 'The detectors ended'],
])(
  'a text on which detectors fail (%s) is blocked, or passes where the operator says so, and it is told',
  async (text, error) => {
    const config = { text, redactPii: true, detectPromptInjection: true }
    const entries = [
      { type: 'PII_REDACTION', violationsFound: 0, error },
      { type: 'PROMPT_INJECTION', violationsFound: 0, error },
    ]
    const blocked = await guard(closed, config)
    expect(blocked).toMatchObject({
      status: 'SUCCESS',
      handle: 'blocked',
      outputData: { passed: false, text: null, violations: [], checks: entries },
    })
    expect((await guard(closed, config, { leads: false })).errorMessage).toBe(
      `The text was blocked: PII_REDACTION could not be checked: ${error}; PROMPT_INJECTION could not be checked: ${error}`,
    )
    const passed = await guard(open, config)
    // What should have been redacted, and was not looked for, does not go on even there.
    expect(passed).toMatchObject({
      handle: 'passed',
      outputData: { passed: true, text: null, checks: entries },
    })
    expect((await guard(closed, { ...config, text: 'fine' })).handle).toBe('passed')
  },
)

test('while no thread is free, the node waits, and that is no failure of it', {
  tags: 'long',
  timeout: 120_000,
}, async () => {
  const slow = { text: 'slow', detectPromptInjection: true }
  const workflow = await closed.create(graphOf(slow))
  const ids = await Promise.all(Array.from({ length: 3 }, () => closed.execute(workflow)))
  for (const id of ids) {
    const run = await closed.until(id, ({ status }) => status !== 'PENDING' && status !== 'RUNNING', 90_000)
    expect(nodeOf(run, 'guard')).toMatchObject({ status: 'SUCCESS', handle: 'passed', retryCount: 0 })
  }
})

test("a team's rule blocks with its own action, and another team's does not", async () => {
  const rule = {
    teamId: plain.teamId,
    name: 'project',
    kind: 'KEYWORD_LIST',
    severity: 'HIGH',
    action: 'BLOCKED',
    enabled: true,
    config: JSON.stringify({ keywords: ['Bluebird'] }),
  }
  await plain.store.db
    .insertInto('guardrailRules')
    .values({ ...rule, id: crypto.randomUUID() } as never)
    .execute()
  const config = { text: 'When does Bluebird start?', applyCustomRules: true, onViolation: 'LOGGED' }
  const found = await guard(plain, config)
  expect(found).toMatchObject({ handle: 'blocked' })
  expect(found.outputData).toMatchObject({
    violations: [{ type: 'CUSTOM_RULE', action: 'BLOCKED', details: { ruleName: 'project' } }],
  })
  expect((await guard(plain, { ...config, text: 'When does it start?' })).handle).toBe('passed')
  expect((await guard(open, config)).handle).toBe('passed')
})

async function setUpModel(url: string): Promise<void> {
  const data = { baseUrl: url, apiKey: 'sk-the-secret-key-of-the-judge' }
  const json = { teamId: plain.teamId, name: `judge ${crypto.randomUUID()}`, type: 'OPENAI_COMPATIBLE', data }
  const { id } = await plain.ask<{ id: string }>('POST', '/api/credentials', json)
  const prices = [{ model: '*', inputPerMillion: 2, outputPerMillion: 2 }]
  await plain.ask('PUT', `/api/teams/${plain.teamId}/model-prices`, { prices })
  const settings = { credentialId: id, model: 'judge', monthlyCostCap: 10, checks: [] }
  await plain.ask('PUT', `/api/guardrails/settings?teamId=${plain.teamId}`, settings)
}

const asksModel = { detectPromptInjection: true, askModel: true }

test('with askModel and no model set up, the check cannot be made: after its attempts the text is blocked', async () => {
  const retry = { maxAttempts: 2, initialIntervalMs: 10 }
  const node = await guard(plain, { text: 'fine', ...asksModel }, { retry })
  expect(node).toMatchObject({ handle: 'blocked', retryCount: 1 })
  const error = 'The team has set up no model for guardrails'
  expect(node.outputData).toMatchObject({ checks: [{ type: 'PROMPT_INJECTION', passed: false, error }] })
})

test("the team's model judges, is asked again when it is away, and its call is in the usage of the execution", async () => {
  await setUpModel(judge!.url)
  const graph = graphOf(
    { text: 'a bad word', ...asksModel },
    { retry: { maxAttempts: 4, initialIntervalMs: 200 } },
  )
  const run = await plain.run(graph)
  expect(nodeOf(run, 'guard')).toMatchObject({ handle: 'blocked', retryCount: 0 })
  const calls = await plain.store.db
    .selectFrom('modelCalls')
    .selectAll()
    .where('executionId', '=', run.id)
    .execute()
  expect(calls).toHaveLength(1)
  expect(JSON.stringify(calls)).not.toContain('bad word')
  const { url } = judge!
  await judge!.stop()
  const away = await guard(
    plain,
    { text: 'a bad word', ...asksModel },
    { retry: { maxAttempts: 2, initialIntervalMs: 10 } },
  )
  expect(away).toMatchObject({ handle: 'blocked', retryCount: 1 })
  expect(away.outputData).toMatchObject({ violations: [], checks: [{ error: expect.any(String) }] })
  expect(url).toMatch(/^http/)
}, 60_000)

// A check that outlasts the 3.5 s after which a stop is forced would leave a worker in this process that goes on telling
// Temporal that it is at it. A real one ends with its process.
test('a worker that stops in mid-check leaves the check to the next one', {
  tags: 'long',
  timeout: 120_000,
}, async () => {
  const host = await keep(startRunning({ guardrails: { threads }, stopGraceMs: 500 }))
  const id = await host.execute(await host.create(graphOf({ text: 'slow', detectPromptInjection: true })))
  await until(() => host.read(id), { holds: ({ status }) => status === 'RUNNING' })
  const next = await host.addEngine()
  await host.engine.stop()
  host.use(next)
  const run = await host.until(id, ({ status }) => status !== 'PENDING' && status !== 'RUNNING', 90_000)
  expect(nodeOf(run, 'guard')).toMatchObject({ status: 'SUCCESS', handle: 'passed' })
})
