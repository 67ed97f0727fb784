import { sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import { afterEach, describe, expect, test } from 'vitest'
import { write } from '../../db/change.ts'
import type { Database, Tx } from '../../db/connection.ts'
import { isDue } from '../../db/queue.ts'
import { keep } from '../support/keep.ts'
import { listQueues } from '../support/queues.ts'
import { startService } from '../support/service.ts'

const { store } = await keep(startService())

/** Writes rows without what they refer to, and without what their triggers would do. */
const bare = (work: (tx: Tx) => Promise<unknown>) =>
  (store.db as Database).transaction().execute(async (tx) => {
    await sql`set local session_replication_role = replica`.execute(tx)
    await work(tx)
  })

describe.each(listQueues(store))('the queue of $name', (queue) => {
  const add = async (teamId: string = uuid()) => {
    const id = uuid()
    await bare((tx) => queue.add(tx, { id, teamId }))
    return id
  }
  const read = async (id: string) => {
    const { rows } = await sql`select * from ${sql.table(queue.table)}
      where ${sql.ref(queue.id)} = ${id}`.execute(store.db)
    return rows[0]
  }
  const setTime = (column: string, to: ReturnType<typeof sql>) =>
    write(store, (tx) => sql`update ${sql.table(queue.table)} set ${sql.ref(column)} = ${to}`.execute(tx))
  const endLease = () =>
    setTime(queue.until, queue.until === 'due_at' ? sql`now()` : sql`now() - interval '1 s'`)
  afterEach(() => bare((tx) => sql`delete from ${sql.table(queue.table)}`.execute(tx)))

  test('what a process that died has claimed goes to another one when the lease ends, not before', async () => {
    const id = await add()
    expect(await queue.claim(5)).toMatchObject([{ id }])
    expect(await queue.claim(5)).toEqual([])
    await endLease()
    const [second] = await queue.claim(5)
    expect(second).toMatchObject({ id })
    await queue.settle(second as never)
    await endLease()
    expect(await queue.claim(5)).toEqual([])
  })

  test.runIf(queue.hasToken)('what the one that lost it says later changes nothing', async () => {
    const id = await add()
    const [first] = await queue.claim(1)
    await endLease()
    const [second] = await queue.claim(1)
    const before = await read(id)
    await queue.settle(first as never)
    await queue.postpone(first as never)
    expect(await read(id)).toEqual(before)
    await queue.settle(second as never)
    expect(await read(id)).not.toEqual(before)
  })

  test('what one has settled, another one that had it before does not change any more', async () => {
    const id = await add()
    const [first] = await queue.claim(1)
    await endLease()
    const [second] = await queue.claim(1)
    await queue.settle(second as never)
    const settled = await read(id)
    await queue.settle(first as never)
    await queue.postpone(first as never)
    expect(await read(id)).toEqual(settled)
  })

  test('a row that is given back is due again later', async () => {
    const id = await add()
    const [row] = await queue.claim(1)
    await queue.postpone(row as never)
    expect(await queue.claim(1)).toEqual([])
    await setTime('due_at', sql`now()`)
    expect(await queue.claim(1)).toMatchObject([{ id }])
  })

  test('of many that claim at the same time no two get the same row', async () => {
    const ids = await Promise.all(Array.from({ length: 20 }, () => add()))
    const claims = await Promise.all(Array.from({ length: 8 }, () => queue.claim(3)))
    const taken = claims.flat().map(({ id }) => id)
    expect(new Set(taken).size).toBe(taken.length)
    for (let more = ['']; more.length > 0; taken.push(...more))
      more = (await queue.claim(5)).map(({ id }) => id)
    expect(taken.sort()).toEqual(ids.sort())
  })

  test.runIf(queue.turns)('the teams take turns: many rows of one hold no other up', async () => {
    const [large, small] = [uuid(), uuid()]
    for (let i = 0; i < 10; i++) await add(large)
    await add(small)
    const teams = (await queue.claim(2)).map(({ teamId }) => teamId)
    expect(teams.sort()).toEqual([large, small].sort())
  })
})

test('a time that was rounded up to the next millisecond is due at once, and a later one is not', async () => {
  const { rows } = await sql<{ at: number }>`select at::int from unnest(array[-1, 0, 500, 501, 1000]) at
    where ${isDue(sql`now() + at * interval '1 microsecond'`)}`.execute(store.db)
  expect(rows.map(({ at }) => at)).toEqual([-1, 0, 500])
})
