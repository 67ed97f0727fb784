import { existsSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Agents, startAgents } from '../../support/agents/agents.ts'
import { findInStore } from '../../support/agents/stored.ts'
import { until } from '../../support/until.ts'

/** Threads that do what a text says: `die` always, `once <file>` and `hang <file>` if that file is not there yet. */
const program = `
  import { parentPort } from 'node:worker_threads'
  import { existsSync, writeFileSync } from 'node:fs'
  parentPort.on('message', ({ text, detection }) => {
    const [, what, file] = /\\b(die|once|hang) ?(\\/\\S+)?/.exec(text) ?? []
    if (what === 'die') process.exit(1)
    if (what !== undefined && !existsSync(file)) {
      writeFileSync(file, '')
      if (what === 'once') process.exit(1)
      return
    }
    for (const type of Object.keys(detection)) parentPort.postMessage({ type, ms: 1, findings: [] })
    parentPort.postMessage('done')
  })
  parentPort.postMessage('ready')`
const threads = { program: new URL(`data:text/javascript,${encodeURIComponent(program)}`) }
const folder = mkdtempSync(join(tmpdir(), 'guards-'))
const guardrails = { output: { filterContent: true } }

let closed: Agents
let open: Agents
beforeAll(async () => {
  closed = await startAgents({ guardrails: { threads }, stopGraceMs: 100, modelStopGraceMs: 100 })
  open = await startAgents({ guardrails: { threads, onError: 'open' } })
})
afterAll(async () => {
  await closed.stop()
  await open.stop()
})

test('a check that cannot be made blocks the reply, or lets it pass with a warning: the model is asked once', {
  tags: 'long',
  timeout: 60_000,
}, async () => {
  const blocked = await closed.runAgent([], { text: 'I die here.' }, { config: { guardrails } })
  expect(blocked.run.status).toBe('FAILED')
  expect(blocked.agent.errorMessage).toContain('CONTENT_FILTER could not be checked')
  expect(closed.vendor.calls).toHaveLength(1)
  expect(await findInStore(closed.store, blocked.run.id, 'I die here')).toEqual([])
  const passed = await open.runAgent([], { text: 'I die here.' }, { config: { guardrails } })
  expect(passed.agent.outputData).toEqual({ text: 'I die here.', steps: 1 })
  expect(passed.steps[0]!.warnings?.[0]?.message).toContain('CONTENT_FILTER could not be checked')
  expect(passed.steps[0]!.outputData).toMatchObject({ guardrails: [{ failed: ['CONTENT_FILTER'] }] })
  expect(open.vendor.calls).toHaveLength(1)
})

test('a check that fails is made again, without another call of the model', async () => {
  const { agent } = await closed.runAgent(
    [],
    { text: `Well, once ${join(folder, 'once')} .` },
    { config: { guardrails } },
  )
  expect(agent.outputData).toMatchObject({ text: expect.stringContaining('Well, once') })
  expect(closed.vendor.calls).toHaveLength(1)
})

test('a tool whose result cannot be checked is not called again, and its result is withheld', {
  tags: 'long',
  timeout: 60_000,
}, async () => {
  const tool = {
    type: 'CODE',
    name: 'look',
    description: 'x',
    parameters: { type: 'object', properties: {} },
    code: "return 'I die ' + 'in a tool.'",
  }
  const { run, steps } = await closed.runAgent(
    [tool],
    [{ tools: [{ name: 'look', args: {} }] }, { text: 'Done.' }],
    {
      config: { guardrails: { toolResults: { detectPromptInjection: true } } },
    },
  )
  expect(run.status).toBe('SUCCESS')
  expect(steps[1]!.outputData).toMatchObject({ withheld: true, violations: ['PROMPT_INJECTION'] })
  expect(await findInStore(closed.store, run.id, 'I die in a tool')).toEqual([])
})

test('a worker that goes in the middle of a check leaves nothing of the reply: another asks again', async () => {
  const file = join(folder, 'hang')
  closed.vendor.calls.length = 0
  closed.vendor.say({ text: `Wait, hang ${file} .` })
  const id = await closed.execute(
    await closed.create(closed.graphOf(closed.agentNode([], { guardrails })) as never),
    {},
  )
  await until(() => existsSync(file))
  expect(await findInStore(closed.store, id, 'Wait, hang')).toEqual([])
  const other = await closed.addEngine()
  const before = closed.engine
  closed.use(other)
  await before.stop()
  const { agent } = closed.readAgent(await closed.ended(id, 60_000))
  expect(agent.outputData).toMatchObject({ text: expect.stringContaining('Wait, hang') })
  expect(closed.vendor.calls).toHaveLength(2)
}, 120_000)
