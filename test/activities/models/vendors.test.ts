import { describe, expect, test } from 'vitest'
import type { ModelMessage, ModelReply, ModelRequest } from '../../../activities/models/model.ts'
import type { CredentialType } from '../../../db/credentials/types.ts'
import { useModels } from '../../support/servers/models/asking.ts'
import { startOpenAi } from '../../support/servers/models/openai.ts'
import type { VendorScript } from '../../support/servers/models/vendor.ts'
import { useVendors, VENDOR_KEY } from '../../support/servers/models/vendors.ts'

const models = useModels()
const KEY = VENDOR_KEY

const { open, startVendor } = useVendors()

/** A vendor's server with its credential, how it is asked and where its model's name is. */
async function start(type: CredentialType, script: VendorScript) {
  const { server, data } = await startVendor(type, script)
  const texts: string[] = []
  const ask = (request: ModelRequest, model = 'some-model') =>
    models.ask(type, data, request, { model, onText: (text) => texts.push(text) })
  return { server, ask, texts }
}

const VENDORS: [CredentialType, string, Record<string, string>][] = [
  ['OPENAI', '/v1/responses', { authorization: `Bearer ${KEY}` }],
  ['OPENAI_COMPATIBLE', '/v1/chat/completions', { authorization: `Bearer ${KEY}` }],
  [
    'AZURE_OPENAI',
    '/openai/deployments/some-model/chat/completions?api-version=2024-10-21',
    { 'api-key': KEY },
  ],
  ['ANTHROPIC', '/v1/messages', { 'x-api-key': KEY, 'anthropic-version': '2023-06-01' }],
  ['GOOGLE_AI', '/v1beta/models/some-model:streamGenerateContent?alt=sse', { 'x-goog-api-key': KEY }],
]

const TOOLS = [
  {
    name: 'find',
    description: 'Finds things',
    parameters: { type: 'object', properties: { q: { type: 'string' } } },
  },
  { name: 'bare', description: 'Has no parameters', parameters: {} },
]

const user = (content: string): ModelMessage => ({ role: 'user', content })

