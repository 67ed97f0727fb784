import type { IncomingMessage } from 'node:http'
import { afterEach, describe, expect, test } from 'vitest'
import { edges } from '../../support/engine/graphs.ts'
import { runWithFiles } from '../../support/files/withfiles.ts'
import { keep } from '../../support/keep.ts'
import { nodeOf, shareRunning } from '../../support/running.ts'
import { type Answer, startWorld } from '../../support/servers/world.ts'

const host = await keep(shareRunning())

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
  const kinds: Record<string, object> = {
    DISCORD_WEBHOOK: { webhookUrl: `${url}/api/webhooks/7/${TOKEN}` },
    MATTERMOST: { accessToken: TOKEN, baseUrl: base },
    WHATSAPP: { accessToken: TOKEN, baseUrl: base },
    TWILIO: { accountSid: 'AC1', authToken: TOKEN, baseUrl: base },
  }
  const data = kinds[type] ?? { botToken: TOKEN, baseUrl: base }
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

  test('a method gets them as fields of a form, by the names that they are given', async () => {
    const result = { message_id: 1, chat: { id: 5 } }
    const { asked, credentialId } = await vendor('TELEGRAM', {
      [`/bot${TOKEN}/sendPhoto`]: () => ({ json: { ok: true, result } }),
    })
    const body = { chat_id: 5, caption: 'Look', has_spoiler: true }
    const photo = { file: '{{ $input.files[0] }}', fileName: 'photo.png' }
    await sendFiles({ credentialId, operation: 'call', method: 'sendPhoto', body, files: { photo } })
    const form = await readForm(asked[0]!)
    expect(Object.fromEntries([...form].filter(([, value]) => typeof value === 'string'))).toEqual({
      chat_id: '5',
      caption: 'Look',
      has_spoiler: 'true',
    })
    expect((form.get('photo') as File).name).toBe('photo.png')
    expect(await (form.get('photo') as File).text()).toBe('the bytes of one')
  })

  test('WhatsApp gets one first, and then the message with its id', async () => {
    const { asked, credentialId } = await vendor('WHATSAPP', {
      '/7/media': () => ({ json: { id: 'media-1' } }),
      '/7/messages': () => ({ json: { contacts: [{ wa_id: '1' }], messages: [{ id: 'wamid.1' }] } }),
    })
    await sendFiles({ credentialId, from: '7', to: '1' }, given.slice(0, 1))
    const form = await readForm(asked[0]!)
    expect(form.get('messaging_product')).toBe('whatsapp')
    expect(await (form.get('file') as File).text()).toBe('the bytes of one')
    expect(asked[1]?.json).toEqual({
      messaging_product: 'whatsapp',
      to: '1',
      type: 'document',
      document: { caption: 'Look', filename: 'one.txt', id: 'media-1' },
    })
  })

  test('an upload to WhatsApp without an answer is made again: no message has named it', async () => {
    const { asked, credentialId } = await vendor('WHATSAPP', {
      '/7/media': (count) => (count === 1 ? 'hang up' : { json: { id: 'media-1' } }),
      '/7/messages': () => ({ json: { messages: [{ id: 'wamid.1' }] } }),
    })
    await sendFiles({ credentialId, from: '7', to: '1' }, given.slice(0, 1))
    expect(asked.map(({ path }) => path)).toEqual(['/7/media', '/7/media', '/7/messages'])
  })

  test('Slack takes one without a channel, with a title and another name', async () => {
    const { asked, credentialId } = await vendor('SLACK', {
      '/api/files.getUploadURLExternal': (_, url) => ({
        json: { ok: true, upload_url: `${url}/upload`, file_id: 'F1' },
      }),
      '/upload': () => ({ text: 'OK' }),
      '/api/files.completeUploadExternal': () => ({ json: { ok: true, files: [{ id: 'F1' }] } }),
    })
    const files = [{ file: '{{ $input.files[0] }}', fileName: 'plan.txt' }]
    await sendFiles({ credentialId, files, text: '', options: { title: 'The plan' } })
    expect(asked[0]?.body).toBe('filename=plan.txt&length=16')
    expect(asked.at(-1)?.json).toEqual({ files: [{ id: 'F1', title: 'The plan' }], initial_comment: '' })
  })

  test.each([
    ['TELEGRAM', { operation: 'call', method: 'sendPhoto' }, 'files must be an object whose keys'],
    ['TELEGRAM', { operation: 'call', method: 'sendPhoto', files: { photo: 'no' } }, 'files.photo must be a'],
    [
      'SLACK',
      { operation: 'call', method: 'a.b', files: { f: '{{ $input.files[0] }}' } },
      'files must not be',
    ],
    [
      'SLACK',
      { to: 'C1', files: [{ file: '{{ $input.files[0] }}', fileName: 'a\nb' }] },
      'files[0].fileName',
    ],
    ['WHATSAPP', { from: '7', to: '1' }, 'files must have at most 1 files for WhatsApp'],
  ])('%s with %j says what is wrong, and asks nothing', async (type, config, why) => {
    const { asked, credentialId } = await vendor(type, {})
    const all = { credentialId, files: '{{ $input.files }}', ...config }
    const run = await runWithFiles(host, { type: 'CHAT_MESSAGE', config: all }, given)
    const { status, errorMessage } = nodeOf(run, 'node')
    expect(status).toBe('FAILED')
    expect(errorMessage).toContain(why)
    expect(asked).toEqual([])
  })

  function readForm({ request, body }: Asked): Promise<FormData> {
    const headers = { 'content-type': request.headers['content-type'] ?? '' }
    return new Response(body, { headers }).formData()
  }
})

