import { randomBytes } from 'node:crypto'
import { afterEach, expect, test } from 'vitest'
import {
  keepTurn,
  MAX_MEMORY_TURNS,
  purgeMemory,
  readMemory,
  rotateMemory,
} from '../../../db/workflows/kept/nodememory.ts'
import { takes } from '../../support/agents/agents.ts'
import { edges } from '../../support/engine/graphs.ts'
import { runWithFiles } from '../../support/files/withfiles.ts'
import { keep } from '../../support/keep.ts'
import { nodeOf, shareRunning } from '../../support/running.ts'
import { startAnthropic } from '../../support/servers/models/anthropic.ts'
import { startOpenAi } from '../../support/servers/models/openai.ts'
import type { VendorScript } from '../../support/servers/models/vendor.ts'

const host = await keep(shareRunning())

const open: { stop(): Promise<unknown> }[] = []
afterEach(async () => {
  for (const one of open.splice(0)) await one.stop()
})

let numbers = 0

async function vendor(script: VendorScript, type = 'OPENAI_COMPATIBLE') {
  const server = await (type === 'ANTHROPIC' ? startAnthropic(script) : startOpenAi(script))
  open.push(server)
  const data = { apiKey: 'sk-nobody-knows-it', baseUrl: server.url }
  const body = { teamId: host.teamId, name: `llm ${++numbers}`, type, data }
  const { id } = await host.ask<{ id: string }>('POST', '/api/credentials', body)
  return { ...server, credentialId: id, said: (n = 0) => server.calls[n]!.body }
}

const graphOf = (config: object, retry: object = { maxAttempts: 1 }) =>
  ({
    nodes: [
      { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
      { id: 'node', type: 'LLM', retry, config: { model: 'demo', ...config } },
    ],
    edges: edges('start -> node'),
  }) as never

const run = async (config: object, data: object = {}) =>
  nodeOf(await host.run(graphOf(config), data as never), 'node')

/** The smallest PNG. */
const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)

test('says its messages before its prompt, without those that are empty', async () => {
  const { credentialId, said } = await vendor({ text: 'Yes' })
  const found = await run(
    {
      credentialId,
      system: 'Be brief',
      messages: [
        { role: 'user', content: 'I am {{ $input.name }}' },
        { role: 'assistant', content: 'Hello' },
        { role: 'user', content: '{{ $input.none }}' },
        { role: 'system', content: 'And kind' },
      ],
      prompt: 'Who am I?',
    },
    { name: 'Ada' },
  )
  expect(found).toMatchObject({ status: 'SUCCESS', outputData: { text: 'Yes' } })
  expect(said().messages).toEqual([
    { role: 'system', content: 'Be brief\n\nAnd kind' },
    { role: 'user', content: 'I am Ada' },
    { role: 'assistant', content: 'Hello' },
    { role: 'user', content: 'Who am I?' },
  ])
  const alone = await run({ credentialId, messages: [{ role: 'user', content: 'Only this' }] })
  expect(alone.outputData).toEqual({ text: 'Yes' })
  expect(said(1).messages).toEqual([{ role: 'user', content: 'Only this' }])
})

test('a config without anything to ask, or with files of the wrong side, is refused when it is saved', async () => {
  const { credentialId } = await vendor({ text: 'Yes' })
  for (const [config, fault] of [
    [{}, /prompt.*is required, unless there are messages/],
    [{ messages: [] }, /prompt.*is required/],
    [{ messages: [{ role: 'user' }] }, /content.*is required, unless there are files/],
    [{ prompt: 'x', messages: [{ role: 'assistant', files: [] }] }, /shown by the user only/],
    [{ prompt: 'x', messages: [{ role: 'tool', content: 'x' }] }, /must be system, user or assistant/],
    [{ messages: [{ role: 'user', content: 'x' }], files: [] }, /shown with the prompt/],
    [{ prompt: 'x', fallbacks: [{ model: 'y' }] }, /fallbacks\[0\]\.credentialId/],
  ] as const)
    await expect(host.create(graphOf({ credentialId, ...config }))).rejects.toThrow(fault)
  const foreign = { credentialId: '6f1c3f5e-0000-4000-8000-000000000000', model: 'x' }
  await expect(host.create(graphOf({ credentialId, prompt: 'x', fallbacks: [foreign] }))).rejects.toThrow(
    /fallbacks\[0\]\.credentialId/,
  )
})