describe.each(VENDORS)('%s', (type, path, headers) => {
  test('streams its text, however its characters are cut, and reports its tokens', async () => {
    const text = 'Grüße 🌍 aus Zürich — 你好'
    const { server, ask, texts } = await start(type, { text, pieceBytes: 1 })
    const reply = await ask({
      messages: [{ role: 'system', content: 'Be brief' }, user('hi')],
      temperature: 0.5,
      maxTokens: 99,
    })
    expect(reply).toMatchObject({ text, toolCalls: [], finish: 'stop', cost: 1 })
    expect(texts.length).toBeGreaterThan(3)
    expect(texts.join('')).toBe(text)
    expect(reply.message).toMatchObject({ role: 'assistant', content: text })
    expect(reply.usage).toMatchObject({ input: 100, output: 20, cached: type === 'ANTHROPIC' ? 30 : 40 })
    expect(reply.usage!.cacheWrite).toBe(type === 'ANTHROPIC' ? 10 : 0)
    const [call] = server.calls
    expect(call!.path).toBe(path)
    expect(call!.headers).toMatchObject({
      ...headers,
      'user-agent': 'Perdure',
      'accept-encoding': 'identity',
    })
    expect(JSON.stringify(call!.body)).toMatch(/Be brief/)
    expect(JSON.stringify(call!.body)).toMatch(/0\.5/)
    expect(JSON.stringify(call!.body)).toMatch(/[":]99[,}]/)
    // The key of another kind, or one from the environment, would be in another header.
    const keys = ['authorization', 'api-key', 'x-api-key', 'x-goog-api-key']
    const sent = keys.filter((name) => call!.headers[name] !== undefined)
    expect(sent).toEqual(keys.filter((name) => headers[name] !== undefined))
    const { outcome, ...metered } = models.metered.at(-1)!
    expect(metered).toMatchObject({ provider: type, model: 'some-model', credentialId: 'credential' })
    expect(outcome).toMatchObject({ status: 'SUCCESS', usage: reply.usage })
    expect(outcome!.firstMs).toBeLessThanOrEqual(outcome!.latencyMs)
  })

  test('assembles the calls of tools from their pieces, and takes their results back', async () => {
    const args = { q: 'Zürich "quoted" \\ 🌍', deep: { list: [1, 2, { n: null }] } }
    const tools = [
      { name: 'find', args },
      { name: 'find', args: {} },
    ]
    const { server, ask } = await start(type, { text: 'Let me see', tools, pieceBytes: 3 })
    const first = await ask({ messages: [user('hi')], tools: TOOLS })
    expect(first).toMatchObject({ text: 'Let me see', finish: 'tools' })
    expect(first.toolCalls.map(({ name, arguments: given }) => ({ name, args: given }))).toEqual(tools)
    expect(new Set(first.toolCalls.map(({ id }) => id)).size).toBe(2)
    server.say({ text: 'Done' })
    const results = first.toolCalls.map(({ id, name }, n): ModelMessage => {
      const failed = n === 1 ? { failed: true as const } : {}
      return { role: 'tool', toolCallId: id, toolName: name, result: { found: n }, ...failed }
    })
    const next = await ask({ messages: [user('hi'), first.message, ...results], tools: TOOLS })
    expect(next.text).toBe('Done')
    const body = JSON.stringify(server.calls[1]!.body)
    for (const said of ['Let me see', 'Zürich', 'found']) expect(body).toContain(said)
    for (const id of type === 'GOOGLE_AI' ? [] : first.toolCalls.map(({ id }) => id))
      expect(body.split(`"${id}"`)).toHaveLength(3)
  })

  test('keeps its reasoning for itself, and gets it back as it was', async () => {
    const { server, ask, texts } = await start(type, {
      reasoning: 'hmm, let me think',
      text: 'So',
      tools: [{ name: 'find', args: { q: 'x' } }],
    })
    // OpenAI signs the reasoning of its reasoning models only.
    const first = await ask(
      { messages: [user('hi')], tools: TOOLS },
      type === 'OPENAI' ? 'gpt-5' : 'some-model',
    )
    expect(first.text).toBe('So')
    expect(texts.join('')).toBe('So')
    const stored: ModelReply = JSON.parse(JSON.stringify(first))
    server.say({ text: 'ok' })
    const result: ModelMessage = {
      role: 'tool',
      toolCallId: first.toolCalls[0]!.id,
      toolName: 'find',
      result: 'y',
    }
    await ask({ messages: [user('hi'), stored.message, result], tools: TOOLS }, 'gpt-5')
    const body = JSON.stringify(server.calls[1]!.body)
    const signs: Partial<Record<CredentialType, string[]>> = {
      OPENAI: ['sealed-reasoning', 'hmm, let me think'],
      OPENAI_COMPATIBLE: ['"reasoning_content":"hmm, let me think"'],
      ANTHROPIC: ['"signature":"signed-thinking"', 'hmm, let me think'],
      GOOGLE_AI: ['"thoughtSignature":"signed-thought"'],
    }
    for (const sign of signs[type] ?? []) expect(body).toContain(sign)
    // Another provider gets the text and the calls only.
    const other = await start(type === 'ANTHROPIC' ? 'OPENAI_COMPATIBLE' : 'ANTHROPIC', { text: 'ok' })
    await other.ask({ messages: [user('hi'), stored.message, result], tools: TOOLS })
    const seen = JSON.stringify(other.server.calls[0]!.body)
    expect(seen).toContain('"So"')
    expect(seen).not.toMatch(/hmm|signed|sealed/)
  })

  test('gets back only the calls that the message still has, each where it was', async () => {
    const tools = ['one', 'two', 'three'].map((q) => ({ name: 'find', args: { q } }))
    const { server, ask } = await start(type, { reasoning: 'hmm', text: 'So', tools })
    const { message } = await ask({ messages: [user('hi')], tools: TOOLS }, 'gpt-5')
    const kept = message.toolCalls!.filter((_, n) => n !== 1)
    const results = kept.map(
      ({ id }): ModelMessage => ({ role: 'tool', toolCallId: id, toolName: 'find', result: 'y' }),
    )
    server.say({ text: 'ok' })
    await ask({ messages: [user('hi'), { ...message, toolCalls: kept }, ...results], tools: TOOLS }, 'gpt-5')
    const body = JSON.stringify(server.calls[1]!.body).replaceAll('\\', '')
    expect(body).not.toContain('"q":"two"')
    expect(body.indexOf('"q":"one"')).toBeGreaterThan(body.indexOf('So'))
    expect(body.indexOf('"q":"three"')).toBeGreaterThan(body.indexOf('"q":"one"'))
  })

  test('gives arguments that are no JSON object as they are', async () => {
    const tools = ['{"q": ', '[1]', '"text"'].map((args) => ({ name: 'find', args }))
    // Gemini sends arguments as a value, not as a text.
    const { ask } = await start(type, { tools: type === 'GOOGLE_AI' ? [] : tools, text: 'x' })
    const { toolCalls } = await ask({ messages: [user('hi')], tools: TOOLS })
    if (type !== 'GOOGLE_AI')
      expect(toolCalls.map(({ invalid }) => invalid)).toEqual(tools.map(({ args }) => args))
    for (const call of toolCalls) expect(call.arguments).toEqual({})
  })

  test('is asked for JSON by the schema, and what it answers is read', async () => {
    const schema = {
      type: 'object',
      properties: { city: { type: 'string' } },
      required: ['city'],
      additionalProperties: false,
    }
    const answer = '{"city": "Zürich"}'
    const speech =
      type === 'ANTHROPIC' ? { tools: [{ name: 'json', args: { city: 'Zürich' } }] } : { text: answer }
    const { server, ask } = await start(type, speech)
    const reply = await ask({ messages: [user('where?')], schema })
    expect(reply).toMatchObject({ object: { city: 'Zürich' }, finish: 'stop', toolCalls: [] })
    expect(JSON.parse(reply.text)).toEqual({ city: 'Zürich' })
    const body = JSON.stringify(server.calls[0]!.body)
    const asked: Partial<Record<CredentialType, RegExp>> = {
      OPENAI: /"text":\{"format":\{"type":"json_schema","strict":true/,
      AZURE_OPENAI: /"response_format":\{"type":"json_schema",.*"strict":true/,
      OPENAI_COMPATIBLE: /valid by this JSON Schema/,
      ANTHROPIC: /"tool_choice":\{"type":"any"|"output_config"/,
      GOOGLE_AI: /"responseMimeType":"application\/json"/,
    }
    expect(body).toMatch(asked[type]!)
    expect(body).toContain('city')
  })

  test('tells when the tokens were used up', async () => {
    const reasons: Partial<Record<CredentialType, string>> = {
      OPENAI: 'max_output_tokens',
      ANTHROPIC: 'max_tokens',
      GOOGLE_AI: 'MAX_TOKENS',
    }
    const { ask } = await start(type, { text: 'half a sen', finish: reasons[type] ?? 'length' })
    expect(await ask({ messages: [user('hi')] })).toMatchObject({ text: 'half a sen', finish: 'length' })
  })

  test('has no tokens if the vendor reported none', async () => {
    if (type === 'ANTHROPIC') return
    const { ask } = await start(type, { text: 'hello', usage: null })
    expect(await ask({ messages: [user('hi')] })).toMatchObject({ text: 'hello', usage: null, cost: null })
    expect(models.metered.at(-1)!.outcome).toMatchObject({ status: 'SUCCESS', usage: null })
  })

  test('is called at its own address, whatever its model is named', async () => {
    const { server, ask } = await start(type, { text: 'ok' })
    const names = [
      '../../x?',
      'a/../../../y',
      '..',
      '.',
      'm?key=1',
      'm#',
      'a b',
      'm\\..\\x',
      'm%2f..',
      'm\r\nx: y',
    ]
    for (const name of names)
      await ask({ messages: [user('hi')] }, name).catch(({ message }) =>
        expect(message).toMatch(/is no name of a model/),
      )
    const parts = path.split('some-model')
    const isOwn = (called: string) => parts.every((part) => called.includes(part))
    expect(server.calls.map((call) => call.path).filter((called) => !isOwn(called))).toEqual([])
    // Where the name is in the body, it arrives as it is.
    if (parts.length === 1) expect(server.calls.map(({ body }) => body.model)).toEqual(names)
  })

  test('takes instructions from anywhere, and empty answers among the messages', async () => {
    const { server, ask } = await start(type, { text: 'ok' })
    const messages: ModelMessage[] = [
      { role: 'system', content: 'First rule' },
      user('one'),
      { role: 'assistant', content: '' },
      { role: 'system', content: 'Second rule' },
      user('two'),
    ]
    expect(await ask({ messages })).toMatchObject({ text: 'ok' })
    const body = JSON.stringify(server.calls[0]!.body)
    expect(body).toContain('First rule\\n\\nSecond rule')
    expect(body).not.toMatch(/"role":"(assistant|model)"/)
  })
})

test('OPENAI stores nothing, names its organization, and keeps to a schema only as far as it can be kept to', async () => {
  const server = await startOpenAi({ text: '{}' })
  open.push(server)
  const data = { apiKey: KEY, organization: 'org-1', baseUrl: server.url }
  const schemas = [
    { type: 'object', properties: { a: { type: 'string' } }, additionalProperties: false },
    {
      type: 'object',
      properties: { a: { type: 'object', properties: {} } },
      required: ['a'],
      additionalProperties: false,
    },
    {
      type: 'object',
      properties: { a: { type: 'array', items: { type: 'string' } } },
      required: ['a'],
      additionalProperties: false,
    },
  ]
  for (const schema of schemas)
    expect(
      await models.ask('OPENAI', data, { messages: [user('x')], schema }, { model: 'gpt-5' }),
    ).toMatchObject({ object: {} })
  const [first] = server.calls
  expect(first!.headers['openai-organization']).toBe('org-1')
  expect(first!.body).toMatchObject({ store: false, include: ['reasoning.encrypted_content'], stream: true })
  expect(
    server.calls.map(({ body }) => (body.text as { format: { strict: boolean } }).format.strict),
  ).toEqual([false, false, true])
})

test('AZURE_OPENAI is asked by its version: a date names the deployment, others go to the address of all', async () => {
  const server = await startOpenAi({ text: 'ok' })
  open.push(server)
  const ask = (more: Record<string, string>) =>
    models.ask(
      'AZURE_OPENAI',
      { apiKey: KEY, endpoint: server.origin, ...more },
      { messages: [user('x')] },
      { model: 'my deployment/1' },
    )
  await ask({ apiVersion: '2025-01-01-preview' })
  await ask({ apiVersion: 'preview' })
  await ask({ endpoint: `${server.origin}/openai/v1/` })
  expect(server.calls.map(({ path }) => path)).toEqual([
    '/openai/deployments/my%20deployment%2F1/chat/completions?api-version=2025-01-01-preview',
    '/openai/v1/chat/completions?api-version=preview',
    '/openai/deployments/my%20deployment%2F1/chat/completions?api-version=2024-10-21',
  ])
  expect(server.calls[0]!.body).toMatchObject({ store: false, model: 'my deployment/1' })
})

test('OPENAI_COMPATIBLE needs no key, takes JSON in a fence, and ids that are not unique', async () => {
  const server = await startOpenAi({ text: '```json\n{"a": [1]}\n```' })
  open.push(server)
  const data = { baseUrl: `${server.url}/` }
  const schema = { type: 'object' }
  expect(await models.ask('OPENAI_COMPATIBLE', data, { messages: [user('x')], schema })).toMatchObject({
    object: { a: [1] },
  })
  expect(server.calls[0]!.headers.authorization).toBeUndefined()
  expect(server.calls[0]!.path).toBe('/v1/chat/completions')
  for (const text of ['no JSON', '{"a": ', `${'['.repeat(200)}${']'.repeat(200)}`]) {
    server.say({ text })
    expect(await models.ask('OPENAI_COMPATIBLE', data, { messages: [user('x')], schema })).not.toHaveProperty(
      'object',
    )
  }
  server.say({
    tools: [
      { id: 'same', name: 'find', args: {} },
      { id: 'same', name: 'find', args: {} },
    ],
  })
  const { toolCalls } = await models.ask('OPENAI_COMPATIBLE', data, { messages: [user('x')], tools: TOOLS })
  expect(new Set(toolCalls.map(({ id }) => id)).size).toBe(2)
})

test('keys and addresses in the environment are not used', async () => {
  const server = await startOpenAi({ text: 'ok' })
  open.push(server)
  const names = ['OPENAI_API_KEY', 'OPENAI_BASE_URL', 'ANTHROPIC_API_KEY', 'ANTHROPIC_BASE_URL']
  for (const name of names) process.env[name] = 'http://127.0.0.1:9/of-the-operator'
  try {
    await models.ask('OPENAI', { apiKey: KEY, baseUrl: server.url }, { messages: [user('x')] })
    await models.ask('OPENAI_COMPATIBLE', { baseUrl: server.url }, { messages: [user('x')] })
    expect(JSON.stringify(server.calls)).not.toContain('of-the-operator')
    const refused = models.ask(
      'ANTHROPIC',
      { apiKey: KEY },
      { messages: [user('x')] },
      { context: { http: nowhere } },
    )
    await expect(refused).rejects.toThrow('https://api.anthropic.com/v1/messages')
    const other = models.ask(
      'OPENAI',
      { apiKey: KEY },
      { messages: [user('x')] },
      { context: { http: nowhere } },
    )
    await expect(other).rejects.toThrow('https://api.openai.com/v1/responses')
  } finally {
    for (const name of names) delete process.env[name]
  }
})

/** Says where a request would have gone. */
const nowhere = {
  request: async ({ url }: { url: string }) => {
    throw new Error(`asked ${url}`)
  },
  close: async () => {},
}