describe('downloads', () => {
  const bot = `/bot${TOKEN}`
  const found = (path: string) => () => ({ json: { ok: true, result: { file_id: 'F', file_path: path } } })
  const config = { operation: 'download', file: 'F' }

  test('Telegram gives a file, which is one of the execution, also after an attempt that failed', async () => {
    const { asked, credentialId } = await vendor('TELEGRAM', {
      [`${bot}/getFile`]: found('voice/file_1.oga'),
      [`/file${bot}/voice/file_1.oga`]: (count) =>
        count === 1 ? { status: 500, json: {} } : { headers: { 'content-type': 'x/y' }, text: 'the bytes' },
    })
    const sent = await send({ credentialId, ...config })
    expect(sent).toMatchObject({ status: 'SUCCESS', retries: 1 })
    expect(sent.output).toEqual({
      file: { file: { id: expect.any(String), name: 'file_1.oga', mimeType: 'audio/ogg', bytes: 9 } },
      response: { file_id: 'F', file_path: 'voice/file_1.oga' },
    })
    expect(asked.map(({ path }) => path)).toEqual([
      `${bot}/getFile`,
      `/file${bot}/voice/file_1.oga`,
      `${bot}/getFile`,
      `/file${bot}/voice/file_1.oga`,
    ])
    expect(asked[0]?.json).toEqual({ file_id: 'F' })
  })

  test.each([
    ['../getMe', 'something that cannot be read'],
    ['a/../../getMe', 'something that cannot be read'],
    ['a?x', 'something that cannot be read'],
  ])('a path that leads elsewhere is not asked for: %s', async (path, why) => {
    const { credentialId } = await vendor('TELEGRAM', { [`${bot}/getFile`]: found(path) })
    const sent = await send({ credentialId, ...config }, { retry: { maxAttempts: 1 } })
    expect(sent).toMatchObject({ status: 'FAILED', error: expect.stringContaining(why) })
  })

  test('a file that is gone is final, and other vendors have nothing like it', async () => {
    const { credentialId } = await vendor('TELEGRAM', {
      [`${bot}/getFile`]: found('a.txt'),
      [`/file${bot}/a.txt`]: () => ({ status: 404, json: {} }),
    })
    const gone = await send({ credentialId, ...config })
    expect(gone).toMatchObject({ status: 'FAILED', retries: 0 })
    expect(gone.error).toContain('Telegram responded with 404 to the download')
    const slack = await vendor('SLACK', {})
    const none = await send({ credentialId: slack.credentialId, ...config })
    expect(none.error).toContain('operation must not be download: Slack has nothing like it')
  })
})

