import type { IncomingMessage } from 'node:http'
import { afterEach, describe, expect, test } from 'vitest'
import { edges } from '../../support/engine/graphs.ts'
import { runWithFiles } from '../../support/files/withfiles.ts'
import { keep } from '../../support/keep.ts'
import { nodeOf, startRunning } from '../../support/running.ts'
import { type Answer, startWorld } from '../../support/servers/world.ts'

const host = await keep(startRunning())

const open: { stop(): Promise<unknown> }[] = []
afterEach(async () => {
  for (const one of open.splice(0)) await one.stop()
})

type Asked = { path: string; request: IncomingMessage; body: string; json: Record<string, unknown> }
type Reply = { status?: number; headers?: Record<string, string>; json?: unknown; text?: string } | 'hang up'

const TOKEN = 'xoxb-1234567890-canary'
let numbers = 0

/** A vendor's server that replies to each path as `replies` says, and a credential for it. */
async function vendor(type: string, replies: Record<string, (count: number, url: string) => Reply>) {
  const asked: Asked[] = []
  let url = ''
  const answers = Object.entries(replies).map(([path, reply]): [string, Answer] => [
    path,
    ({ request, response, body, count }) => {
      asked.push({ path, request, body, json: body.startsWith('{') ? JSON.parse(body) : {} })
      const said = reply(count, url)
      if (said === 'hang up') return request.socket.destroy()
      const { status = 200, headers = {}, json, text } = said
      response
        .writeHead(status, { 'content-type': 'application/json', ...headers })
        .end(text ?? JSON.stringify(json))
    },
  ])
  const world = await startWorld(Object.fromEntries(answers))
  open.push(world)
  url = world.url
  const base = type === 'SLACK' ? `${url}/api` : url
  const data = { botToken: TOKEN, baseUrl: base }
  const body = { teamId: host.teamId, name: `chat ${++numbers}`, type, data }
  const { id } = await host.ask<{ id: string }>('POST', '/api/credentials', body)
  return { asked, credentialId: id, url }
}

type Sent = {
  status: string
  error: string
  output: Record<string, unknown>
  retries: number
  tookMs: number
}

