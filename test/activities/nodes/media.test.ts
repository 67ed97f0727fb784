import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { afterEach, expect, test } from 'vitest'
import { edges } from '../../support/engine/graphs.ts'
import { runWithFiles } from '../../support/files/withfiles.ts'
import { keep } from '../../support/keep.ts'
import { nodeOf, shareRunning } from '../../support/running.ts'

const host = await keep(shareRunning())

const open: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const stop of open.splice(0)) await stop()
})

type Asked = { path: string; headers: IncomingHttpHeaders; body: string }
let numbers = 0

/** A vendor with OpenAI's API for sound and images, and a credential for it. */
async function vendor(answer: (asked: Asked, response: ServerResponse, number: number) => void) {
  const asked: Asked[] = []
  const server = createServer(async (request, response) => {
    const body = (await buffer(request)).toString('latin1')
    const one = { path: request.url ?? '', headers: request.headers, body }
    answer(one, response, asked.push(one) - 1)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  open.push(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
  const body = { teamId: host.teamId, name: `media ${++numbers}`, type: 'OPENAI', data: {} }
  const data = { apiKey: 'sk-nobody-knows-it', baseUrl }
  const { id } = await host.ask<{ id: string }>('POST', '/api/credentials', { ...body, data })
  return { asked, credentialId: id }
}

const json =
  (value: unknown, status = 200) =>
  (_asked: Asked, response: ServerResponse) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))

const QUICK = { maxAttempts: 3, initialIntervalMs: 10, maxIntervalMs: 10 }

async function run(config: object, data: object = {}) {
  const ended = await host.run(
    {
      nodes: [
        { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
        { id: 'node', type: 'AI_MEDIA', retry: QUICK, config },
      ],
      edges: edges('start -> node'),
    } as never,
    data as never,
  )
  return { run: ended, ...nodeOf(ended, 'node') }
}

const noted = (executionId: string) =>
  host.store.db
    .selectFrom('modelCalls')
    .select(['model', 'status', 'unit', 'units', 'inputTokens', 'cost'])
    .where('executionId', '=', executionId)
    .orderBy('attempt')
    .execute()

async function bytesOf(executionId: string, { id }: { id: string }): Promise<string> {
  const response = await host.request(`/api/executions/${executionId}/files/${id}`, { as: host.admin })
  return response.text()
}

const SOUND = [{ name: 'said.mp3', mimeType: 'audio/mpeg', bytes: Buffer.from('ID3 the sound') }]

test('writes down what is said in a file, with the fields of the vendor, and counts its seconds', async () => {
  const { credentialId, asked } = await vendor(
    json({ text: 'Hello there', usage: { type: 'duration', seconds: 7 } }),
  )
  const config = {
    ...{ credentialId, model: 'whisper-1', operation: 'transcribe', file: '{{ $input.files[0] }}' },
    options: { language: 'de', temperature: 0.2, prompt_cache: '{{ $input.none }}' },
  }
  const ended = await runWithFiles(host, { type: 'AI_MEDIA', config }, SOUND)
  expect(nodeOf(ended, 'node')).toMatchObject({ status: 'SUCCESS', outputData: { text: 'Hello there' } })
  const [{ path, headers, body } = { path: '', headers: {}, body: '' }] = asked
  expect(path).toBe('/v1/audio/transcriptions')
  expect(headers.authorization).toBe('Bearer sk-nobody-knows-it')
  for (const part of [
    'name="model"\r\n\r\nwhisper-1\r\n',
    'name="language"\r\n\r\nde\r\n',
    'name="temperature"\r\n\r\n0.2\r\n',
    'name="file"; filename="said.mp3"\r\nContent-Type: audio/mpeg\r\n\r\nID3 the sound\r\n',
  ])
    expect(body).toContain(part)
  expect(body).not.toContain('prompt_cache')
  expect(await noted(ended.id)).toEqual([
    { model: 'whisper-1', status: 'SUCCESS', unit: 'SECONDS', units: '7.000', inputTokens: null, cost: null },
  ])
})

test('speaks a text into a file, and counts its characters', async () => {
  const { credentialId, asked } = await vendor((_asked, response) =>
    response.writeHead(200, { 'content-type': 'audio/mpeg' }).end('ID3 spoken'),
  )
  const found = await run(
    {
      credentialId,
      model: 'tts-1',
      operation: 'speak',
      text: 'Grüße {{ $input.name }}',
      options: { speed: 2 },
    },
    { name: 'Ada' },
  )
  expect(found).toMatchObject({
    status: 'SUCCESS',
    outputData: { file: { name: 'audio.mp3', mimeType: 'audio/mpeg', bytes: 10 } },
  })
  expect(JSON.parse(Buffer.from(asked[0]!.body, 'latin1').toString())).toEqual({
    ...{ model: 'tts-1', input: 'Grüße Ada', voice: 'alloy', speed: 2 },
  })
  const { file } = found.outputData as { file: { id: string } }
  expect(await bytesOf(found.run.id, file)).toBe('ID3 spoken')
  expect(await noted(found.run.id)).toMatchObject([{ unit: 'CHARACTERS', units: '9.000', cost: null }])
})

test('an imported node has its file where n8n has it, for each of its items', async () => {
  const { credentialId } = await vendor((_asked, response) =>
    response.writeHead(200, { 'content-type': 'audio/mpeg' }).end('ID3 spoken'),
  )
  const node = (name: string, type: string, parameters: object, typeVersion = 1) => ({
    ...{ name, type, typeVersion, position: [0, 0], parameters },
  })
  const to = (name: string) => ({ main: [[{ node: name, type: 'main', index: 0 }]] })
  const workflow = {
    nodes: [
      node('Start', 'n8n-nodes-base.manualTrigger', {}),
      node('Two', 'n8n-nodes-base.code', { jsCode: 'return [{ json: { n: 1 } }, { json: { n: 2 } }]' }, 2),
      node(
        'Speak',
        '@n8n/n8n-nodes-langchain.openAi',
        { resource: 'audio', input: '=Number {{ $json.n }}', options: { binaryPropertyOutput: 'voice' } },
        1.8,
      ),
      node(
        'Tell',
        'n8n-nodes-base.set',
        {
          assignments: {
            assignments: [{ name: 'file', value: '={{ $binary.voice.fileName }}', type: 'string' }],
          },
          options: {},
        },
        3.4,
      ),
    ],
    connections: { Start: to('Two'), Two: to('Speak'), Speak: to('Tell') },
  }
  const json = {
    teamId: host.teamId,
    name: `speech ${++numbers}`,
    workflow,
    credentials: { Speak: credentialId },
  }
  const { id } = await host.ask<{ id: string }>('POST', '/api/workflows/import', json)
  const ended = await host.ended(await host.execute(id, {}))
  expect(ended.status, JSON.stringify(ended.nodeExecutions)).toBe('SUCCESS')
  expect(ended.outputData).toMatchObject({ items: [{ file: 'audio.mp3' }, { file: 'audio.mp3' }] })
  expect(await noted(ended.id)).toHaveLength(2)
})

test('makes images, changes those that it is given, and takes their addresses', async () => {
  const image = Buffer.from('\x89PNG\r\n\x1a\n one', 'latin1').toString('base64')
  const { credentialId, asked } = await vendor((one, response) =>
    json(
      one.body.includes('"url"')
        ? { data: [{ url: 'https://images.example/1.png' }] }
        : { data: [{ b64_json: image }, { b64_json: image }], usage: { input_tokens: 5, output_tokens: 9 } },
    )(one, response),
  )
  const config = { credentialId, model: 'gpt-image-1', operation: 'image', text: 'A dog' }
  const made = await run({ ...config, count: 2, into: { field: 'pictures' } })
  expect(made.outputData).toMatchObject({
    pictures: [{ file: { name: 'image1.png', mimeType: 'image/png' } }, { file: { name: 'image2.png' } }],
  })
  expect(await noted(made.run.id)).toMatchObject([{ unit: 'IMAGES', units: '2.000', inputTokens: 5 }])
  const named = await run({ ...config, options: { response_format: 'url' } })
  expect(named.outputData).toEqual({ files: [{ url: 'https://images.example/1.png' }] })
  const ended = await runWithFiles(
    host,
    { type: 'AI_MEDIA', config: { ...config, files: '{{ $input.files }}' } },
    [{ name: 'dog.png', mimeType: 'image/png', bytes: Buffer.from('a dog') }],
  )
  expect(nodeOf(ended, 'node').status).toBe('SUCCESS')
  expect(asked[2]!.path).toBe('/v1/images/edits')
  expect(asked[2]!.body).toContain('name="image"; filename="dog.png"')
})

test('a refusal that passes is tried again, others are final, and what may have been paid is never repeated', async () => {
  const busy = await vendor((one, response, number) =>
    number === 0
      ? json({ error: { message: 'slow down' } }, 429)(one, response)
      : response.writeHead(200, { 'content-type': 'audio/mpeg' }).end('ID3'),
  )
  const speak = { model: 'tts-1', operation: 'speak', text: 'Hi' }
  const again = await run({ ...speak, credentialId: busy.credentialId })
  expect(again).toMatchObject({ status: 'SUCCESS', retryCount: 1 })
  expect((await noted(again.run.id)).map(({ status }) => status)).toEqual(['REFUSED', 'SUCCESS'])
  const wrong = await vendor(json({ error: { message: 'no such voice' } }, 400))
  const refused = await run({ ...speak, credentialId: wrong.credentialId })
  expect(refused).toMatchObject({
    ...{ status: 'FAILED', retryCount: 0 },
    errorMessage: expect.stringMatching(/400: no such voice/),
  })
  // The connection breaks after the request was taken.
  const cut = await vendor((_asked, response) => response.destroy())
  const lost = await run({ ...speak, credentialId: cut.credentialId })
  expect(lost).toMatchObject({
    ...{ status: 'FAILED', retryCount: 0 },
    errorMessage: expect.stringMatching(/may have been sent.*second payment/),
  })
  expect(cut.asked).toHaveLength(1)
  expect((await noted(lost.run.id)).map(({ status }) => status)).toEqual(['LOST'])
  const garbage = await vendor(json({ nothing: true }))
  const image = { ...speak, operation: 'image', credentialId: garbage.credentialId }
  expect((await run(image)).errorMessage).toMatch(/has no image/)
  expect(garbage.asked).toHaveLength(1)
})

test('what is missing for an operation, or set by the node itself, is refused when it is saved', async () => {
  const { credentialId } = await vendor(json({}))
  for (const [config, fault] of [
    [{ operation: 'transcribe' }, /file.*is required for the operation transcribe/],
    [{ operation: 'speak' }, /text.*is required for the operation speak/],
    [{ operation: 'sing' }, /must be transcribe, translate, speak or image/],
    [{ operation: 'image', text: 'x', options: { model: 'y' } }, /the node sets them itself/],
    [{ operation: 'image', text: 'x', count: 11 }, /at most 10/],
  ] as const) {
    const node = { id: 'node', type: 'AI_MEDIA', config: { credentialId, model: 'm', ...config } }
    await expect(host.create({ nodes: [node], edges: [] } as never)).rejects.toThrow(fault)
  }
  const demo = await host.ask<{ id: string }>('POST', '/api/credentials', {
    ...{ teamId: host.teamId, name: `media ${++numbers}`, type: 'DEMO', data: {} },
  })
  const found = await run({ credentialId: demo.id, model: 'm', operation: 'speak', text: 'x' })
  expect(found.errorMessage).toMatch(/is of the type DEMO/)
})
