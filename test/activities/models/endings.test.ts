import { expect, test } from 'vitest'
import { NodeFailure } from '../../../activities/nodes/kit/failure.ts'
import { createNoteKeeper } from '../../../activities/nodes/kit/notes.ts'
import type { CredentialType } from '../../../db/credentials/types.ts'
import { useModels } from '../../support/servers/models/asking.ts'
import type { VendorScript } from '../../support/servers/models/vendor.ts'
import { useVendors } from '../../support/servers/models/vendors.ts'

const models = useModels()
const { startVendor } = useVendors()

async function start(type: CredentialType, script: VendorScript) {
  const { server, data } = await startVendor(type, script)
  return {
    server,
    ask: (request: Partial<Parameters<typeof models.ask>[2]> = {}) =>
      models.ask(type, data, { messages: [{ role: 'user', content: 'hi' }], ...request }),
  }
}

const PROTOCOLS: CredentialType[] = ['OPENAI', 'OPENAI_COMPATIBLE', 'AZURE_OPENAI', 'ANTHROPIC', 'GOOGLE_AI']

test.each(['error', 'abort', 'insufficient_system_resource', 'ERROR', 'cancelled'])(
  'an answer that a server ends with %s is broken off, and never taken as whole',
  async (finish) => {
    const { ask } = await start('OPENAI_COMPATIBLE', { text: 'The first half of', finish })
    const error = await ask().catch((thrown) => thrown)
    expect(error).toBeInstanceOf(NodeFailure)
    expect(error).toMatchObject({ type: 'ModelUnavailable', retryable: true })
  },
)

test('an error within a chunk that has choices, too, is one', async () => {
  const chunk = {
    id: 'gen-1',
    object: 'chat.completion.chunk',
    created: 1_760_000_000,
    model: 'some-model',
    provider: 'some-provider',
    error: { code: 'server_error', message: 'Provider disconnected' },
    choices: [{ index: 0, delta: { content: '' }, finish_reason: 'error' }],
  }
  const { ask } = await start('OPENAI_COMPATIBLE', {
    text: 'one two three',
    replace: { event: 3, raw: `data: ${JSON.stringify(chunk)}\n\n` },
    endAfter: 4,
  })
  const error = await ask().catch((thrown) => thrown)
  expect(error).toMatchObject({ type: 'ModelUnavailable', retryable: true })
})

test.each([
  ['model_length', 'length'],
  ['max_tokens', 'length'],
  ['safety', 'filter'],
  ['sensitive', 'filter'],
  ['eos_token', 'stop'],
  ['stop_sequence', 'stop'],
])('a server that ends with %s means %s', async (finish, meant) => {
  const { ask } = await start('OPENAI_COMPATIBLE', { text: 'some words', finish })
  expect(await ask()).toMatchObject({ text: 'some words', finish: meant })
})

test('an end that is not known is told as the vendor calls it', async () => {
  const { ask } = await start('OPENAI_COMPATIBLE', { text: 'some words', finish: 'something_new' })
  expect(await ask()).toMatchObject({ text: 'some words', finish: 'other', reason: 'something_new' })
  const known = await start('OPENAI_COMPATIBLE', { text: 'some words' })
  expect(await known.ask()).not.toHaveProperty('reason')
})

const CUT: Partial<Record<CredentialType, string>> = {
  OPENAI: 'max_output_tokens',
  ANTHROPIC: 'max_tokens',
  GOOGLE_AI: 'MAX_TOKENS',
}
const tools = ['look', 'delete_all'].map((name) => ({
  name,
  description: 'x',
  parameters: { type: 'object', properties: {} },
}))

test.each(PROTOCOLS)('%s: a call at which the answer was cut is no call without arguments', async (type) => {
  const called = [
    { id: 'call_1', name: 'look', args: {} },
    { id: 'call_2', name: 'delete_all', args: '' },
  ]
  const { ask, server } = await start(type, { text: 'I', tools: called, finish: CUT[type] ?? 'length' })
  expect((await ask({ tools })).toolCalls).toMatchObject([
    { name: 'look', arguments: {} },
    { name: 'delete_all', arguments: {}, invalid: '' },
  ])
  server.say({ text: 'I', tools: called })
  const whole = (await ask({ tools })).toolCalls
  expect(whole.map(({ invalid }) => invalid)).toEqual([undefined, undefined])
})

const unnamed = (more: object = {}): VendorScript => ({
  text: 'whole words',
  spoil: (raw) => raw.replace(/"finish_reason":"(?:stop|tool_calls)"/, '"finish_reason":null'),
  ...more,
})

