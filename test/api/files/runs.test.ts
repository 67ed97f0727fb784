import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { sweepFiles } from '../../../db/files/sweep.ts'
import { nodeOf } from '../../support/client.ts'
import { edges } from '../../support/engine/graphs.ts'
import { keep } from '../../support/keep.ts'
import { shareRunning } from '../../support/running.ts'

const host = await keep(shareRunning())
const { db } = host.store
const BYTES = randomBytes(700_000)
const HASH = createHash('sha256').update(BYTES).digest('hex')

type Value = { file: { id: string; name: string; mimeType: string; bytes: number } }
type Echo = { type: string; length: string; bytes: number; hash: string; text: string }

/** A server that gives files, and tells what it was sent. */
const counts = new Map<string, number>()
const server = createServer(async (request, response) => {
  const path = request.url!.split('?')[0]!
  const count = (counts.get(path) ?? 0) + 1
  counts.set(path, count)
  const got = await tell(request)
  if (path === '/report%20one.bin') response.setHeader('content-type', 'application/x-report').end(BYTES)
  else if (path === '/zip') {
    const headers = { 'content-encoding': 'gzip', 'content-disposition': 'attachment; filename="z.bin"' }
    response.writeHead(200, headers).end(gzipSync(BYTES))
  } else if (path === '/bomb') response.writeHead(200, { 'content-encoding': 'gzip' }).end(BOMB)
  else if (path === '/broken') response.writeHead(200, { 'content-encoding': 'gzip' }).end('no gzip')
  else if (path === '/half') {
    response.writeHead(200, { 'content-length': '2000' }).write('x'.repeat(1_000))
    setTimeout(() => response.destroy(), 50)
  } else if (path === '/missing') response.writeHead(404).end('nothing here')
  else if (path === '/none') response.writeHead(204).end()
  else if (path === '/moved') response.writeHead(307, { location: '/echo' }).end()
  else if (path === '/flaky' && count < 3) response.writeHead(503).end()
  else response.setHeader('content-type', 'application/json').end(JSON.stringify(got))
})
const BOMB = gzipSync(Buffer.alloc(70 * 1024 * 1024))
await once(server.listen(0, '127.0.0.1'), 'listening')
await keep(
  Promise.resolve({
    stop: async () => {
      server.closeAllConnections()
      server.close()
    },
  }),
)
const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

async function tell(request: IncomingMessage): Promise<Echo> {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part)
  const body = Buffer.concat(parts)
  const hash = createHash('sha256').update(body).digest('hex')
  const { 'content-type': type = '', 'content-length': length = '' } = request.headers
  return { type, length, bytes: body.length, hash, text: body.subarray(0, 2_000).toString('latin1') }
}

const start = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }
const get = (path = '/report%20one.bin', config: object = {}) => ({
  id: 'get',
  type: 'HTTP_REQUEST',
  config: { url: `${base}${path}`, responseType: 'file', ...config },
  retry: { maxAttempts: 1 },
})
const send = (config: object, more: object = {}) => ({
  id: 'send',
  type: 'HTTP_REQUEST',
  config: { url: `${base}/echo`, method: 'POST', ...config },
  ...more,
})
const graph = (nodes: object[], links: string[]) => ({
  nodes: [start, ...nodes] as never,
  edges: edges(...links),
})
const bodyOf = (run: Awaited<ReturnType<typeof host.run>>, id: string) =>
  (nodeOf(run, id).outputData as { body: unknown }).body

const download = async (executionId: string, { file }: Value) =>
  host.request(`/api/executions/${executionId}/files/${file.id}`, { as: host.admin })
const sha = async (response: Response) =>
  createHash('sha256')
    .update(Buffer.from(await response.arrayBuffer()))
    .digest('hex')

const countFiles = async () =>
  (await sql<{ n: number }>`select count(*) as n from stored_files where not removed`.execute(db)).rows[0]!.n