test.each([
  ['OPENAI_COMPATIBLE', /data:image\/png;base64,iVBORw0KGgo/],
  ['OPENAI', /"input_image".*data:image\/png;base64,iVBORw0KGgo/],
  ['ANTHROPIC', /"media_type":"image\/png".*"data":"iVBORw0KGgo/],
])('%s is shown the images of its files, and their addresses', async (type, bytes) => {
  const { credentialId, said } = await vendor({ text: 'A dot' }, type)
  const config = {
    credentialId,
    model: 'demo',
    messages: [{ role: 'user', files: ['https://pictures.example/a.png'] }],
    prompt: 'What is it?',
    files: '{{ $input.files }}',
  }
  const given = [{ name: 'dot.png', mimeType: 'image/png', bytes: PNG }]
  const found = nodeOf(await runWithFiles(host, { type: 'LLM', config }, given), 'node')
  expect(found).toMatchObject({ status: 'SUCCESS', outputData: { text: 'A dot' } })
  const body = JSON.stringify(said())
  expect(body).toMatch(bytes)
  expect(body).toContain('https://pictures.example/a.png')
  expect(body).toContain('What is it?')
  // The record says which file it was and has no bytes of it.
  expect(JSON.stringify(found.inputData)).not.toContain('iVBORw0KGgo')
})

test('what cannot be shown is the failure of the node, before anything is asked', async () => {
  const { credentialId, calls } = await vendor({ text: 'never' })
  const outcome = async (files: unknown, bytes: Uint8Array = PNG, mimeType = 'image/png') => {
    const config = { credentialId, model: 'demo', prompt: 'x', files }
    const given = [{ name: 'x', mimeType, bytes }]
    return nodeOf(await runWithFiles(host, { type: 'LLM', config }, given), 'node').errorMessage
  }
  expect(await outcome('{{ $input.files }}', PNG, 'text/plain')).toMatch(/shown images and PDF files/)
  for (const one of ['not an address', 'file:///etc/passwd', { file: 1 }]) {
    const { errorMessage } = await run({ credentialId, prompt: 'x', files: [one] })
    expect(errorMessage).toMatch(/files\[0\] must be a file/)
  }
  expect(await outcome('{{ $input.files }}', new Uint8Array(6_000_000))).toMatch(/more than 5242880 bytes/)
  expect(calls).toHaveLength(0)
})

test('a model that cannot answer is replaced by the next one, with a warning; the last one fails the node', async () => {
  const busy = await vendor({ status: 503 })
  const good = await vendor({ text: 'I am here' })
  const config = { credentialId: busy.credentialId, model: 'first', prompt: 'Hello' }
  const fallbacks = [
    { credentialId: busy.credentialId, model: 'second' },
    { credentialId: good.credentialId, model: 'third' },
  ]
  const ended = await host.run(graphOf({ ...config, fallbacks }))
  const found = nodeOf(ended, 'node')
  expect(found).toMatchObject({ status: 'SUCCESS', outputData: { text: 'I am here' }, retryCount: 0 })
  expect(found.warnings).toEqual([
    { path: 'model', message: expect.stringMatching(/503.*second was asked/) },
    { path: 'fallbacks[0].model', message: expect.stringMatching(/503.*third was asked/) },
  ])
  expect([busy.calls, good.calls].map((calls) => calls.map(({ body }) => body.model))).toEqual([
    ['first', 'second'],
    ['third'],
  ])
  const noted = await host.store.db
    .selectFrom('modelCalls')
    .select(['model', 'status'])
    .where('executionId', '=', ended.id)
    .orderBy('call')
    .execute()
  expect(noted).toEqual([
    { model: 'first', status: 'REFUSED' },
    { model: 'second', status: 'REFUSED' },
    { model: 'third', status: 'SUCCESS' },
  ])
  const failed = await run({ ...config, fallbacks: [fallbacks[0]] })
  expect(failed).toMatchObject({ status: 'FAILED', errorMessage: expect.stringMatching(/503/) })
})

test('answers with a list that fits its schema, whose references still lead somewhere', async () => {
  const list = [{ name: 'Ada' }, { name: 'Grace' }]
  const { credentialId, said } = await vendor([
    { text: JSON.stringify({ list: [{ name: 7 }] }) },
    { text: JSON.stringify({ list }) },
  ])
  const schema = {
    type: 'array',
    items: { $ref: '#/$defs/person' },
    $defs: { person: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] } },
  }
  const found = await run({ credentialId, prompt: 'Who?', output: 'json', schema, into: { field: 'people' } })
  expect(found).toMatchObject({ status: 'SUCCESS', outputData: { people: list } })
  expect(JSON.stringify(said(1).messages)).toContain('list[0].name: must be string')
})

const textsOf = (body: Record<string, unknown>) =>
  (body.messages as { role: string; content: unknown }[]).map(
    ({ role, content }) => `${role}: ${typeof content === 'string' ? content : JSON.stringify(content)}`,
  )

