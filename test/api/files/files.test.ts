import { createHmac, randomBytes } from 'node:crypto'
import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import { PLAN_FILE_BYTES } from '../../../db/files/store.ts'
import { edges } from '../../support/engine/graphs.ts'
import { keep } from '../../support/keep.ts'
import { shareRunning } from '../../support/running.ts'

const host = await keep(shareRunning())
const { db } = host.store

type File = { id: string; name: string; mimeType: string; bytes: number }
type Value = { file: File }

const hook = (config: object = {}) => ({
  id: 'hook',
  type: 'WEBHOOK_TRIGGER',
  config: { path: 'in', files: {}, ...config },
})

async function createHook(config: object = {}, nodes: object[] = [], links: string[] = []): Promise<string> {
  const id = await host.create({ nodes: [hook(config), ...nodes] as never, edges: edges(...links) })
  await host.ask('PUT', `/api/workflows/${id}`, { active: true })
  return id
}

const plain = await createHook()

type Sent = { body: NonNullable<RequestInit['body']>; headers?: Record<string, string>; duplex?: 'half' }

const fire = (workflowId: string, sent: Sent) =>
  host.request(`/hooks/${workflowId}/in`, { method: 'POST', ...sent } as RequestInit)

/** Fires the hook, and returns the execution once it has ended. */
async function fired(workflowId: string, sent: Sent) {
  const response = await fire(workflowId, sent)
  const started = (await response.json()) as { executionId: string; message?: string }
  expect(started).toMatchObject({ executionId: expect.any(String) })
  return host.ended(started.executionId)
}

const form = (entries: [string, string | Blob, string?][]): Sent => {
  const body = new FormData()
  for (const [name, value, filename] of entries) {
    if (typeof value === 'string') body.append(name, value)
    else body.append(name, value, filename)
  }
  return { body }
}

const binary = (bytes: Uint8Array, headers: Record<string, string> = {}): Sent => ({
  body: bytes as Uint8Array<ArrayBuffer>,
  headers: { 'content-type': 'application/pdf', ...headers },
})

const BOUNDARY = 'xxBOUNDARYxx'
const raw = (text: string): Sent => ({
  body: text,
  headers: { 'content-type': `multipart/form-data; boundary=${BOUNDARY}` },
})

const download = (executionId: string, id: string, more: object = {}) =>
  host.request(`/api/executions/${executionId}/files/${id}`, { as: host.admin, ...more })

const read = async (executionId: string, { file }: Value) =>
  Buffer.from(await (await download(executionId, file.id)).arrayBuffer())

const countExecutions = async () =>
  (await sql<{ n: number }>`select count(*) as n from executions`.execute(db)).rows[0]!.n

/** What is stored that no execution has. */
const countUnclaimed = async () =>
  (
    await sql<{ n: number }>`select count(*) as n from stored_files where copies = 0 and not removed`.execute(
      db,
    )
  ).rows[0]!.n

const readUsage = async () =>
  (await sql<{ n: number }>`select coalesce(sum(bytes), 0)::bigint as n from file_usage`.execute(db)).rows[0]!
    .n

