import { expect, test } from 'vitest'
import { NodeFailure } from '../../../activities/nodes/kit/failure.ts'
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