describe('further operations', () => {
  const bot = `/bot${TOKEN}`
  const ok = { json: { ok: true, result: true } }

  test.each([
    [
      'TELEGRAM',
      { operation: 'edit', to: 5, message: 42, text: 'New' },
      `${bot}/editMessageText`,
      { json: { ok: true, result: { message_id: 42, chat: { id: 5 } } } },
      { chat_id: '5', message_id: 42, text: 'New' },
    ],
    [
      'TELEGRAM',
      { operation: 'react', to: 5, message: 42, reaction: '👍' },
      `${bot}/setMessageReaction`,
      ok,
      { chat_id: '5', message_id: 42, reaction: [{ type: 'emoji', emoji: '👍' }] },
    ],
    [
      'TELEGRAM',
      { operation: 'action', to: 5 },
      `${bot}/sendChatAction`,
      ok,
      { chat_id: '5', action: 'typing' },
    ],
    [
      'SLACK',
      { operation: 'edit', to: 'C1', message: '17.1', text: 'New' },
      '/api/chat.update',
      { json: { ok: true, channel: 'C1', ts: '17.1' } },
      { channel: 'C1', ts: '17.1', text: 'New' },
    ],
    [
      'SLACK',
      { operation: 'react', to: 'C1', message: '17.1', reaction: ':eyes:', remove: true },
      '/api/reactions.remove',
      { json: { ok: true } },
      { channel: 'C1', timestamp: '17.1', name: 'eyes' },
    ],
    [
      'DISCORD',
      { operation: 'edit', to: '77', message: '99', text: 'New' },
      '/channels/77/messages/99',
      { json: { id: '99', channel_id: '77' } },
      { content: 'New', allowed_mentions: { parse: ['users', 'roles'] } },
    ],
    [
      'MATTERMOST',
      { operation: 'edit', message: 'abc', text: 'New' },
      '/api/v4/posts/abc/patch',
      { json: { id: 'abc', channel_id: 'c' } },
      { message: 'New' },
    ],
  ] as [string, object, string, Reply, object][])(
    '%s %j is made again after no answer, and what it says then counts',
    async (type, config, path, reply, sent) => {
      const { asked, credentialId } = await vendor(type, {
        [path]: (count) => (count === 1 ? 'hang up' : reply),
      })
      expect(await send({ credentialId, ...config })).toMatchObject({ status: 'SUCCESS', retries: 1 })
      expect(asked.map(({ json }) => json)).toEqual([sent, sent])
    },
  )

  test.each([
    ['TELEGRAM', 5, 42, `${bot}/deleteMessage`, 400, 'Bad Request: message to delete not found'],
    ['SLACK', 'C1', '17.1', '/api/chat.delete', 200, 'message_not_found'],
    ['DISCORD', '77', '99', '/channels/77/messages/99', 404, 'Unknown Message'],
    ['MATTERMOST', 'c', 'abc', '/api/v4/posts/abc', 404, 'not found'],
  ] as const)(
    'what %s cannot find any more was deleted by an attempt without an answer, and by no other',
    async (type, to, message, path, status, said) => {
      const gone = {
        status,
        json: { ok: false, error: said, error_code: status, description: said, message: said },
      }
      const first = await vendor(type, { [path]: (count) => (count === 1 ? 'hang up' : gone) })
      const done = await send({ credentialId: first.credentialId, operation: 'delete', to, message })
      expect(done).toMatchObject({ status: 'SUCCESS', retries: 1, output: { messageId: String(message) } })
      const second = await vendor(type, { [path]: () => gone })
      const refused = await send({ credentialId: second.credentialId, operation: 'delete', to, message })
      expect(refused).toMatchObject({ status: 'FAILED', retries: 0 })
      expect(refused.error).toContain(said)
    },
  )

  test("a vendor's own method is called once, unless it only reads", async () => {
    const { asked, credentialId } = await vendor('TELEGRAM', {
      [`${bot}/pinChatMessage`]: () => 'hang up',
      [`${bot}/getChat`]: (count) =>
        count === 1 ? { status: 500 } : { json: { ok: true, result: { id: 5 } } },
    })
    const call = { credentialId, operation: 'call' }
    const body = { chat_id: '{{ $input.name }}', message_id: 1 }
    const pinned = await send({ ...call, method: 'pinChatMessage', body })
    expect(pinned).toMatchObject({ status: 'FAILED', retries: 0 })
    expect(pinned.error).toMatch(/^The request may have been sent, but no answer came/)
    expect(asked.map(({ json }) => json)).toEqual([{ chat_id: 'Ada', message_id: 1 }])
    const read = await send({ ...call, method: 'getChat', body: { chat_id: 5 }, output: 'answer' })
    expect(read).toMatchObject({ status: 'SUCCESS', retries: 1, output: { ok: true, result: { id: 5 } } })
  })

  test('Slack is asked by forms for what it only reads', async () => {
    const { asked, credentialId } = await vendor('SLACK', {
      '/api/conversations.history': () => ({ json: { ok: true, messages: [] } }),
    })
    const body = { channel: 'C1', limit: 5 }
    const config = { credentialId, operation: 'call', method: 'conversations.history', body }
    expect(await send(config)).toMatchObject({ status: 'SUCCESS' })
    expect(asked[0]?.body).toBe('channel=C1&limit=5')
  })

  test.each([
    ['TELEGRAM', { method: '../getMe' }, 'method must be a method of Telegram'],
    ['SLACK', { method: 'chat/postMessage' }, 'method must be a method of Slack'],
    ['DISCORD', { method: 'GET ../../x' }, 'method must be one of GET'],
    ['TWILIO', { method: 'Messages.json' }, 'method must be one of GET'],
  ])('%s has no method %j', async (type, config, message) => {
    const { asked, credentialId } = await vendor(type, {})
    const sent = await send({ credentialId, operation: 'call', ...config })
    expect(sent).toMatchObject({ status: 'FAILED', retries: 0 })
    expect(sent.error).toContain(message)
    expect(asked).toEqual([])
  })

  test('buttons are written as each vendor has them', async () => {
    const buttons = [
      { text: 'Open', url: 'https://example.com' },
      { text: 'Yes', value: 'y-{{ $input.name }}' },
    ]
    const post = { text: 'Well?', buttons }
    const telegram = await vendor('TELEGRAM', { [`${bot}/sendMessage`]: () => ok })
    await send({ credentialId: telegram.credentialId, to: 5, ...post })
    expect(telegram.asked[0]?.json.reply_markup).toEqual({
      inline_keyboard: [
        [
          { text: 'Open', url: 'https://example.com' },
          { text: 'Yes', callback_data: 'y-Ada' },
        ],
      ],
    })
    const slack = await vendor('SLACK', { '/api/chat.postMessage': () => POSTED })
    await send({ credentialId: slack.credentialId, to: 'C1', ...post })
    expect(slack.asked[0]?.json.blocks).toMatchObject([
      { type: 'section', text: { type: 'mrkdwn', text: 'Well?' } },
      { type: 'actions', elements: [{ url: 'https://example.com' }, { value: 'y-Ada' }] },
    ])
    const discord = await vendor('DISCORD', {
      '/channels/77/messages': () => ({ json: { id: '1', channel_id: '77' } }),
    })
    await send({ credentialId: discord.credentialId, to: '77', ...post })
    expect(discord.asked[0]?.json.components).toMatchObject([
      {
        type: 1,
        components: [
          { style: 5, label: 'Open' },
          { style: 2, custom_id: 'y-Ada' },
        ],
      },
    ])
    const mattermost = await vendor('MATTERMOST', {})
    const none = await send({ credentialId: mattermost.credentialId, to: 'c', ...post })
    expect(none.error).toContain('buttons must not be there: Mattermost has none')
  })
})