describe('a webhook', () => {
  test('takes the files of a form with its fields, and they are read as they were sent', async () => {
    const picture = randomBytes(700_000)
    const run = await fired(
      plain,
      form([
        ['note', 'two files'],
        ['tag', 'a'],
        ['tag', 'b'],
        ['photo', new Blob([picture], { type: 'image/png' }), 'Grün.png'],
        ['docs', new Blob(['one'], { type: 'text/csv' }), 'a.csv'],
        ['docs', new Blob([]), 'empty.txt'],
      ]),
    )
    expect(run.status).toBe('SUCCESS')
    const body = run.inputData.body as { photo: Value; docs: Value[] }
    expect(body).toEqual({
      note: 'two files',
      tag: ['a', 'b'],
      photo: { file: { id: expect.any(String), name: 'Grün.png', mimeType: 'image/png', bytes: 700_000 } },
      docs: [
        { file: { id: expect.any(String), name: 'a.csv', mimeType: 'text/csv', bytes: 3 } },
        {
          file: { id: expect.any(String), name: 'empty.txt', mimeType: 'application/octet-stream', bytes: 0 },
        },
      ],
    })
    expect((await read(run.id, body.photo)).equals(picture)).toBe(true)
    expect((await read(run.id, body.docs[0]!)).toString()).toBe('one')
    expect((await read(run.id, body.docs[1]!)).length).toBe(0)
    const page = await host.ask<{ content: object[]; totalElements: number }>(
      'GET',
      `/api/executions/${run.id}/files`,
    )
    expect(page.totalElements).toBe(3)
    expect(page.content).toContainEqual({ ...body.photo.file, createdAt: expect.any(String) })
  })

  test('takes a body that is neither JSON, a form nor plain text as one file', async () => {
    const bytes = randomBytes(300_000)
    const named = { 'content-disposition': "attachment; filename*=UTF-8''%E2%82%AC%20rates.pdf" }
    const one = await fired(plain, binary(bytes, named))
    expect(one.inputData.body).toEqual({
      file: { id: expect.any(String), name: '€ rates.pdf', mimeType: 'application/pdf', bytes: 300_000 },
    })
    expect((await read(one.id, one.inputData.body as Value)).equals(bytes)).toBe(true)
    const json = await fired(plain, { body: '{"a":1}', headers: { 'content-type': 'application/json' } })
    expect(json.inputData.body).toEqual({ a: 1 })
    const text = await fired(plain, { body: 'hi', headers: { 'content-type': 'text/plain' } })
    expect(text.inputData.body).toBe('hi')
  })

  test('without the option takes files as before', async () => {
    const workflowId = await createHook({ files: undefined })
    const run = await fired(workflowId, form([['a', new Blob(['x']), 'a.txt']]))
    expect(run.inputData.body).toEqual({
      a: { filename: 'a.txt', contentType: 'application/octet-stream', base64: 'eA==' },
    })
    expect(await host.ask('GET', `/api/executions/${run.id}/files`)).toMatchObject({ totalElements: 0 })
  })

  test.each([
    ['../../etc/passwd', 'passwd'],
    ['C:\\temp\\note.txt', 'note.txt'],
    ['a\0b.txt', 'ab.txt'],
    ['a%22b.txt', 'a%22b.txt'],
    ['äöü 你好 📄.txt', 'äöü 你好 📄.txt'],
    [`${'n'.repeat(300)}.txt`, `${'n'.repeat(251)}.txt`],
    ['R\u202Egpj.exe', 'Rgpj.exe'],
  ])('keeps of the name %j what is one', async (given, name) => {
    const text =
      `--${BOUNDARY}\r\nContent-Disposition: form-data; name="f"; filename="${given}"\r\n` +
      `Content-Type: text/html\r\n\r\n<script>\r\n--${BOUNDARY}--\r\n`
    const run = await fired(plain, raw(text))
    const { file } = (run.inputData.body as { f: Value }).f
    expect(file).toMatchObject({ name, bytes: 8, mimeType: 'text/html' })
    const response = await download(run.id, file.id)
    const header = response.headers.get('content-disposition')!
    expect(header).toMatch(/^attachment; filename="[\x20-\x7e]*"; filename\*=UTF-8''[\w.%!~-]+$/)
    expect(decodeURIComponent(header.split("''")[1]!)).toBe(name)
  })

  test('refuses what is over a limit before an execution is started, and keeps none of it', async () => {
    const small = await createHook({ files: { maxBytes: 1_000, maxCount: 2 } })
    const [executions, unclaimed, usage] = [
      await countExecutions(),
      await countUnclaimed(),
      await readUsage(),
    ]
    const blob = (size: number) => new Blob([randomBytes(size)])
    const many: [string, Blob, string][] = [1, 2, 3].map((i) => ['f', blob(10), `${i}`])
    const long = 'x'.repeat(1_600_000)
    for (const [sent, message, status = 413] of [
      [binary(randomBytes(1_001)), 'at most 1000 bytes'],
      [
        form([
          ['a', blob(500), 'a'],
          ['b', blob(1_001), 'b'],
        ]),
        'at most 1000 bytes',
      ],
      [form(many), 'at most 2 files'],
      [
        form([
          ['a', blob(5), 'a'],
          ['long', long],
        ]),
        'fields of the form',
      ],
      [form(Array.from({ length: 1_001 }, (_, i) => [`${i}`, ''])), 'at most 1000 fields', 400],
    ] as [Sent, string, number?][]) {
      const response = await fire(small, sent)
      expect(response.status).toBe(status)
      expect(((await response.json()) as { message: string }).message).toContain(message)
    }
    expect(await fired(small, binary(randomBytes(1_000)))).toMatchObject({ status: 'SUCCESS' })
    expect(await countExecutions()).toBe(executions + 1)
    expect(await countUnclaimed()).toBe(unclaimed)
    expect(await readUsage()).toBe(usage + 1_000)
  })

  test('refuses what its team has no room for', async () => {
    const usage = await readUsage()
    const executions = await countExecutions()
    const setUsage = (bytes: number) =>
      sql`update file_usage set bytes = ${bytes} where team_id = ${host.teamId}`.execute(db)
    const fillUp = () => setUsage(PLAN_FILE_BYTES.FREE - 10)
    await sql`update teams set plan = 'FREE' where id = ${host.teamId}`.execute(db)
    try {
      await fillUp()
      const response = await fire(plain, binary(randomBytes(11)))
      expect(response.status).toBe(413)
      expect(await response.json()).toMatchObject({ message: expect.stringContaining('of its plan') })
      expect(await countExecutions()).toBe(executions)
      await fillUp()
      const fitting = await fire(plain, binary(randomBytes(10), { 'content-length': '10' }))
      expect(fitting.status).toBe(202)
    } finally {
      await sql`update teams set plan = 'ENTERPRISE' where id = ${host.teamId}`.execute(db)
      await setUsage(usage + 10)
    }
  })

  test('refuses a form that is not whole, and a signature that is wrong, and keeps none of it', async () => {
    const signature = { header: 'x-sign', secret: 'a secret of ours' }
    const signed = await createHook({ signature })
    const [executions, unclaimed] = [await countExecutions(), await countUnclaimed()]
    const part = `--${BOUNDARY}\r\nContent-Disposition: form-data; name="f"; filename="a"\r\n\r\n`
    const whole = `${part}bytes\r\n--${BOUNDARY}--\r\n`
    const broken = [raw(part), raw(`${part}half of it`), raw(whole.slice(0, -10)), raw('no form at all')]
    broken.push({ body: whole, headers: { 'content-type': 'multipart/form-data' } })
    for (const sent of broken) {
      const response = await fire(plain, sent)
      expect([response.status, await response.json()]).toEqual([
        400,
        expect.objectContaining({ message: expect.stringMatching(/^body: must be /) }),
      ])
    }
    const sign = (text: string, secret = signature.secret) =>
      createHmac('sha256', secret).update(text).digest('hex')
    for (const sent of [raw(whole), binary(Buffer.from(whole))]) {
      for (const given of [undefined, sign(whole, 'another'), sign(`${whole} `)]) {
        const headers = { ...sent.headers, ...(given ? { 'x-sign': given } : {}) }
        expect((await fire(signed, { ...sent, headers })).status).toBe(401)
      }
    }
    expect(await countExecutions()).toBe(executions)
    expect(await countUnclaimed()).toBe(unclaimed)
    for (const sent of [raw(whole), binary(Buffer.from(whole))])
      expect(
        await fired(signed, { ...sent, headers: { ...sent.headers, 'x-sign': sign(whole) } }),
      ).toMatchObject({
        status: 'SUCCESS',
      })
  })

  test('starts one execution for a delivery that comes twice, with the files of the first', async () => {
    const signature = { header: 'x-sign', secret: 's', deliveryHeader: 'x-id' }
    const workflowId = await createHook({ signature })
    const unclaimed = await countUnclaimed()
    const send = (text: string) => {
      const sign = createHmac('sha256', 's').update(text).digest('hex')
      return fired(workflowId, binary(Buffer.from(text), { 'x-sign': sign, 'x-id': 'one' }))
    }
    const [first, second] = [await send('first'), await send('second')]
    expect(second.id).toBe(first.id)
    expect((await read(first.id, second.inputData.body as Value)).toString()).toBe('first')
    expect(await countUnclaimed()).toBe(unclaimed)
  })
})