const countPieces = async () =>
  (await sql<{ n: number }>`select count(*) as n from file_pieces`.execute(db)).rows[0]!.n

test('a file that HTTP_REQUEST gets is sent on whole: as a body, and in a form', async () => {
  const form = { note: 'ünder', list: ['a', 1], more: { a: 1 }, none: null, f: '{{ $nodes.get.body }}' }
  const run = await host.run(
    graph(
      [
        get(),
        send({ bodyType: 'file', body: '{{ $nodes.get.body }}' }),
        { ...send({ bodyType: 'multipart', body: form }), id: 'form' },
      ],
      ['start -> get', 'get -> send', 'send -> form'],
    ),
  )
  expect(run.errorMessage).toBe(null)
  const value = bodyOf(run, 'get') as Value
  expect(value).toEqual({
    file: {
      id: expect.any(String),
      name: 'report one.bin',
      mimeType: 'application/x-report',
      bytes: 700_000,
    },
  })
  expect(await sha(await download(run.id, value))).toBe(HASH)
  expect(bodyOf(run, 'send')).toMatchObject({ type: 'application/x-report', length: '700000', hash: HASH })
  const sent = bodyOf(run, 'form') as Echo
  expect(Number(sent.length)).toBe(sent.bytes)
  const boundary = /^multipart\/form-data; boundary=([\w-]+)$/.exec(sent.type)![1]
  const field = (name: string, text: string) =>
    `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${text}\r\n`
  const head = [
    field('note', Buffer.from('ünder').toString('latin1')),
    field('list', 'a'),
    field('list', '1'),
    field('more', '{"a":1}'),
    `--${boundary}\r\nContent-Disposition: form-data; name="f"; filename="report one.bin"\r\n`,
    'Content-Type: application/x-report\r\n\r\n',
  ].join('')
  expect(sent.text.startsWith(head)).toBe(true)
  expect(sent.bytes).toBe(head.length + 700_000 + 2 + `--${boundary}--\r\n`.length)
  const requests = await host.ask<{
    content: { bodyBytes: number; body: null; response: { bodyBytes: number } }[]
  }>('GET', `/api/executions/${run.id}/nodes/${nodeOf(run, 'send').id}/requests`)
  expect(requests.content[0]).toMatchObject({ bodyBytes: 700_000, body: null })
})

test('a redirect and another attempt send the file from the beginning', async () => {
  const body = { bodyType: 'file', body: '{{ $nodes.get.body }}' }
  const retry = { retry: { maxAttempts: 3, initialIntervalMs: 1 } }
  const run = await host.run(
    graph(
      [
        get(),
        send({ ...body, url: `${base}/moved` }),
        { ...send({ ...body, url: `${base}/flaky` }, retry), id: 'again' },
      ],
      ['start -> get', 'get -> send', 'send -> again'],
    ),
  )
  expect(run.errorMessage).toBe(null)
  expect(bodyOf(run, 'send')).toMatchObject({ hash: HASH })
  expect(bodyOf(run, 'again')).toMatchObject({ hash: HASH })
  expect(nodeOf(run, 'again').retryCount).toBe(2)
})

test.each([
  ['/missing', {}, 'responded with 404: nothing here'],
  ['/bomb', {}, 'has more than 67108864 bytes'],
  ['/report%20one.bin', { maxBytes: 600_000 }, 'has more than 600000 bytes'],
  ['/broken', {}, 'not valid gzip'],
  ['/half', {}, 'connection closed before the response was complete'],
])('of an answer that is no whole file, %s %j, nothing is kept', async (path, config, message) => {
  const before = await countFiles()
  const run = await host.run(graph([get(path, config)], ['start -> get']))
  expect([run.status, run.errorMessage]).toEqual(['FAILED', expect.stringContaining(message)])
  expect(await countFiles()).toBe(before)
})

