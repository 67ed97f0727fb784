import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createKeepers } from '../support/connectors/keepers.ts'
import { type ReceivedMail, startMailbox } from '../support/servers/mailbox.ts'
import { describeSent, giveFile } from './files.ts'
import { askModel, readAsking } from './model.ts'
import { type SqlStand, startSqlStand } from './sqlstand.ts'
import { answerVendor, readVendorAsking, type VendorAsking } from './vendors/vendors.ts'

export type Answer = {
  status?: number
  headers?: Record<string, string>
  json?: unknown
  text?: string
  bytes?: Uint8Array
}
export type Asked = {
  path: string
  query: URLSearchParams
  method: string
  headers: Record<string, unknown>
  body: string
  raw: Buffer
  type: string
}

const LAST_PAGE = 3
const THINGS = [
  { id: 1, name: 'One', tags: ['a'] },
  { id: 2, name: 'Two', tags: [] },
  { id: 3, name: 'Three', tags: ['b', 'c'] },
]

export type Mock = Awaited<ReturnType<typeof startMock>>

/** What a request to the model or to a vendor of messages had, or a mail. */
export type Asking = ReturnType<typeof readAsking> | VendorAsking

/** Starts the loopback server that the cases call as `http://mock.test`. It keeps only what its model was asked. */
export async function startMock() {
  const askings = new Map<string, Asking[]>()
  let sql: Promise<SqlStand> | undefined
  const mailbox = await startMailbox()
  const keepers = createKeepers()
  const note = (name: string | undefined, asking: Asking) => {
    if (name !== undefined) askings.set(name, [...(askings.get(name) ?? []), asking])
  }
  const server = createServer(async (request, response) => {
    const url = new URL(request.url ?? '/', 'http://mock.test')
    const chunks: Buffer[] = []
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
    const own = `http://${request.headers.host}`
    if (url.pathname === '/v1/chat/completions') {
      const asking = readAsking(JSON.parse(Buffer.concat(chunks).toString()))
      note(asking.model, asking)
    }
    const body = Buffer.concat(chunks)
    const asked: Asked = {
      path: url.pathname,
      query: url.searchParams,
      method: request.method ?? 'GET',
      headers: pick(request),
      body: body.toString(),
      raw: body,
      type: request.headers['content-type'] ?? '',
    }
    const kept = keepers.answer(asked)
    if (!kept && url.pathname.startsWith('/vendors/')) {
      const { name, asking } = await readVendorAsking(asked)
      note(name, asking)
    }
    const { status = 200, headers, json, text, bytes } = kept ?? (await find(asked, own))
    const type = json === undefined ? 'text/plain; charset=utf-8' : 'application/json; charset=utf-8'
    const sent = bytes ?? (json === undefined ? text : JSON.stringify(json))
    // The same headers for every client, whether it would keep the connection or not.
    const length = status === 204 ? {} : { 'content-length': Buffer.byteLength(sent ?? '') }
    response.writeHead(status, { 'content-type': type, connection: 'close', ...length, ...headers })
    response.end(sent)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    /** Takes what the model, the vendors and the mail server were asked by a case since the last time. */
    takeAskings(name: string): Asking[] {
      const taken = askings.get(name) ?? []
      askings.delete(name)
      const mails = mailbox.mails.filter(({ headers, text }) => `${headers}${text}`.includes(`${name}.`))
      for (const mail of mails) mailbox.mails.splice(mailbox.mails.indexOf(mail), 1)
      return [...taken, ...keepers.take(name), ...mails.map(describeMail)]
    },
    mailPort: mailbox.port,
    /** The databases of the cases that work with some, which are started for the first of them. */
    openSql(): Promise<SqlStand> {
      sql ??= startSqlStand()
      return sql
    },
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async stop(): Promise<void> {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      await mailbox.stop()
      await (await sql)?.stop()
    },
  }
}

/** What is in a mail, without what each program writes in its own way. */
function describeMail({ from, to, headers, text }: ReceivedMail): VendorAsking {
  const header = (name: string) => new RegExp(`^${name}: (.*)$`, 'im').exec(headers)?.[1] ?? null
  const kind = (header('Content-Type') ?? '').split(';')[0]
  const files = [...text.matchAll(/filename="?([^"\r\n;]+)/g)].map(([, name]) => name)
  const shown = [...text.matchAll(/^content-id: *<([^>]+)>/gim)].map(([, id]) => id)
  const parts = {
    ...{ subject: header('Subject'), replyTo: header('Reply-To'), cc: header('Cc'), kind },
    ...(files.length > 0 ? { files, shown } : {}),
  }
  return {
    asked: 'mail',
    body: { from, to, ...parts, text: /^multipart/.test(kind ?? '') ? null : text.trim() },
  }
}

