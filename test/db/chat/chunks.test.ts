import { setTimeout as sleep } from 'node:timers/promises'
import { pino } from 'pino'
import { afterAll, expect, test } from 'vitest'
import { createReplies } from '../../../activities/chat/replies.ts'
import { openBus } from '../../../db/bus.ts'
import {
  purgeChunks,
  type ReplyChunk,
  readReplyChunks,
  readStoredText,
  readTold,
  saveChunks,
} from '../../../db/chat/chunks.ts'
import { createExactMask } from '../../../db/redaction/exact.ts'
import type { Store } from '../../../db/scope.ts'
import { createChats } from '../../support/chat/replies.ts'
import { keep } from '../../support/keep.ts'
import { startService } from '../../support/service.ts'

const service = await keep(startService())
const { store, bus } = service
const chats = createChats(service)
const another = openBus(service.database.url, { name: 'another' })
afterAll(() => another.stop())

const log = pino({ level: 'silent' })
const plain = () => createExactMask([]).pieces()
const spot = (executionId: string) => ({ executionId, step: 1, attempt: 1, after: 0 })
const chunk = (executionId: string, more: Partial<ReplyChunk>): ReplyChunk => ({
  executionId,
  step: 1,
  attempt: 1,
  after: 0,
  seq: 0,
  position: 0,
  text: '',
  isLast: false,
  ...more,
})

test('a statement that is repeated, with more text in its last chunk, loses nothing', async () => {
  const { executionId } = await chats.addReply()
  await saveChunks(store, bus.id, [chunk(executionId, { text: 'One ' })])
  await saveChunks(store, bus.id, [chunk(executionId, { text: 'One two ' })])
  await saveChunks(store, bus.id, [chunk(executionId, { seq: 2, position: 8, text: '😀', isLast: true })])
  await saveChunks(store, bus.id, [chunk(executionId, { step: 4, after: 1, text: 'three' })])
  expect(await readStoredText(store, executionId)).toBe('One two 😀three')
  const from = (position: number) => readReplyChunks(store, [{ executionId, step: 1, attempt: 1, position }])
  // From within a chunk, at its beginning, and behind the last one of the step.
  expect((await from(5)).map(({ text }) => text)).toEqual(['One two ', '😀', 'three'])
  expect((await from(8)).map(({ text }) => text)).toEqual(['😀', 'three'])
  expect((await from(9)).map(({ text }) => text)).toEqual(['😀', 'three'])
})

test('the stored text ends where something is missing, and has nothing of an attempt that was begun anew', async () => {
  const { executionId } = await chats.addReply()
  const save = (more: Partial<ReplyChunk>) => saveChunks(store, bus.id, [chunk(executionId, more)])
  await save({ step: 3, after: 2, text: 'Three' })
  expect(await readStoredText(store, executionId)).toBe('')
  await save({ text: 'One ', isLast: true })
  expect(await readStoredText(store, executionId)).toBe('One ')
  await save({ step: 2, after: 1, text: 'Tw' })
  await save({ step: 2, after: 1, seq: 5, position: 5, text: 'lost', isLast: true })
  expect(await readStoredText(store, executionId)).toBe('One Tw')
  await save({ step: 2, after: 1, attempt: 2, text: 'Two ', isLast: true })
  expect(await readStoredText(store, executionId)).toBe('One Two Three')
})