test('remembers what was said under the same key, in this workflow and this node only', async () => {
  const { credentialId, said } = await vendor((_call, number) => ({ text: `Answer ${number + 1}` }))
  const config = {
    credentialId,
    model: 'demo',
    system: 'Be brief',
    prompt: '{{ $input.text }}',
    memory: { key: '{{ $input.who }}', messages: 4 },
  }
  const workflowId = await host.create(graphOf(config))
  const ask = async (who: unknown, text: string, id = workflowId) =>
    nodeOf(await host.ended(await host.execute(id, { who, text })), 'node')
  for (const text of ['One', 'Two', 'Three']) expect((await ask('ada', text)).status).toBe('SUCCESS')
  expect(textsOf(said(1))).toEqual(['system: Be brief', 'user: One', 'assistant: Answer 1', 'user: Two'])
  await ask('ada', 'Four')
  // Four messages are two questions with their answers.
  expect(textsOf(said(3)).slice(1)).toEqual([
    ...['user: Two', 'assistant: Answer 2', 'user: Three', 'assistant: Answer 3', 'user: Four'],
  ])
  await ask('grace', 'Five')
  expect(textsOf(said(4)).slice(1)).toEqual(['user: Five'])
  await ask('ada', 'Six', await host.create(graphOf(config)))
  expect(textsOf(said(5)).slice(1)).toEqual(['user: Six'])
  const nameless = await ask('', 'Seven')
  expect(nameless).toMatchObject({
    status: 'FAILED',
    errorMessage: expect.stringMatching(/memory\.key must have/),
  })
  // The table has none of the words, and the workflow takes its memory along.
  const rows = () =>
    host.store.db.selectFrom('memoryTurns').selectAll().where('workflowId', '=', workflowId).execute()
  expect((await rows()).map(({ sealed }) => sealed.includes('Answer'))).toEqual(Array(5).fill(false))
  await host.ask('DELETE', `/api/workflows/${workflowId}`)
  expect(await rows()).toEqual([])
})

test('agents remember their prompt and their last answer; nodes with one name share a memory', async () => {
  const { credentialId, said } = await vendor([
    { tools: [{ name: 'double', args: { n: 21 } }] },
    { text: 'It is 42' },
    { text: 'As I said' },
    { text: 'Still' },
  ])
  const tools = [
    { type: 'CODE', name: 'double', description: 'Doubles', parameters: takes('n'), code: 'return 42' },
  ]
  const memory = { key: 'all', name: 'shared' }
  const agent = { credentialId, model: 'demo', instructions: 'Help', prompt: 'Double 21', tools, memory }
  const workflowId = await host.create({
    nodes: [
      { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
      { id: 'agent', type: 'AI_AGENT', config: agent },
      { id: 'node', type: 'LLM', config: { credentialId, model: 'demo', prompt: 'Again?', memory } },
    ],
    edges: edges('start -> agent', 'agent -> node'),
  } as never)
  const ended = await host.ended(await host.execute(workflowId))
  expect(nodeOf(ended, 'node')).toMatchObject({ status: 'SUCCESS', outputData: { text: 'As I said' } })
  expect(textsOf(said(2))).toEqual(['user: Double 21', 'assistant: It is 42', 'user: Again?'])
  await host.ended(await host.execute(workflowId))
  expect(textsOf(said(3))).toEqual([
    'system: Help',
    ...['user: Double 21', 'assistant: It is 42', 'user: Again?', 'assistant: As I said', 'user: Double 21'],
  ])
})

test('a call that keeps its turn again replaces it; old ones are forgotten; keys rotate', async () => {
  const { store } = host
  const workflowId = await host.create(
    graphOf({ credentialId: (await vendor({})).credentialId, prompt: 'x' }),
  )
  const place = { workflowId, name: 'node x', key: 'k' }
  const keep = (callKey: string, answered: string, days = 1) =>
    keepTurn(store, place, { turn: { asked: 'q', answered }, callKey, days })
  const read = (callKey = '', turns = 200) => readMemory(store, place, { turns, callKey })
  const answers = async () => (await read()).map(({ answered }) => answered)
  await Promise.all([keep('1', 'first'), keep('1', 'first')])
  await keep('1', 'second')
  expect(await answers()).toEqual(['second'])
  expect(await read('1')).toEqual([])
  for (let n = 2; n <= MAX_MEMORY_TURNS + 2; n++) await keep(String(n), `a${n}`)
  expect(await answers()).toHaveLength(MAX_MEMORY_TURNS)
  expect((await answers()).slice(-2)).toEqual(['a101', 'a102'])
  // What is very long is left out rather than read.
  await keep('long', 'x'.repeat(3_000_000))
  expect((await read()).map(({ answered }) => answered.length)).toEqual([3_000_000])
  await keep('long', 'short')
  const keys = { current: 'newer', byId: new Map([...store.keys.byId, ['newer', randomBytes(32)]]) }
  expect(await rotateMemory({ ...store, keys })).toBeGreaterThanOrEqual(MAX_MEMORY_TURNS)
  expect(await readMemory({ ...store, keys }, place, { turns: 1, callKey: '' })).toEqual([
    { asked: 'q', answered: 'short' },
  ])
  await expect(read()).rejects.toThrow()
  await store.db
    .updateTable('memoryTurns')
    .set({ expiresAt: new Date(0) })
    .where('workflowId', '=', workflowId)
    .execute()
  expect(await read()).toEqual([])
  await purgeMemory(store)
  const left = store.db.selectFrom('memoryTurns').select('id').where('workflowId', '=', workflowId)
  expect(await left.execute()).toEqual([])
  // A workflow that is deleted meanwhile gets none.
  await host.ask('DELETE', `/api/workflows/${workflowId}`)
  await keep('late', 'late')
  expect(await left.execute()).toEqual([])
})