describe('a download', async () => {
  const bytes = randomBytes(600_000)
  const run = await fired(
    plain,
    form([
      ['pdf', new Blob([bytes], { type: 'text/html' }), 'a".html'],
      ['png', new Blob([bytes], { type: 'image/png' }), 'a.png'],
      ['svg', new Blob(['<svg/>'], { type: 'image/svg+xml' }), 'a.svg'],
    ]),
  )
  const { pdf, png, svg } = run.inputData.body as Record<string, Value> as {
    pdf: Value
    png: Value
    svg: Value
  }

  test('is an attachment that nothing runs in', async () => {
    const response = await download(run.id, pdf.file.id)
    expect(response.status).toBe(200)
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'text/html',
      'content-length': '600000',
      'content-disposition': `attachment; filename="a_22.html"; filename*=UTF-8''a%2522.html`,
      'content-security-policy': "sandbox; default-src 'none'",
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
    })
    expect(Buffer.from(await response.arrayBuffer()).equals(bytes)).toBe(true)
  })

  test('is shown only if it is a picture without scripts, and that is asked for', async () => {
    const how = async (id: string, query: string) =>
      (await host.request(`/api/executions/${run.id}/files/${id}${query}`, { as: host.admin })).headers
        .get('content-disposition')!
        .split(';')[0]
    expect(await how(png.file.id, '?inline=true')).toBe('inline')
    expect(await how(png.file.id, '')).toBe('attachment')
    expect(await how(svg.file.id, '?inline=true')).toBe('attachment')
    expect(await how(pdf.file.id, '?inline=true')).toBe('attachment')
    expect(
      (await host.request(`/api/executions/${run.id}/files/${png.file.id}?inline=1`, { as: host.admin }))
        .status,
    ).toBe(400)
  })

  test.each([
    ['bytes=0-9', 0, 10],
    ['bytes=300000-', 300_000, 600_000],
    ['bytes=-5', 599_995, 600_000],
    ['bytes=599999-700000', 599_999, 600_000],
    ['bytes=262144-262144', 262_144, 262_145],
  ])('gives the range %s', async (range, from, to) => {
    const response = await download(run.id, pdf.file.id, { headers: { range } })
    expect(response.status).toBe(206)
    expect(response.headers.get('content-range')).toBe(`bytes ${from}-${to - 1}/600000`)
    expect(Buffer.from(await response.arrayBuffer()).equals(bytes.subarray(from, to))).toBe(true)
  })

  test.each(['bytes=600000-', 'bytes=5-4', 'bytes=0-1,3-4', 'items=0-1', 'bytes=-'])(
    'of a range that cannot be given, %s, is the whole file',
    async (range) => {
      const response = await download(run.id, pdf.file.id, { headers: { range } })
      expect(response.status).toBe(200)
      expect((await response.arrayBuffer()).byteLength).toBe(600_000)
    },
  )

  test('is for members of the team, and HEAD tells its size', async () => {
    const path = `/api/executions/${run.id}/files/${pdf.file.id}`
    const stranger = await host.otherTeam()
    expect((await host.request(path)).status).toBe(401)
    expect((await host.request(path, { as: stranger.cookie })).status).toBe(403)
    expect((await host.request(`/api/executions/${run.id}/files`, { as: stranger.cookie })).status).toBe(403)
    expect((await host.request(path, { as: await host.token('VIEWER') })).status).toBe(200)
    const head = await download(run.id, pdf.file.id, { method: 'HEAD' })
    expect([head.status, head.headers.get('content-length'), await head.text()]).toEqual([200, '600000', ''])
    expect((await download(run.id, crypto.randomUUID())).status).toBe(404)
    expect((await download(crypto.randomUUID(), pdf.file.id)).status).toBe(404)
    const other = await fired(plain, binary(Buffer.from('x')))
    expect((await download(other.id, pdf.file.id)).status).toBe(404)
  })
})