test('chunks go with their reply, and those that come later are not stored; what stays behind is purged', async () => {
  const [saved, open] = [await chats.addReply(), await chats.addReply()]
  const save = (executionId: string) => saveChunks(store, bus.id, [chunk(executionId, { text: 'x' })])
  for (const { executionId } of [saved, open]) await save(executionId)
  await chats.save(saved.replyId, 'x')
  await save(saved.executionId)
  const count = async () => {
    const rows = await store.db
      .selectFrom('agentChatChunks')
      .select('executionId')
      .where('executionId', 'in', [saved.executionId, open.executionId])
      .execute()
    return rows.map(({ executionId }) => executionId)
  }
  expect(await count()).toEqual([open.executionId])
  const old = { createdAt: new Date(Date.now() - 3_600_000) }
  const { createdAt } = old
  const stray = { executionId: saved.executionId, step: 1, attempt: 1, seq: 0, position: 0, after: 0 }
  await store.db
    .insertInto('agentChatChunks')
    .values({ ...stray, text: 'x', isLast: false, createdAt })
    .execute()
  await store.db.updateTable('agentChatChunks').set(old).execute()
  await purgeChunks(store)
  expect(await count()).toEqual([open.executionId])
})

test('all replies of a process together cost a statement and a notification each 100 ms, and none without followers', async () => {
  const all = await Promise.all(Array.from({ length: 220 }, () => chats.addReply()))
  const told: string[] = []
  another.onTold((text) => {
    if (text !== null && readTold(text)) told.push(text)
  })
  let statements = 0
  const counting = {
    ...store,
    db: store.db.withPlugin({
      transformQuery: ({ node }) => {
        statements++
        return node
      },
      transformResult: async ({ result }) => result,
    }),
  } as Store
  const replies = createReplies({ store: counting, bus, log })
  const writers = all.map(({ executionId }) => replies.open(spot(executionId), plain()))
  const writeAll = async () => {
    statements = 0
    const began = performance.now()
    for (let n = 0; n < 40; n++) {
      for (const writer of writers) writer.write('word ')
      await sleep(20)
    }
    await Promise.all(writers.map((writer) => writer.flush()))
    return 1 + Math.ceil((performance.now() - began) / 100)
  }
  // At most 128 chunks go into one statement, so that each reply is told of every other time.
  expect(statements).toBeLessThanOrEqual(await writeAll())
  expect(statements).toBeGreaterThan(2)
  expect(told).toEqual([])
  const leaves = await Promise.all(all.map(({ executionId }) => another.watch(executionId, () => {})))
  const most = await writeAll()
  await expect.poll(() => new Set(told.flatMap((text) => readTold(text)!)).size).toBe(220)
  expect(told.length).toBeLessThanOrEqual(most)
  for (const text of told) expect(Buffer.byteLength(text)).toBeLessThan(8_000)
  for (const leave of leaves) leave()
})

test('while PostgreSQL is away nothing waits for it or fails, and what was written is stored once it is back', async () => {
  const { executionId } = await chats.addReply()
  let away = true
  const lost = Object.assign(new Error('Connection terminated unexpectedly'), { code: 'ECONNREFUSED' })
  const failing = {
    ...store,
    db: store.db.withPlugin({
      transformQuery({ node }) {
        if (away) throw lost
        return node
      },
      transformResult: async ({ result }) => result,
    }),
  } as Store
  const replies = createReplies({ store: failing, bus, log })
  const writer = replies.open(spot(executionId), plain())
  const began = performance.now()
  writer.write('One ')
  await writer.flush()
  writer.write('two')
  writer.end()
  expect(performance.now() - began).toBeLessThan(3_000)
  expect(await readStoredText(store, executionId)).toBe('')
  away = false
  await expect.poll(() => readStoredText(store, executionId), { timeout: 5_000 }).toBe('One two')
  await replies.stop()
})

test('text that waits for PostgreSQL is bounded: beyond that the rest of its reply is dropped, and others are not', async () => {
  const [large, small] = [await chats.addReply(), await chats.addReply()]
  const replies = createReplies({ store, bus, log })
  const writers = [large, small].map(({ executionId }) => replies.open(spot(executionId), plain()))
  // All of it at once, before anything can be stored.
  for (let n = 0; n < 50; n++) writers[0]!.write('x'.repeat(100_000))
  writers[1]!.write('small')
  for (const writer of writers) writer.end()
  await replies.stop()
  expect(await readStoredText(store, large.executionId)).toBe('')
  expect(await readStoredText(store, small.executionId)).toBe('small')
})
