import { randomBytes } from 'node:crypto'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { record } from '../../../db/change.ts'
import { copyFiles, findFile, readPieces } from '../../../db/files/files.ts'
import { cleanFileName, cleanMediaType } from '../../../db/files/names.ts'
import {
  addFiles,
  PIECE_BYTES,
  PLAN_FILE_BYTES,
  type StoredFile,
  storeFile,
} from '../../../db/files/store.ts'
import { sweepFiles } from '../../../db/files/sweep.ts'
import { MAX_FILE_BYTES, MAX_RUN_FILES } from '../../../workflows/nodes/files.ts'
import { createClient } from '../../support/client.ts'
import { type Service, startService } from '../../support/service.ts'

let service: Service
let client: ReturnType<typeof createClient>
let workflowId: string

beforeAll(async () => {
  service = await startService()
  client = createClient({
    send: (path, init) => service.request(path, { as: service.admin, ...init }),
    teamId: service.teamId,
  })
  workflowId = await client.create({
    nodes: [{ id: 'start', type: 'MANUAL_TRIGGER', config: {} }],
    edges: [],
  })
})
afterAll(() => service.stop())

const execute = () => client.execute(workflowId)

async function* chunksOf(bytes: Uint8Array, size = 10_000) {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

const put = (executionId: string, bytes: Uint8Array, name = 'a.bin') =>
  storeFile(service.store, { executionId }, { name }, chunksOf(bytes))

async function readAll(id: string, from = 0): Promise<Buffer> {
  const parts: Buffer[] = []
  for await (const piece of readPieces(service.store, id, { from })) parts.push(piece)
  return Buffer.concat(parts)
}

async function readUsage(): Promise<number> {
  const { rows } = await sql<{ n: number }>`
    select coalesce((select bytes from file_usage where team_id = ${service.teamId}), 0)::bigint as n`.execute(
    service.store.db,
  )
  return rows[0]!.n
}

/** What the files of the team have together, added up anew. */
async function addUp(): Promise<number> {
  const { rows } = await sql<{ n: number }>`
    select coalesce(sum(bytes), 0)::bigint as n from stored_files
    where team_id = ${service.teamId} and not removed`.execute(service.store.db)
  return rows[0]!.n
}

const countPieces = async () => {
  const { rows } = await sql<{ n: number }>`select count(*) as n from file_pieces`.execute(service.store.db)
  return rows[0]!.n
}

describe('the bytes of a file', () => {
  test.each([0, 1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES, 5_000_000])(
    'of %i bytes are read as they were stored, also from the middle',
    async (size) => {
      const executionId = await execute()
      const bytes = randomBytes(size)
      const file = await put(executionId, bytes)
      expect(file).toMatchObject({ name: 'a.bin', mimeType: 'application/octet-stream', bytes: size })
      expect(await findFile(service.store, executionId, file.id)).toEqual(file)
      expect((await readAll(file.id)).equals(bytes)).toBe(true)
      for (const from of [Math.floor(size / 2), Math.max(0, size - 1), size])
        expect((await readAll(file.id, from)).equals(bytes.subarray(from))).toBe(true)
    },
  )

  test('lie sealed in the database; a piece that is changed, moved or missing is noticed', async () => {
    const executionId = await execute()
    const secret = Buffer.from(`canary-${randomBytes(8).toString('hex')}`)
    const bytes = Buffer.concat([secret, Buffer.alloc(2 * PIECE_BYTES, 7)])
    const one = await put(executionId, bytes)
    const { rows } = await sql<{ sealed: Buffer }>`
      select sealed from file_pieces where file_id = ${one.id} order by number`.execute(service.store.db)
    expect(rows).toHaveLength(3)
    expect(rows.some(({ sealed }) => sealed.includes(secret))).toBe(false)
    const { db } = service.store
    await sql`update file_pieces set number = number + 10 where file_id = ${one.id}`.execute(db)
    await sql`update file_pieces set number = case number when 10 then 1 when 11 then 0 else 2 end
      where file_id = ${one.id}`.execute(db)
    await expect(readAll(one.id)).rejects.toThrow()
    const two = await put(executionId, bytes)
    // As if somebody had cut off its end.
    await sql`update stored_files set pieces = 2 where id = ${two.id}`.execute(db)
    await expect(readAll(two.id)).rejects.toThrow()
    const three = await put(executionId, bytes)
    await sql`delete from file_pieces where file_id = ${three.id} and number = 1`.execute(db)
    await expect(readAll(three.id)).rejects.toThrow('The file has been deleted')
  })

  test('of a file whose sender breaks off are none, and take up no room', async () => {
    const executionId = await execute()
    const before = await readUsage()
    async function* broken() {
      yield randomBytes(3 * PIECE_BYTES)
      throw new Error('the sender is gone')
    }
    await expect(storeFile(service.store, { executionId }, { name: 'a' }, broken())).rejects.toThrow(
      'the sender is gone',
    )
    expect(
      await service.store.db
        .selectFrom('executionFiles')
        .selectAll()
        .where('executionId', '=', executionId)
        .execute(),
    ).toEqual([])
    expect(await readUsage()).toBe(before)
    await sweepFiles(service.store)
    expect(
      await service.store.db.selectFrom('storedFiles').select('id').where('removed', '=', true).execute(),
    ).toEqual([])
  })

  test('that are more or fewer than announced, or too many, are refused', async () => {
    const executionId = await execute()
    const before = await readUsage()
    const store = (size: number, more: { length?: number; most?: number }) =>
      storeFile(service.store, { executionId }, { name: 'a', ...more }, chunksOf(randomBytes(size)))
    await expect(store(10, { length: 11 })).rejects.toThrow('does not have the 11 bytes')
    await expect(store(PIECE_BYTES * 2, { length: 11 })).rejects.toThrow('does not have the 11 bytes')
    await expect(store(12, { most: 11 })).rejects.toThrow('at most 11 bytes')
    await expect(store(1, { length: MAX_FILE_BYTES + 1 })).rejects.toThrow('at most 67108864 bytes')
    await expect(store(11, { length: 11, most: 11 })).resolves.toMatchObject({ bytes: 11 })
    expect(await readUsage()).toBe(before + 11)
  })
})

describe('the room of a team', () => {
  const setPlan = (plan: string) =>
    sql`update teams set plan = ${plan} where id = ${service.teamId}`.execute(service.store.db)
  const setUsage = (bytes: number) =>
    sql`insert into file_usage (team_id, bytes) values (${service.teamId}, ${bytes})
      on conflict (team_id) do update set bytes = excluded.bytes`.execute(service.store.db)

  test('is what its plan says, to the byte, also if twenty files come at once', async () => {
    await setPlan('FREE')
    const held = await readUsage()
    const size = 100_000
    try {
      await setUsage(PLAN_FILE_BYTES.FREE - 5 * size)
      const runs = await Promise.all(Array.from({ length: 20 }, execute))
      const results = await Promise.allSettled(
        runs.map((executionId) =>
          storeFile(service.store, { executionId }, { name: 'a', length: size }, chunksOf(randomBytes(size))),
        ),
      )
      const stored = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
      expect(stored).toHaveLength(5)
      for (const result of results)
        if (result.status === 'rejected') expect(result.reason).toMatchObject({ code: 'TOO_LARGE' })
      expect(await readUsage()).toBe(PLAN_FILE_BYTES.FREE)
      const last = storeFile(
        service.store,
        { executionId: runs[0]! },
        { name: 'a' },
        chunksOf(randomBytes(1)),
      )
      await expect(last).rejects.toThrow('more than the 1000000000 bytes of its plan')
      expect(await readUsage()).toBe(PLAN_FILE_BYTES.FREE)
    } finally {
      await setPlan('ENTERPRISE')
      await setUsage(held)
      await setUsage(await addUp())
    }
  })

  test("is given back when the last of a file's copies goes, and its bytes are removed", async () => {
    const before = await readUsage()
    const [one, two, three] = [await execute(), await execute(), await execute()]
    const file = await put(one, randomBytes(600_000))
    for (const to of [two, three])
      await record(service.store, (tx) => copyFiles(tx, one, to, [file.id, 'no id', crypto.randomUUID()]))
    expect(await readUsage()).toBe(before + 600_000)
    const pieces = await countPieces()
    const remove = (id: string) => service.store.db.deleteFrom('executions').where('id', '=', id).execute()
    await remove(one)
    await remove(three)
    await sweepFiles(service.store)
    expect(await readUsage()).toBe(before + 600_000)
    expect((await readAll(file.id)).length).toBe(600_000)
    await remove(two)
    expect(await readUsage()).toBe(before)
    await expect(readAll(file.id)).rejects.toThrow('The file has been deleted')
    await sweepFiles(service.store)
    expect(await countPieces()).toBe(pieces - 3)
    expect(await readUsage()).toBe(await addUp())
  })

  test('is right after copies are made while the others go', async () => {
    const before = await readUsage()
    for (let round = 0; round < 10; round++) {
      const [from, to] = [await execute(), await execute()]
      const file = await put(from, randomBytes(1_000))
      await Promise.allSettled([
        service.store.db.deleteFrom('executions').where('id', '=', from).execute(),
        record(service.store, (tx) => copyFiles(tx, from, to, [file.id])),
      ])
      const copy = await findFile(service.store, to, file.id)
      if (copy) expect((await readAll(file.id)).length).toBe(1_000)
      else await expect(readAll(file.id)).rejects.toThrow('The file has been deleted')
      await service.store.db.deleteFrom('executions').where('id', '=', to).execute()
      expect(await readUsage()).toBe(before)
    }
  })
})

test('an execution has at most 100 files, also if they come at once; those that it takes over do not count', async () => {
  const [run, later] = [await execute(), await execute()]
  const results = await Promise.allSettled(
    Array.from({ length: MAX_RUN_FILES + 8 }, (_, i) => put(run, Buffer.from(`${i}`))),
  )
  expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(MAX_RUN_FILES)
  await record(service.store, (tx) => copyFiles(tx, run, later, 'all'))
  await put(later, Buffer.from('one more'))
  const full: StoredFile[] = []
  await expect(put(run, Buffer.from('x'))).rejects.toThrow('at most 100 files')
  await record(service.store, (tx) => addFiles(tx, run, service.teamId, full))
})

test('a file that nobody claims within an hour, or that is not stored to its end, is removed', async () => {
  const { db } = service.store
  const before = await readUsage()
  const owner = { teamId: service.teamId }
  const file = await storeFile(service.store, owner, { name: 'a' }, chunksOf(randomBytes(700_000)))
  let go: (value?: unknown) => void = () => {}
  const waits = new Promise((resolve) => {
    go = resolve
  })
  async function* slow() {
    yield randomBytes(300_000)
    await waits
    yield randomBytes(300_000)
  }
  const storing = storeFile(service.store, owner, { name: 'slow' }, slow())
  const storingFailed = expect(storing).rejects.toThrow('given up')
  await expect
    .poll(
      async () =>
        (
          await db
            .selectFrom('storedFiles')
            .select('id')
            .where('pieces', 'is', null)
            .where('removed', '=', false)
            .execute()
        ).length,
    )
    .toBe(1)
  await sweepFiles(service.store)
  expect((await readAll(file.id)).length).toBe(700_000)
  await sql`update stored_files set touched_at = now() - interval '61 minutes' where copies = 0`.execute(db)
  await sweepFiles(service.store)
  await expect(readAll(file.id)).rejects.toThrow('The file has been deleted')
  go()
  await storingFailed
  await sweepFiles(service.store)
  expect(await readUsage()).toBe(before)
  expect(await db.selectFrom('storedFiles').select('id').where('copies', '=', 0).execute()).toEqual([])
})

describe('names', () => {
  test.each([
    ['a.txt', 'a.txt'],
    ['../../etc/passwd', 'passwd'],
    ['C:\\temp\\x.doc', 'x.doc'],
    ['a\0b.txt', 'ab.txt'],
    ['a"b\r\nc.txt', 'a"bc.txt'],
    ['..', 'file'],
    ['', 'file'],
    ['dir/', 'file'],
    ['R\u202Egpj.exe', 'Rgpj.exe'],
    ['e\u0301.txt', 'é.txt'],
    ['📄\ud800.txt', '📄\ufffd.txt'],
  ])('%j becomes %j', (given, name) => {
    expect(cleanFileName(given)).toBe(name)
  })

  test('of 300 characters keep their ending', () => {
    expect(cleanFileName(`${'x'.repeat(300)}.tar.gz`)).toBe(`${'x'.repeat(252)}.gz`)
    const name = cleanFileName(`${'📄'.repeat(200)}.pdf`)
    expect(name).toMatch(/^📄+\.pdf$/u)
    expect(name.length).toBeLessThanOrEqual(255)
  })

  test('media types keep their charset', () => {
    expect(cleanMediaType('Text/CSV; header=present; Charset="ISO-8859-1"')).toBe(
      'text/csv; charset=iso-8859-1',
    )
    for (const bad of [undefined, '', 'text', 'a b/c', 'text/html\r\nx: y'])
      expect(cleanMediaType(bad)).toBe('application/octet-stream')
  })
})