test('an answer is unpacked; one without a body is none', async () => {
  const nodes = [get('/zip'), { ...get('/none'), id: 'none' }]
  const run = await host.run(graph(nodes, ['start -> get', 'get -> none']))
  const value = bodyOf(run, 'get') as Value
  expect(value.file).toMatchObject({ name: 'z.bin', bytes: 700_000 })
  expect(await sha(await download(run.id, value))).toBe(HASH)
  expect(bodyOf(run, 'none')).toBe(null)
})

test('the file of another execution or team is none, wherever it is named', async () => {
  const { id, ...first } = await host.run(graph([get()], ['start -> get']))
  const { file } = bodyOf({ id, ...first }, 'get') as Value
  // Within a config, so that nobody has given it to the execution.
  const literal = { file: { ...file } }
  for (const config of [
    { bodyType: 'file', body: literal },
    { bodyType: 'multipart', body: { a: literal } },
    { bodyType: 'file', body: { file: { ...file, id: crypto.randomUUID() } } },
    { bodyType: 'file', body: { file: { ...file, id: "' or true --" } } },
    { bodyType: 'file', body: 'no file' },
  ]) {
    const run = await host.run(graph([send(config)], ['start -> send']))
    expect([run.status, run.errorMessage]).toEqual([
      'FAILED',
      expect.stringMatching(/none of this execution|is not a file/),
    ])
  }
  const respond = { id: 'send', type: 'RESPOND_TO_WEBHOOK', config: { as: 'file', body: literal } }
  expect(await host.run(graph([respond], ['start -> send']))).toMatchObject({
    status: 'FAILED',
    errorMessage: expect.stringContaining('none of this execution'),
  })
})

test('a start, a sub-workflow, a retry, a rerun and an error workflow share the files of before', async () => {
  const first = await host.run(graph([get()], ['start -> get']))
  const value = bodyOf(first, 'get') as Value
  const forward = send({ bodyType: 'file', body: '{{ $trigger.doc }}' })
  const started = await host.run(graph([forward], ['start -> send']), { doc: value })
  expect(bodyOf(started, 'send')).toMatchObject({ hash: HASH })

  const sub = { id: 'start', type: 'SUB_WORKFLOW_TRIGGER', config: {} }
  const made = { ...get('/zip'), id: 'made' }
  const child = await host.create({
    nodes: [sub, forward, made] as never,
    edges: edges('start -> send', 'send -> made'),
  })
  const call = {
    id: 'call',
    type: 'SUB_WORKFLOW',
    config: { workflowId: child, input: { doc: '{{ $nodes.get.body }}' } },
  }
  const on = send({ bodyType: 'file', body: '{{ $nodes.call.body }}' })
  const parent = await host.run(graph([get(), call, on], ['start -> get', 'get -> call', 'call -> send']))
  expect(parent.errorMessage).toBe(null)
  expect(bodyOf(parent, 'send')).toMatchObject({ hash: HASH })

  const errorWorkflow = await host.create({
    nodes: [{ id: 'oops', type: 'ERROR_TRIGGER', config: {} }] as never,
    edges: [],
  })
  const fail = { id: 'fail', type: 'STOP_AND_ERROR', config: { message: 'no' } }
  const failing = graph([get(), forward, fail], ['start -> get', 'get -> send', 'send -> fail'])
  const workflowId = await host.create({ ...failing, settings: { errorWorkflowId: errorWorkflow } as never })
  const failed = await host.ended(await host.execute(workflowId, { doc: value }))
  expect(failed.status).toBe('FAILED')
  const list = async (id: string) =>
    (await host.ask<{ content: { id: string }[] }>('GET', `/api/executions/${id}/files`)).content.map(
      (f) => f.id,
    )
  const both = [value.file.id, (bodyOf(failed, 'get') as Value).file.id].sort()
  expect((await list(failed.id)).sort()).toEqual(both)
  await expect
    .poll(
      async () => {
        const { content } = await host.ask<{ content: { id: string }[] }>(
          'GET',
          `/api/executions?workflowId=${errorWorkflow}`,
        )
        return content[0] ? (await list(content[0].id)).sort() : []
      },
      { timeout: 20_000 },
    )
    .toEqual(both)
  const retry = await host.ask<{ executionId: string }>('POST', `/api/executions/${failed.id}/retry`, {})
  await host.ended(retry.executionId)
  expect((await list(retry.executionId)).sort()).toEqual(both)
  const rerun = await host.ask<{ executionId: string }>('POST', `/api/executions/${failed.id}/rerun`, {})
  const again = await host.ended(rerun.executionId)
  expect(bodyOf(again, 'send')).toMatchObject({ hash: HASH })
  expect(await list(rerun.executionId)).toContain(value.file.id)
  expect(await list(rerun.executionId)).not.toContain((bodyOf(failed, 'get') as Value).file.id)
  const alone = await host.ask<{ executionId: string }>(
    'POST',
    `/api/workflows/${workflowId}/nodes/send/run`,
    {
      input: { doc: value },
    },
  )
  expect(bodyOf(await host.ended(alone.executionId), 'send')).toMatchObject({ hash: HASH })
})

