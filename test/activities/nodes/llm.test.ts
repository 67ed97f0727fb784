import { afterEach, expect, test } from 'vitest'
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