test.each<CredentialType>(['OPENAI_COMPATIBLE', 'AZURE_OPENAI'])(
  '%s: an answer without a reason for its end is whole after text and usage, with a warning',
  async (type) => {
    const { server, data } = await startVendor(type, unnamed())
    const notes = createNoteKeeper()
    const request = { messages: [{ role: 'user' as const, content: 'hi' }] }
    const reply = await models.ask(type, data, request, { context: { notes } })
    expect(reply).toMatchObject({ text: 'whole words', finish: 'stop', usage: { input: 100, output: 20 } })
    expect(notes.kept().notes?.warnings).toEqual([
      { path: 'config.model', message: expect.stringContaining('finish_reason') },
    ])
    expect(server.calls).toHaveLength(1)
  },
)

test.each([
  ['usage', { usage: null }],
  ['text', { text: '' }],
  ['text, but with a call of a tool', { text: '', tools: [{ name: 'look', args: {} }] }],
  ['usage and [DONE]', { usage: null, endAfter: 3 }],
])('an answer without a reason for its end and without %s is cut off', async (_what, more) => {
  const { ask } = await start('OPENAI_COMPATIBLE', unnamed(more))
  const error = await ask({ tools }).catch((thrown) => thrown)
  expect(error).toMatchObject({ type: 'ModelUnavailable', retryable: true })
})

test('an answer of Google without a reason for its end is cut off: usage comes with each of its pieces', async () => {
  const spoil = (raw: string) => raw.replace(/"finishReason":"\w+",?/, '')
  const { ask } = await start('GOOGLE_AI', { text: 'some words', spoil })
  await expect(ask()).rejects.toMatchObject({ type: 'ModelUnavailable' })
})

test.each<[CredentialType, string, Record<string, unknown>]>([
  ['OPENAI_COMPATIBLE', 'nothing', {}],
  ['OPENAI_COMPATIBLE', 'the input only', { prompt_tokens: 9, total_tokens: 9 }],
  ['OPENAI_COMPATIBLE', 'the output only', { completion_tokens: 9 }],
  ['OPENAI_COMPATIBLE', 'zeros', { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }],
  ['AZURE_OPENAI', 'nothing', {}],
  ['AZURE_OPENAI', 'the input only', { prompt_tokens: 9, total_tokens: 9 }],
  ['GOOGLE_AI', 'nothing', {}],
  ['GOOGLE_AI', 'the input only', { promptTokenCount: 9, totalTokenCount: 9 }],
  ['GOOGLE_AI', 'the output only', { candidatesTokenCount: 9 }],
])('%s: usage of which a vendor has reported %s is unknown, never 0', async (type, _what, usage) => {
  const { ask } = await start(type, { text: 'some words', usage })
  expect(await ask()).toMatchObject({ text: 'some words', usage: null, cost: null })
  expect(models.metered.at(-1)!.outcome).toMatchObject({ status: 'SUCCESS', usage: null })
})

test('an answer of Google that is all thoughts and calls has no tokens of candidates', async () => {
  const usage = { promptTokenCount: 9, thoughtsTokenCount: 5, totalTokenCount: 14 }
  const { ask } = await start('GOOGLE_AI', { text: 'some words', usage })
  expect(await ask()).toMatchObject({ usage: { input: 9, output: 5, reasoning: 5 } })
})

test('large integers in arguments and in JSON keep their digits, with a warning', async () => {
  const id = '12345678901234567890'
  const { data } = await startVendor('OPENAI_COMPATIBLE', [
    { tools: [{ name: 'look', args: `{"id":${id}}` }] },
    { text: `<think>An id {}.</think>\n\`\`\`json\n{"id":${id}}\n\`\`\`` },
  ])
  const notes = createNoteKeeper()
  const messages = [{ role: 'user' as const, content: 'hi' }]
  const ask = (more: object) =>
    models.ask('OPENAI_COMPATIBLE', data, { messages, ...more }, { context: { notes } })
  expect((await ask({ tools })).toolCalls).toMatchObject([{ arguments: { id } }])
  expect((await ask({ schema: { type: 'object' } })).object).toEqual({ id })
  expect(notes.kept().notes?.warnings).toMatchObject([
    { message: expect.stringMatching(/^the arguments of look: 1 number is too large/) },
    { message: expect.stringMatching(/^the JSON of the answer: 1 number is too large/) },
  ])
})