test('files go with their execution, by every way, and their bytes with the last copy', async () => {
  // What the tests before have given up, but nobody has swept yet.
  await sweepFiles(host.store)
  const pieces = await countPieces()
  const files = await countFiles()
  const workflowId = await host.create(graph([get()], ['start -> get']))
  const first = await host.ended(await host.execute(workflowId))
  const value = bodyOf(first, 'get') as Value
  await host.ended(await host.execute(workflowId, { doc: value }))
  expect(await countFiles()).toBe(files + 2)
  await host.ask('DELETE', `/api/workflows/${workflowId}`)
  expect((await download(first.id, value)).status).toBe(404)
  expect(await countFiles()).toBe(files)
  await sweepFiles(host.store)
  expect(await countPieces()).toBe(pieces)

  const unkept = graph([get()], ['start -> get'])
  for (const saveData of [
    { inputs: true, outputs: false },
    { inputs: false, outputs: true },
  ]) {
    const id = await host.create({ ...unkept, settings: { saveData } as never })
    const run = await host.ended(await host.execute(id))
    expect(run.status).toBe('SUCCESS')
    expect(await countFiles()).toBe(files)
  }
  await sweepFiles(host.store)
  expect(await countPieces()).toBe(pieces)
})

test('a webhook is answered with a file, which stays until it is sent', async () => {
  const files = await countFiles()
  for (const keeps of [true, false]) {
    const hook = {
      id: 'hook',
      type: 'WEBHOOK_TRIGGER',
      config: { path: 'in', files: {}, responseMode: 'responseNode' },
    }
    const answer = {
      id: 'answer',
      type: 'RESPOND_TO_WEBHOOK',
      config: { as: 'file', body: '{{ $trigger.body }}', status: 201, headers: { 'X-Own': 'yes' } },
    }
    const settings = keeps ? {} : { settings: { saveData: { inputs: false, outputs: false } } as never }
    const id = await host.create({
      nodes: [hook, answer] as never,
      edges: edges('hook -> answer'),
      ...settings,
    })
    await host.ask('PUT', `/api/workflows/${id}`, { active: true })
    const response = await host.request(`/hooks/${id}/in`, {
      method: 'POST',
      body: BYTES,
      headers: { 'content-type': 'text/html', 'content-disposition': 'attachment; filename="a b.html"' },
    })
    expect(response.status).toBe(201)
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'text/html',
      'content-length': '700000',
      'content-disposition': `attachment; filename="a b.html"; filename*=UTF-8''a%20b.html`,
      'content-security-policy': expect.stringMatching(/^sandbox /),
      'x-content-type-options': 'nosniff',
      'x-own': 'yes',
    })
    expect(await sha(response)).toBe(HASH)
    await expect.poll(countFiles, { timeout: 10_000 }).toBe(files + 1)
  }
})
