import { setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { sql } from 'kysely'
import { afterAll, expect, test } from 'vitest'
import { writeCut } from '../../../db/chat/chunks.ts'
import { settleReply } from '../../../db/chat/settle.ts'
import { createExactMask } from '../../../db/redaction/exact.ts'
import { addApi, createChats, pathOf, readReply, sumUp } from '../../support/chat/replies.ts'
import { keep } from '../../support/keep.ts'
import { startService } from '../../support/service.ts'

const closing: (() => Promise<unknown>)[] = []
const service = await keep(startService({ rateLimits: false, streams: { heartbeatMs: 200, checkMs: 100 } }))
const chats = createChats(service)
const another = await addApi(service)
closing.push(another.stop)
afterAll(async () => {
  for (const close of closing.reverse()) await close()
})

const plain = () => createExactMask([]).pieces()
const open = (executionId: string, { step = 1, attempt = 1, after = 0 } = {}, from = service.replies) =>
  from.open({ executionId, step, attempt, after }, plain())
const ask = (path: string, headers = {}, as = service.admin) => service.request(path, { as, headers })
const follow = async (path: string, headers = {}) => readReply(await ask(path, headers))
const followElsewhere = async (path: string, headers = {}) => readReply(await another.get(path, headers))
const countChunks = async (executionId: string) => {
  const rows = await service.store.db
    .selectFrom('agentChatChunks')
    .select('seq')
    .where('executionId', '=', executionId)
    .execute()
  return rows.length
}

test('a reply is streamed as it comes, in this process and in another, and ends with its tokens', async () => {
  const { executionId, replyId, messageId, sessionId, path } = await chats.addReply()
  const response = await ask(path)
  expect([
    response.status,
    response.headers.get('content-type'),
    response.headers.get('cache-control'),
  ]).toEqual([200, 'text/event-stream; charset=utf-8', 'no-store'])
  const streams = [
    readReply(response),
    await followElsewhere(path),
    await follow(pathOf({ sessionId, replyId: messageId })),
  ]
  const first = open(executionId)
  for (const part of ['Let me ', 'look. ']) {
    first.write(part)
    for (const stream of streams) expect(await stream.next()).toMatchObject({ type: 'chunk', content: part })
  }
  first.end()
  // The next turn comes from another process, and is told there at once, and here from the table.
  const second = open(executionId, { step: 4, after: 1 }, another.replies)
  second.write('It is there 😀.')
  second.end()
  for (const stream of streams) expect(await stream.next()).toMatchObject({ content: 'It is there 😀.' })
  await expect.poll(() => countChunks(executionId)).toBeGreaterThan(2)
  await chats.save(replyId, 'Let me look. It is there 😀.')
  for (const stream of streams) {
    expect(await stream.all()).toEqual([{ id: 'end', type: 'done', tokenUsage: { input: 3, output: 5 } }])
  }
  expect(await countChunks(executionId)).toBe(0)
  // Once it is saved, it comes from there.
  const events = await (await followElsewhere(path)).all()
  expect(events.map(({ type }) => type)).toEqual(['chunk', 'done'])
  expect(sumUp(events).text).toBe('Let me look. It is there 😀.')
  const done = await ask(path, { 'last-event-id': events.at(-1)!.id })
  expect([done.status, await done.text()]).toEqual([204, ''])
})

test('who comes later, or comes back to another process, misses nothing and gets nothing twice', async () => {
  const { executionId, replyId, path } = await chats.addReply()
  const writer = open(executionId)
  let text = ''
  const seen: { id: string; text: string }[] = [{ id: '', text: '' }]
  const stream = await follow(path)
  for (let i = 0; i < 40; i++) {
    const part = i % 3 === 0 ? `ü${i}😀` : `${i},`
    writer.write(part)
    text += part
    const { id, content } = (await stream.next())!
    expect(content).toBe(part)
    seen.push({ id: id!, text })
  }
  for (const { id, text: had } of [seen[0]!, seen[1]!, seen[17]!, seen[39]!]) {
    for (const again of [
      await follow(path, { 'last-event-id': id }),
      await followElsewhere(path, { 'last-event-id': id }),
    ]) {
      await again.until(text.slice(had.length))
      await again.cancel()
    }
  }
  writer.write('the end')
  writer.end()
  await chats.save(replyId, `${text}the end`)
  for (const { id, text: had } of seen) {
    const again = await followElsewhere(path, { 'last-event-id': id })
    expect(sumUp(await again.all())).toMatchObject({
      text: `${text}the end`.slice(had.length),
      resets: 0,
      last: { type: 'done' },
    })
  }
  expect(sumUp(await stream.all())).toMatchObject({ text: 'the end', last: { type: 'done' } })
  // Ids that were never sent.
  for (const id of ['x', '-1-saved', '5', `3-${'0'.repeat(15)}-1-1`, '9'.repeat(300)])
    expect(sumUp(await (await follow(path, { 'last-event-id': id })).all()).text).toBe(`${text}the end`)
  // A place that the text does not have, or another text before it.
  for (const id of ['9999-saved', `4-${'0'.repeat(16)}-1-1`, `9999-${'0'.repeat(16)}-1-1`]) {
    const events = await (await follow(`${path}?resets=1`, { 'last-event-id': id })).all()
    expect(events[0]).toMatchObject({ type: 'reset' })
    expect(sumUp(events)).toMatchObject({ text: `${text}the end`, last: { type: 'done' } })
    expect(await (await follow(path, { 'last-event-id': id })).all()).toMatchObject([
      { type: 'error', id: 'end' },
    ])
  }
})

test('an attempt that begins anew takes its text away: told by reset to those who ask for it, else an error', async () => {
  const { executionId, replyId, path } = await chats.addReply()
  const first = open(executionId)
  first.write('One. ')
  first.end()
  const streams = [await follow(`${path}?resets=1`), await followElsewhere(`${path}?resets=1`)]
  const others = [await follow(path), await followElsewhere(path)]
  const lost = open(executionId, { step: 2, after: 1 })
  lost.write('Tw')
  const ids: string[] = []
  for (const stream of [...streams, ...others]) ids.push((await stream.until('One. Tw')).id!)
  await lost.cut()
  const again = open(executionId, { step: 2, after: 1, attempt: 2 }, another.replies)
  for (const stream of streams) {
    expect(await stream.next()).toMatchObject({ type: 'reset' })
    await stream.until('One. ')
  }
  for (const stream of others)
    expect(await stream.all()).toMatchObject([{ type: 'error', message: expect.stringContaining('anew') }])
  again.write('Three.')
  // The worker that was lost is alive, and goes on.
  lost.write('o.')
  // Whoever comes back with the text that was taken away is told as well.
  const back = await followElsewhere(`${path}?resets=1`, { 'last-event-id': ids[3] })
  expect(await back.next()).toMatchObject({ type: 'reset' })
  await back.until('One. Three.')
  expect((await (await follow(path, { 'last-event-id': ids[3] })).all()).map(({ type }) => type)).toEqual([
    'error',
  ])
  again.end()
  for (const stream of streams) await stream.until('Three.')
  await chats.save(replyId, 'One. Three.')
  for (const stream of [...streams, back])
    expect((await stream.all()).map(({ type }) => type)).toEqual(['done'])
})

test('a first attempt without text, such as one that the vendor refuses, ends no stream', async () => {
  const { executionId, replyId, path } = await chats.addReply()
  const streams = [await follow(path), await followElsewhere(path)]
  await open(executionId).cut()
  const again = open(executionId, { attempt: 2 })
  again.write('Well.')
  again.end()
  for (const stream of streams) await stream.until('Well.')
  await chats.save(replyId, 'Well.')
  for (const stream of streams) expect((await stream.all()).map(({ type }) => type)).toEqual(['done'])
})

test('a reply that fails, or is deleted, ends the stream with an error', async () => {
  const failed = await chats.addReply()
  const deleted = await chats.addReply()
  const streams = [await follow(failed.path), await followElsewhere(failed.path)]
  const others = [await follow(deleted.path), await followElsewhere(deleted.path)]
  open(failed.executionId).write('Hm')
  for (const stream of streams) await stream.until('Hm')
  await chats.save(failed.replyId, '', { status: 'FAILED', error: 'The model is not there' })
  for (const stream of streams)
    expect(await stream.all()).toEqual([{ id: 'end', type: 'error', message: 'The model is not there' }])
  await service.call('DELETE', `/api/agent-chat/sessions/${deleted.sessionId}`, service.admin)
  for (const stream of others) {
    const events = await stream.all()
    expect([[], [{ id: 'end', type: 'error', message: 'The message was deleted' }]]).toContainEqual(events)
  }
})

test('a reply that is stopped ends with what is saved of it, of which nobody has seen more', async () => {
  const { executionId, replyId, path } = await chats.addReply()
  const streams = [await follow(path), await followElsewhere(path)]
  const writer = open(executionId)
  writer.write('So far')
  for (const stream of streams) await stream.until('So far')
  await service.store.db
    .updateTable('executions')
    .set({ status: 'CANCELLED', completedAt: new Date(), cancelRequestedAt: new Date() })
    .where('id', '=', executionId)
    .execute()
  const reply = { id: replyId, executionId, attempts: 1 }
  // Its writer goes on until it hears of that.
  writer.write(', and')
  expect(await settleReply(service.store, reply)).toBe('open')
  another.bus.tell(writeCut(executionId))
  await expect.poll(() => settleReply(service.store, reply)).toBe('settled')
  writer.write(' never')
  // A turn that begins too late is seen by nobody.
  open(executionId, { step: 2, after: 1 }).write('Late')
  for (const stream of streams) {
    const events = await stream.all()
    expect(sumUp(events)).toMatchObject({ text: ', and', resets: 0, last: { type: 'done' } })
  }
  expect(sumUp(await (await follow(path)).all()).text).toBe('So far, and')
})

test('a reply that is stopped, and of which more was seen than is stored, is begun anew', async () => {
  const { executionId, replyId, path } = await chats.addReply()
  const writer = open(executionId)
  writer.write('So far')
  const streams = [await follow(`${path}?resets=1`), await follow(path)]
  for (const stream of streams) await stream.until('So far')
  // As if the process that wrote it had died before the rest was stored.
  await chats.save(replyId, 'So', { status: 'STOPPED' })
  expect(await streams[0]!.all()).toMatchObject([
    { type: 'reset' },
    { type: 'chunk', content: 'So' },
    { type: 'done' },
  ])
  expect(await streams[1]!.all()).toMatchObject([{ type: 'error' }])
})

test('characters that are cut in two by the vendor are not, and those that no text may have are replaced', async () => {
  const { executionId, replyId, path } = await chats.addReply()
  const streams = [await follow(path), await followElsewhere(path)]
  const writer = open(executionId)
  for (const part of ['a\uD83D', '\uDE00b\0', '\uDE00\n\n: c', '\uD83D']) writer.write(part)
  writer.end()
  const text = 'a😀b\uFFFD\uFFFD\n\n: c\uFFFD'
  for (const stream of streams) await stream.until(text)
  await chats.save(replyId, text)
  for (const stream of streams) expect((await stream.all()).map(({ type }) => type)).toEqual(['done'])
})

test('a reply of 5 MB reaches a slow reader whole, and is not kept for it in memory', {
  tags: 'long',
  timeout: 120_000,
}, async () => {
  const { executionId, replyId, path } = await chats.addReply()
  const slow = [await follow(path), await followElsewhere(path)]
  const writer = open(executionId)
  const parts = Array.from({ length: 5_000 }, (_, i) => `${i} `.padEnd(1_000, 'é'))
  const text = parts.join('')
  const before = await readHeap()
  for (const [i, part] of parts.entries()) {
    writer.write(part)
    if (i % 100 === 0) {
      await slow[0]!.next()
      await sleep(20)
    }
  }
  writer.end()
  await writer.flush()
  expect(await readHeap()).toBeLessThan(before + 8_000_000)
  // Half of it from the stored chunks, the other half from the saved reply.
  const events: Record<string, unknown>[][] = [[], []]
  for (const [i, stream] of slow.entries())
    for (let n = 0; n < 150; n++) events[i]!.push((await stream.next())!)
  await chats.save(replyId, text)
  const rests = await Promise.all(slow.map((stream) => stream.all()))
  const got = rests.map((rest, i) => sumUp([...events[i]!, ...rest] as never))
  expect(got[1]!.text === text).toBe(true)
  expect(text.endsWith(got[0]!.text)).toBe(true)
  for (const { last } of got) expect(last).toMatchObject({ type: 'done' })
})

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

async function readHeap(): Promise<number> {
  await sleep(50)
  collect()
  return process.memoryUsage().heapUsed
}

test('a person, a team and a visitor have only so many streams, and get those back that end', async () => {
  const few = await addApi(service, { replyStreams: { ofPerson: 2, ofTeam: 3 } })
  closing.push(few.stop)
  const { path, sessionId } = await chats.addReply()
  const first = await few.get(path)
  const second = await few.get(path)
  const third = await few.get(path)
  expect([
    third.status,
    third.headers.get('retry-after'),
    ((await third.json()) as { message: string }).message,
  ]).toEqual([429, '5', expect.stringContaining('You have 2 replies open')])
  // Nothing is started for who has too many.
  const refused = await few.get(
    `/api/agent-chat/sessions/${sessionId}/messages`,
    { 'content-type': 'application/json' },
    {
      method: 'POST',
      body: '{"content":"again"}',
      headers: { cookie: service.admin, 'content-type': 'application/json' },
    },
  )
  expect(refused.status).toBe(429)
  await readReply(first).cancel()
  await expect.poll(async () => (await few.get(path)).status).toBe(200)
  await readReply(second).cancel()
})

test('a stream sends comments, and ends with the right to read it', async () => {
  const { path, sessionId } = await chats.addReply()
  const member = await service.signUp('OPERATOR')
  const theirs = await createChats(service, member).addReply()
  const byMember = readReply(await ask(theirs.path, {}, member.cookie))
  const byOwner = await follow(path)
  const waiting = byMember.next()
  await expect.poll(byMember.comments).toBeGreaterThan(1)
  await service.store.db.deleteFrom('members').where('userId', '=', member.id).execute()
  expect(await waiting).toBeUndefined()
  await service.store.db.deleteFrom('agentChatSessions').where('id', '=', sessionId).execute()
  expect((await byOwner.all()).length).toBeLessThan(2)
  const statuses = [
    (await ask(path)).status,
    (await service.request(theirs.path)).status,
    (await ask(theirs.path, {}, (await service.otherTeam()).cookie)).status,
    (await ask(theirs.path, {}, (await service.signUp('OPERATOR')).cookie)).status,
  ]
  expect(statuses).toEqual([404, 401, 403, 403])
})

test('who is removed from the team gets nothing more at once, here and elsewhere', async () => {
  const unchecked = await addApi(service, { streams: { checkMs: 600_000 } })
  closing.push(unchecked.stop)
  const member = await service.signUp('OPERATOR')
  const { executionId, path } = await createChats(service, member).addReply()
  const theirs = readReply(await unchecked.get(path, { cookie: member.cookie }))
  const byAdmin = readReply(await unchecked.get(path))
  const writer = open(executionId)
  writer.write('One.')
  for (const stream of [theirs, byAdmin]) await stream.until('One.')
  const removed = await service.call(
    'DELETE',
    `/api/teams/${service.teamId}/members/${member.id}`,
    service.admin,
  )
  expect(removed.status).toBe(200)
  expect(await theirs.all()).toEqual([])
  writer.write('Two.')
  await byAdmin.until('Two.')
  await byAdmin.cancel()
})

test('a page has as many messages as it is asked for, and long ones are read by themselves', {
  tags: 'long',
}, async () => {
  const { sessionId, replyId } = await chats.addReply()
  const long = 'x'.repeat(16_000_000)
  await chats.save(replyId, long)
  const { rows } = await sql<{ id: string }>`insert into agent_chat_messages
      (id, session_id, team_id, owner_id, role, status, content, execution_id)
    select gen_random_uuid(), session_id, team_id, owner_id, 'user', 'COMPLETE',
      case when n = 3 then 'short' else repeat('y', 16000000) end, gen_random_uuid()
    from agent_chat_messages, generate_series(1, 3) n where id = ${replyId} returning id`.execute(
    service.store.db,
  )
  const messages = `/api/agent-chat/sessions/${sessionId}/messages`
  const read = async (path: string) => (await (await ask(path)).json()) as Page
  type Item = { id: string; omitted: boolean; content: string }
  type Page = Item & { content: Item[] & string; totalElements: number }
  const page = await read(`${messages}?size=4`)
  expect(page.totalElements).toBe(5)
  expect(page.content.map(({ omitted, content }) => [omitted, content.length])).toEqual([
    [false, 5],
    [false, 16_000_000],
    [true, 0],
    [true, 0],
  ])
  expect(page.content[0]!.id).toBe(rows[2]!.id)
  const one = await read(`${messages}/${page.content[3]!.id}`)
  expect([one.omitted, one.content === long]).toEqual([false, true])
  expect((await read(`${messages}?size=4&page=1`)).content).toMatchObject([
    { omitted: false, content: 'Hello?' },
  ])
  await service.store.db.deleteFrom('agentChatSessions').where('id', '=', sessionId).execute()
})

test('200 replies at once of 20 people reach their readers whole, in both processes', {
  tags: 'long',
  timeout: 60_000,
}, async () => {
  const people = await Promise.all(Array.from({ length: 20 }, () => service.signUp('OPERATOR')))
  const theirs = people.flatMap((person) =>
    Array.from({ length: 10 }, () => createChats(service, person).addReply()),
  )
  const all = await Promise.all(theirs)
  const apis = [await addApi(service), await addApi(service)]
  closing.push(...apis.map((api) => api.stop))
  const reads = all.map(async ({ path }, i) => {
    const response = await apis[i % 2]!.get(path, { cookie: people[Math.floor(i / 10)]!.cookie })
    return sumUp(await readReply(response).all())
  })
  const texts = all.map((_, i) => Array.from({ length: 60 }, (_, n) => `${i}.${n} `))
  // Each process writes half of the replies that are read in it, and half of the others.
  const writers = all.map(({ executionId }, i) => open(executionId, {}, apis[(i >> 1) % 2]!.replies))
  for (let n = 0; n < 60; n++) {
    for (const [i, writer] of writers.entries()) writer.write(texts[i]![n]!)
    await sleep(10)
  }
  for (const writer of writers) writer.end()
  await Promise.all(all.map(({ replyId }, i) => chats.save(replyId, texts[i]!.join(''))))
  const got = await Promise.all(reads)
  for (const [i, { text, resets, last }] of got.entries())
    expect([text, resets, last?.type]).toEqual([texts[i]!.join(''), 0, 'done'])
})