/** The headers that a workflow's author sets; the others are the HTTP client's own. */
function pick({ headers }: IncomingMessage): Record<string, unknown> {
  const own = Object.entries(headers).filter(([name]) => name.startsWith('x-') || name === 'authorization')
  const type = headers['content-type']?.split(';')[0]
  return Object.fromEntries([...own, ...(type ? [['content-type', type]] : [])])
}

async function find({ raw, type, ...asked }: Asked, own: string): Promise<Answer> {
  const { path, query } = asked
  const [, first = '', second = ''] = path.split('/')
  switch (first) {
    case 'v1':
      return askModel({ ...asked, raw, type })
    case 'vendors':
      return answerVendor({ ...asked, raw, type }, own)
    case 'list':
      return { json: THINGS }
    case 'one':
      return { json: { id: 1, name: 'One', nested: { a: 1, list: [1, 2] } }, headers: { 'x-mock': 'yes' } }
    case 'item':
      return second === '404'
        ? { status: 404, json: { message: 'no such item', code: 'missing' } }
        : { json: { id: Number(second), label: `item ${second}` } }
    case 'wrapped':
      return { json: { data: THINGS, total: THINGS.length } }
    case 'text':
      return { text: 'plain text' }
    case 'html':
      return { text: '<h1>Hello</h1>', headers: { 'content-type': 'text/html; charset=utf-8' } }
    case 'xml':
      return { text: '<a><b>1</b></a>', headers: { 'content-type': 'application/xml' } }
    case 'json-as-text':
      return { text: '{"a": 1}' }
    case 'bad-json':
      return { text: 'oops{', headers: { 'content-type': 'application/json' } }
    case 'number':
      return { json: 42 }
    case 'null':
      return { json: null }
    case 'texts':
      return { json: ['a', 'b'] }
    case 'empty':
      return { status: 204, text: '' }
    case 'empty-list':
      return { json: [] }
    case 'status':
      return { status: Number(second), json: { error: 'refused', code: Number(second) } }
    case 'status-text':
      return { status: Number(second), text: `status ${second}` }
    case 'redirect':
      return { status: Number(second), text: '', headers: { location: `${own}/echo?redirected=yes` } }
    case 'page': {
      const page = Number(query.get('page') ?? 1)
      const next = page < LAST_PAGE ? `${own}/page?page=${page + 1}` : null
      return { json: { page, items: [{ id: page * 10 }, { id: page * 10 + 1 }], next } }
    }
    case 'offset': {
      const offset = Number(query.get('offset') ?? 0)
      return { json: [1, 2, 3, 4, 5].slice(offset, offset + 2).map((id) => ({ id })) }
    }
    case 'echo':
      return { json: { ...asked, query: Object.fromEntries(query), body: readBody({ ...asked, raw, type }) } }
    case 'file':
    case 'named':
      return giveFile(second, first === 'named' ? (query.get('as') ?? '') : undefined)
    case 'sink':
      return { json: await describeSent(raw, type) }
    default:
      return { status: 404, json: { error: 'no such path' } }
  }
}

function readBody({ headers, body }: Asked): unknown {
  if (headers['content-type'] !== 'application/json') return body
  try {
    return JSON.parse(body)
  } catch {
    return body
  }
}