async function send(config: object, more: object = {}): Promise<Sent> {
  const graph = {
    nodes: [
      { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
      {
        id: 'chat',
        type: 'CHAT_MESSAGE',
        retry: { maxAttempts: 3, initialIntervalMs: 10, maxIntervalMs: 10 },
        config,
        ...more,
      },
    ],
    edges: edges('start -> chat'),
  }
  const id = await host.execute(await host.create(graph as never), { name: 'Ada' } as never)
  const { status, errorMessage, outputData, retryCount, durationMs } = nodeOf(await host.ended(id), 'chat')
  expect(JSON.stringify({ errorMessage, outputData })).not.toContain(TOKEN)
  return {
    status,
    error: errorMessage ?? '',
    output: outputData as Record<string, unknown>,
    retries: retryCount,
    tookMs: durationMs ?? 0,
  }
}

const POSTED = { json: { ok: true, channel: 'C1', ts: '17.0001', message: { text: 'Hello Ada' } } }

describe('Slack', () => {
  test('posts a message, in a thread and with blocks, in the name of the bot', async () => {
    const { asked, credentialId } = await vendor('SLACK', { '/api/chat.postMessage': () => POSTED })
    const blocks = [{ type: 'divider' }]
    const sent = await send({
      credentialId,
      to: '#general',
      text: 'Hello {{ $input.name }}',
      thread: '16.0001',
      options: { blocks },
    })
    expect(sent).toMatchObject({ status: 'SUCCESS', output: { messageId: '17.0001', to: 'C1' } })
    expect(asked).toHaveLength(1)
    expect(asked[0]?.request.headers.authorization).toBe(`Bearer ${TOKEN}`)
    expect(asked[0]?.json).toMatchObject({
      channel: '#general',
      text: 'Hello Ada',
      thread_ts: '16.0001',
      blocks,
    })
  })

  test('says no with 200: an expired token is final, too many requests come again when it says so', async () => {
    const expired = await vendor('SLACK', {
      '/api/chat.postMessage': () => ({ json: { ok: false, error: 'token_expired' } }),
    })
    const refused = await send({ credentialId: expired.credentialId, to: 'C1', text: 't' })
    expect(refused).toMatchObject({ status: 'FAILED', retries: 0 })
    expect(refused.error).toBe('Slack refused chat.postMessage: token_expired')

    const busy = await vendor('SLACK', {
      '/api/chat.postMessage': (count) => {
        if (count === 1) return { status: 429, headers: { 'retry-after': '1' }, json: { ok: false } }
        if (count === 2) return { headers: { 'retry-after': '1' }, json: { ok: false, error: 'ratelimited' } }
        return POSTED
      },
    })
    const sent = await send({ credentialId: busy.credentialId, to: 'C1', text: 't' })
    expect(sent).toMatchObject({ status: 'SUCCESS', retries: 2 })
    expect(sent.tookMs).toBeGreaterThanOrEqual(2_000)
  })

  test.each([
    ['no answer', () => 'hang up' as const],
    ['a 503', () => ({ status: 503, json: {} })],
    ['a fatal error', () => ({ json: { ok: false, error: 'fatal_error' } })],
    ['no JSON', () => ({ text: '<html>' })],
  ])(
    'after %s it may have been sent: no attempt sends it again, unless the node says repeat',
    async (_, first) => {
      const { asked, credentialId } = await vendor('SLACK', { '/api/chat.postMessage': first })
      const sent = await send({ credentialId, to: 'C1', text: 't' })
      expect(sent).toMatchObject({ status: 'FAILED', retries: 0 })
      expect(sent.error).toMatch(/^The message may have been sent, but no answer came/)
      expect(asked).toHaveLength(1)
    },
  )

  test('with repeat it is sent again', async () => {
    const { asked, credentialId } = await vendor('SLACK', {
      '/api/chat.postMessage': (count) => (count === 1 ? 'hang up' : POSTED),
    })
    const sent = await send({ credentialId, to: 'C1', text: 't', repeat: true })
    expect(sent).toMatchObject({ status: 'SUCCESS', retries: 1 })
    expect(new Set(asked.map(({ json }) => json.client_msg_id)).size).toBe(1)
  })
})

describe('Telegram', () => {
  const path = `/bot${TOKEN}/sendMessage`
  const result = { message_id: 42, chat: { id: -100 }, text: 'Hello' }

  test('sends a message to a chat', async () => {
    const { asked, credentialId } = await vendor('TELEGRAM', {
      [path]: () => ({ json: { ok: true, result } }),
    })
    const sent = await send({ credentialId, to: -100, text: '<b>Hello</b>', format: 'html', replyTo: 7 })
    expect(sent).toMatchObject({
      status: 'SUCCESS',
      output: { messageId: '42', to: '-100', response: result },
    })
    expect(asked[0]?.json).toEqual({
      chat_id: '-100',
      text: '<b>Hello</b>',
      parse_mode: 'HTML',
      reply_parameters: { message_id: 7 },
    })
  })

  test('waits as long as `retry_after` says, and gives up for what is refused', async () => {
    const { credentialId } = await vendor('TELEGRAM', {
      [path]: (count) =>
        count === 1
          ? {
              status: 429,
              json: {
                ok: false,
                error_code: 429,
                description: 'Too Many Requests: retry after 1',
                parameters: { retry_after: 1 },
              },
            }
          : { status: 400, json: { ok: false, error_code: 400, description: 'Bad Request: chat not found' } },
    })
    const sent = await send({ credentialId, to: 'nobody', text: 't' })
    expect(sent).toMatchObject({ status: 'FAILED', retries: 1 })
    expect(sent.error).toBe('Telegram responded with 400: Bad Request: chat not found')
    expect(sent.tookMs).toBeGreaterThanOrEqual(1_000)
  })

  test('an answer that never came is not asked for again', async () => {
    const { asked, credentialId } = await vendor('TELEGRAM', { [path]: () => 'hang up' })
    expect(await send({ credentialId, to: 1, text: 't' })).toMatchObject({ status: 'FAILED', retries: 0 })
    expect(asked).toHaveLength(1)
  })
})

describe('Discord', () => {
  const path = '/channels/77/messages'
  const posted = { json: { id: '99', channel_id: '77', content: 'Hello' } }

  test('recognises what is sent again, so an answer that never came is asked for again', async () => {
    const { asked, credentialId } = await vendor('DISCORD', {
      [path]: (count) => {
        if (count === 1) return 'hang up'
        return count === 2 ? { status: 429, json: { message: 'slow', retry_after: 0.2 } } : posted
      },
    })
    const sent = await send({ credentialId, to: '77', text: 'Hello', replyTo: '98' })
    expect(sent).toMatchObject({ status: 'SUCCESS', retries: 2, output: { messageId: '99', to: '77' } })
    expect(asked[0]?.request.headers.authorization).toBe(`Bot ${TOKEN}`)
    expect(asked[0]?.json).toMatchObject({
      content: 'Hello',
      enforce_nonce: true,
      message_reference: { message_id: '98' },
      allowed_mentions: { parse: ['users', 'roles'] },
    })
    const nonces = new Set(asked.map(({ json }) => json.nonce))
    expect([...nonces]).toEqual([expect.stringMatching(/^[0-9a-f]{25}$/)])
  })
})

describe('files', () => {
  const given = ['one', 'two'].map((word) => ({
    name: `${word}.txt`,
    mimeType: 'text/plain',
    bytes: Buffer.from(`the bytes of ${word}`),
  }))

  async function sendFiles(config: object, files = given) {
    const all = { text: 'Look', files: '{{ $input.files }}', ...config }
    const run = await runWithFiles(host, { type: 'CHAT_MESSAGE', config: all }, files)
    expect(nodeOf(run, 'node')).toMatchObject({ status: 'SUCCESS', errorMessage: null })
  }

  test('Slack gets them one by one, without the token, and shares them at once', async () => {
    const { asked, credentialId } = await vendor('SLACK', {
      '/api/files.getUploadURLExternal': (count, url) => ({
        json: { ok: true, upload_url: `${url}/upload/v1/F${count}?x=1`, file_id: `F${count}` },
      }),
      '/upload/v1/F1': () => ({ text: 'OK - 16' }),
      '/upload/v1/F2': () => ({ text: 'OK - 16' }),
      '/api/files.completeUploadExternal': () => ({
        json: { ok: true, files: [{ id: 'F1' }, { id: 'F2' }] },
      }),
    })
    await sendFiles({ credentialId, to: 'C1', thread: '16.0001' })
    const uploads = asked.filter(({ path }) => path.startsWith('/upload'))
    expect(uploads.map(({ body }) => body)).toEqual(['the bytes of one', 'the bytes of two'])
    expect(uploads.map(({ request }) => request.headers.authorization)).toEqual([undefined, undefined])
    expect(asked[0]?.body).toBe('filename=one.txt&length=16')
    expect(asked.at(-1)?.json).toEqual({
      files: [
        { id: 'F1', title: 'one.txt' },
        { id: 'F2', title: 'two.txt' },
      ],
      channel_id: 'C1',
      initial_comment: 'Look',
      thread_ts: '16.0001',
    })
  })

  test('an upload that Slack sends elsewhere is not made', async () => {
    const other = await vendor('SLACK', { '/upload': () => ({ text: 'OK' }) })
    const { credentialId } = await vendor('SLACK', {
      '/api/files.getUploadURLExternal': () => ({
        json: { ok: true, upload_url: `${other.url}/upload`, file_id: 'F1' },
      }),
    })
    const all = { credentialId, to: 'C1', files: '{{ $input.files }}' }
    const run = await runWithFiles(host, { type: 'CHAT_MESSAGE', config: all }, given)
    expect(nodeOf(run, 'node')).toMatchObject({
      status: 'FAILED',
      errorMessage: expect.stringContaining('the credential must not be sent to'),
    })
    expect(other.asked).toEqual([])
  })

  test('Telegram gets one as a document, and several as a group', async () => {
    const result = { message_id: 1, chat: { id: 5 } }
    const { asked, credentialId } = await vendor('TELEGRAM', {
      [`/bot${TOKEN}/sendDocument`]: () => ({ json: { ok: true, result } }),
      [`/bot${TOKEN}/sendMediaGroup`]: () => ({ json: { ok: true, result: [result, result] } }),
    })
    await sendFiles({ credentialId, to: 5 }, given.slice(0, 1))
    await sendFiles({ credentialId, to: 5 })
    const [one, many] = await Promise.all(asked.map(readForm))
    expect(one!.get('caption')).toBe('Look')
    expect(await (one!.get('document') as File).text()).toBe('the bytes of one')
    expect(JSON.parse(String(many?.get('media')))).toEqual([
      { type: 'document', media: 'attach://file0' },
      { type: 'document', media: 'attach://file1', caption: 'Look' },
    ])
    expect((many!.get('file1') as File).name).toBe('two.txt')
  })

  test('Discord gets them with the message', async () => {
    const { asked, credentialId } = await vendor('DISCORD', {
      '/channels/77/messages': () => ({ json: { id: '99', channel_id: '77' } }),
    })
    await sendFiles({ credentialId, to: '77' })
    const form = await readForm(asked[0]!)
    expect(JSON.parse(String(form.get('payload_json')))).toMatchObject({
      content: 'Look',
      enforce_nonce: true,
    })
    expect(await (form.get('files[1]') as File).text()).toBe('the bytes of two')
  })

  function readForm({ request, body }: Asked): Promise<FormData> {
    const headers = { 'content-type': request.headers['content-type'] ?? '' }
    return new Response(body, { headers }).formData()
  }
})

describe('what a message may not have', () => {
  test.each([
    [
      'DISCORD',
      { to: '77', text: '{{ $string($pad("x", 2001)) }}' },
      'text must have at most 2000 characters',
    ],
    ['DISCORD', { to: '../../users/@me', text: 't' }, 'to must be the id of a channel: digits'],
    ['DISCORD', { to: '77', text: 't', format: 'html' }, 'format must be markdown for Discord'],
    [
      'TELEGRAM',
      { to: 1, text: '{{ $pad("x", 4097) }}' },
      'text must have at most 4096 characters for Telegram',
    ],
    ['SLACK', { to: 'C1', text: '{{ $input.nothing }}' }, 'text must have a value'],
    ['SLACK', { to: '{{ $input.nothing }}', text: 't' }, 'to must be the id of a channel'],
    ['SLACK', { to: 'C1', text: 't', options: { token: 'x' } }, 'options.token is set by the node itself'],
    ['SLACK', { to: 'C1', files: '{{ $input.name }}' }, 'files must be a file'],
  ])('%s %j', async (type, config, message) => {
    const { asked, credentialId } = await vendor(type, {})
    const sent = await send({ credentialId, ...config })
    expect(sent).toMatchObject({ status: 'FAILED', retries: 0 })
    expect(sent.error).toContain(message)
    expect(asked).toEqual([])
  })
})

test('an execution that does not keep its outputs keeps no note of what it has sent either', async () => {
  const { credentialId } = await vendor('TELEGRAM', {
    [`/bot${TOKEN}/sendMessage`]: () => ({ json: { ok: true, result: { message_id: 7 } } }),
  })
  const nodes = [
    { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
    { id: 'chat', type: 'CHAT_MESSAGE', config: { credentialId, to: '1', text: 'Hi' } },
  ]
  const countNotes = async (outputs: boolean) => {
    const settings = { saveData: { inputs: true, outputs } }
    const graph = { nodes, edges: edges('start -> chat'), settings }
    const run = await host.ended(await host.execute(await host.create(graph as never)))
    expect(run.status).toBe('SUCCESS')
    const rows = host.store.db.selectFrom('messageNotes').select('state').where('executionId', '=', run.id)
    return (await rows.execute()).length
  }
  expect(await countNotes(true)).toBe(1)
  expect(await countNotes(false)).toBe(0)
})