describe('further vendors', () => {
  const hook = `/api/webhooks/7/${TOKEN}`

  test.each([
    [
      'DISCORD_WEBHOOK',
      { text: 'Hello' },
      hook,
      { id: '99', channel_id: '77' },
      { content: 'Hello', allowed_mentions: { parse: ['users', 'roles'] } },
      { messageId: '99', to: '77' },
    ],
    [
      'MATTERMOST',
      { to: 'c1', text: 'Hello', thread: 'root' },
      '/api/v4/posts',
      { id: 'p1', channel_id: 'c1' },
      { channel_id: 'c1', message: 'Hello', root_id: 'root' },
      { messageId: 'p1', to: 'c1' },
    ],
    [
      'WHATSAPP',
      { from: '123', to: '15551234567', text: 'Hello', buttons: [{ text: 'Yes' }] },
      '/123/messages',
      { messages: [{ id: 'wamid.1' }], contacts: [{ wa_id: '15551234567' }] },
      {
        messaging_product: 'whatsapp',
        to: '15551234567',
        type: 'interactive',
        interactive: {
          type: 'button',
          body: { text: 'Hello' },
          action: { buttons: [{ type: 'reply', reply: { id: 'Yes', title: 'Yes' } }] },
        },
      },
      { messageId: 'wamid.1', to: '15551234567' },
    ],
  ] as [string, object, string, object, object, object][])(
    '%s takes a message, and waits as it is told; one without an answer is not sent again',
    async (type, config, path, answer, sent, output) => {
      const busy = { status: 429, headers: { 'retry-after': '0' }, json: {} }
      const { asked, credentialId } = await vendor(type, {
        [path]: (count) => (count === 1 ? busy : count === 2 ? { json: answer } : 'hang up'),
      })
      expect(await send({ credentialId, ...config })).toMatchObject({ status: 'SUCCESS', retries: 1, output })
      expect(asked.map(({ json }) => json)).toEqual([sent, sent])
      const lost = await send({ credentialId, ...config })
      expect(lost).toMatchObject({ status: 'FAILED', retries: 0 })
      expect(lost.error).toMatch(/^The message may have been sent, but no answer came/)
      expect(asked).toHaveLength(3)
      if (type !== 'DISCORD_WEBHOOK') expect(asked[0]?.request.headers.authorization).toBe(`Bearer ${TOKEN}`)
    },
  )

  test('Twilio gets a form, signed in with the account, and marks both numbers of WhatsApp', async () => {
    const { asked, credentialId } = await vendor('TWILIO', {
      '/Accounts/AC1/Messages.json': () => ({ json: { sid: 'SM1', to: 'whatsapp:+2' } }),
    })
    const sent = await send({ credentialId, from: 'whatsapp:+1', to: '+2', text: 'Hi & bye' })
    expect(sent).toMatchObject({ status: 'SUCCESS', output: { messageId: 'SM1', to: 'whatsapp:+2' } })
    const form = new URLSearchParams(asked[0]?.body)
    expect(Object.fromEntries(form)).toEqual({ To: 'whatsapp:+2', From: 'whatsapp:+1', Body: 'Hi & bye' })
    const pair = Buffer.from(`AC1:${TOKEN}`).toString('base64')
    expect(asked[0]?.request.headers.authorization).toBe(`Basic ${pair}`)
  })

  test('the token of a webhook is in nothing that is told of it', async () => {
    const { credentialId } = await vendor('DISCORD_WEBHOOK', {
      [hook]: () => ({ status: 404, json: { message: `Unknown Webhook ${TOKEN}` } }),
    })
    const sent = await send({ credentialId, text: 'Hello' })
    expect(sent).toMatchObject({ status: 'FAILED', retries: 0 })
    expect(sent.error).toContain('Discord responded with 404: Unknown Webhook')
  })

  test('an operation that a vendor does not have is refused', async () => {
    const { asked, credentialId } = await vendor('WHATSAPP', {})
    const sent = await send({ credentialId, operation: 'edit', to: '1', message: 'm', text: 't' })
    expect(sent.error).toContain('operation must not be edit: WhatsApp has nothing like it')
    expect(asked).toEqual([])
  })
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
