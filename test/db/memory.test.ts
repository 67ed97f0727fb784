import { sql } from 'kysely'
import { afterAll, expect, test, vi } from 'vitest'
import { record, write } from '../../db/change.ts'
import { openDatabase } from '../../db/connection.ts'
import { createMemory, rememberWith } from '../../db/memory.ts'
import { keep } from '../support/keep.ts'
import { startService } from '../support/service.ts'

const service = await keep(startService())
const { store, teamId } = service
const { db, close } = openDatabase(service.database.url, { max: 3, name: 'remembers' })
afterAll(close)
const own = { ...store, db }

// A bus that says what it is told to say.
let heardUntil = () => performance.now()
let tell: (text: string | null) => void = () => {}
rememberWith(db, {
  heardUntil: () => heardUntil(),
  onTold: (hear) => {
    tell = hear
  },
})
const memory = createMemory<number>(3)(db)
const about = `plan:${teamId}` as const
const keepIn = (key: string, value: number) => memory.begin()(key, value, about)
const setPlan = (plan: string, on = db) =>
  write({ db: on }, (tx) => tx.updateTable('teams').set({ plan }).where('id', '=', teamId).execute())

test('what is told drops what it is about; what may have been missed, or is very much, drops all', () => {
  for (const text of [null, 'everything', about]) {
    keepIn('a', 1)
    memory.begin()('b', 2, 'plan:another')
    tell('something else')
    expect([memory.find('a'), memory.find('b')]).toEqual([1, 2])
    tell(text)
    expect([memory.find('a'), memory.find('b')]).toEqual([undefined, text === about ? 2 : undefined])
  }
})

test('what was read while something changed is not remembered', () => {
  const remember = memory.begin()
  tell('plan:whatever')
  remember('a', 1, about)
  expect(memory.findLast('a')).toBeUndefined()
})

test('nothing counts while it is not certain that the bus hears, nor for longer than a minute', () => {
  keepIn('a', 1)
  memory.begin()('b', 2, about, performance.now() - 1)
  expect([memory.find('a'), memory.find('b'), memory.findLast('b')]).toEqual([1, undefined, 2])
  heardUntil = () => performance.now() - 1_000
  expect([memory.find('a'), memory.findLast('a')]).toEqual([undefined, 1])
  const now = performance.now()
  heardUntil = () => performance.now()
  vi.spyOn(performance, 'now').mockReturnValue(now + 60_001)
  expect(memory.find('a')).toBeUndefined()
  vi.restoreAllMocks()
  // As after a sleep of the machine, through which performance.now() stands still.
  expect(memory.find('a')).toBe(1)
  vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 60_001)
  expect(memory.find('a')).toBeUndefined()
  vi.restoreAllMocks()
})

test('at most so much is remembered as was said', () => {
  for (const key of ['1', '2', '3', '4']) keepIn(key, 1)
  expect(['1', '2', '3', '4'].map(memory.findLast)).toEqual([undefined, 1, 1, 1])
})

test('what this process changes is forgotten at its commit: not before, and not if it is rolled back', async () => {
  keepIn('a', 1)
  await record(own, async (tx) => {
    await tx.updateTable('teams').set({ plan: 'TEAM' }).where('id', '=', teamId).execute()
    expect(memory.find('a')).toBe(1)
  })
  expect(memory.find('a')).toBeUndefined()
  keepIn('a', 2)
  const undone = record(own, async (tx) => {
    await tx.updateTable('teams').set({ plan: 'FREE' }).where('id', '=', teamId).execute()
    throw new Error('undone')
  })
  await expect(undone).rejects.toThrow('undone')
  expect(memory.find('a')).toBe(2)
  await record(own, async (tx) => {
    await tx.updateTable('teams').set({ plan: 'FREE' }).where('id', '=', teamId).execute()
    await sql`savepoint one`.execute(tx)
    await sql`rollback to savepoint one`.execute(tx)
  })
  expect(memory.find('a')).toBeUndefined()
  keepIn('a', 3)
  await setPlan('TEAM')
  expect(memory.find('a')).toBeUndefined()
})

test('what others change is not heard by the connection, and many changes are one text', async () => {
  keepIn('a', 1)
  await setPlan('FREE', store.db)
  expect(memory.find('a')).toBe(1)
  const heard: (string | null)[] = []
  service.bus.onTold((text) => heard.push(text))
  await sql`insert into workflows (id, team_id, name, version, settings)
    select gen_random_uuid(), ${teamId}, 'many ' || n, 1, '{}' from generate_series(1, 300) n`.execute(db)
  await sql`delete from workflows where name like 'many %'`.execute(db)
  await vi.waitFor(() => expect(heard).toContain('everything'))
  expect(heard.filter((text) => text?.startsWith('workflow:'))).toHaveLength(100)
  expect(memory.find('a')).toBeUndefined()
})
