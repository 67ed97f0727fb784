import { randomBytes, randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { afterAll, expect, inject, test } from 'vitest'
import { openTeamCredential } from '../../../db/credentials/open.ts'
import { sealCredential } from '../../../db/credentials/seal.ts'
import { listKeyUse } from '../../../db/operation/keyuse.ts'
import type { Keys } from '../../../db/seal.ts'
import { noteSending, noteSent } from '../../../db/send/notes.ts'
import { findFree } from '../../../worker/local/ports.ts'
import { type Launched, launch } from '../../support/engine/process.ts'
import { type Service, startService } from '../../support/service.ts'

const ends: (() => unknown)[] = []
afterAll(async () => {
  for (const end of ends.reverse()) await end()
}, 60_000)

/** An installation whose API runs here, and whose processes get the keys that they are given. */
async function install() {
  const service = await startService({ rateLimits: false })
  ends.push(service.stop)
  const dataDir = mkdtempSync(join(tmpdir(), 'perdure-keys-'))
  ends.push(() => rmSync(dataDir, { recursive: true, force: true }))
  const port = await findFree()
  const env = (keys: string) => ({
    DATABASE_URL: service.database.url,
    DATA_DIR: dataDir,
    PORT: String(port),
    TEMPORAL_ADDRESS: inject('temporalAddress'),
    TASK_QUEUE: `keys-${randomBytes(4).toString('hex')}`,
    PERDURE_KEYS: keys,
  })
  /** Runs a program that is expected to end by itself. */
  const end = async (args: string[], keys: string) => {
    const program = launch(args, env(keys))
    ends.push(() => program.kill('SIGKILL'))
    return { code: await program.ended, output: program.output() }
  }
  /** Starts the API as a process, and stops it once it listens. */
  const startsWith = async (keys: string) => {
    const program = launch(['worker/api.ts'], env(keys))
    await program.until(() => program.output().includes('the API is listening'))
    program.kill('SIGTERM')
    await program.ended
  }
  const create = async (token: string) => {
    const json = { name: `c ${randomUUID()}`, type: 'HTTP_BEARER', teamId: service.teamId, data: { token } }
    const made = await service.call('POST', '/api/credentials', service.admin, json)
    expect(made.status).toBe(201)
    return made.body.id as string
  }
  return { ...service, end, startsWith, create, env }
}

const write = (id: string, key: Buffer) => `${id}:${key.toString('base64')}`
const own = ({ store }: Pick<Service, 'store'>) => write('k1', store.keys.byId.get('k1')!)
const open = async (
  { store, teamId }: Pick<Service, 'store' | 'teamId'>,
  id: string,
  keys: Keys = store.keys,
) => (await openTeamCredential({ ...store, keys }, teamId, id)).data

test('a key with other bytes under a known id is refused at the start of every kind of process, before anything is sealed', {
  tags: 'long',
  timeout: 180_000,
}, async () => {
  const host = await install()
  await host.startsWith(own(host))
  const wrong = write('k1', randomBytes(32))
  const kinds = { api: 2, worker: 2, start: 1 }
  const starts = Object.entries(kinds).map(async ([kind, code]) => {
    const ended = await host.end([`worker/${kind}.ts`], wrong)
    expect([kind, ended.code, ended.output]).toEqual([
      kind,
      code,
      expect.stringContaining('The key k1 (of PERDURE_KEYS, else of keys.json in DATA_DIR) has other bytes'),
    ])
    expect(ended.output).not.toMatch(/\.ts:\d/)
  })
  await Promise.all(starts)
  // What a command of the operator signs with it would break the audit chain.
  for (const command of [['migrate'], ['token', 'create'], ['keys', 'rotate']]) {
    const refused = await host.end(['worker/cli.ts', ...command], wrong)
    expect([command, refused.code, refused.output]).toEqual([
      command,
      2,
      expect.stringContaining('has other bytes'),
    ])
  }
  // A new key has an id of its own.
  await host.startsWith(`${write('k2', randomBytes(32))},${own(host)}`)
  const shown = await host.end(['worker/cli.ts', 'keys', 'show'], wrong)
  expect([shown.code, shown.output]).toEqual([1, expect.stringContaining('k1 has other bytes here')])
})

test('a key that credentials need and that is missing is refused at the start, and so is a wrong one that has no proof yet', {
  tags: 'long',
  timeout: 180_000,
}, async () => {
  const host = await install()
  await host.create('one')
  await host.create('two')
  const lacking = await host.end(['worker/api.ts'], write('k2', randomBytes(32)))
  expect([lacking.code, lacking.output]).toEqual([
    2,
    expect.stringContaining(
      'The key k1 is missing (in PERDURE_KEYS, else in keys.json in DATA_DIR): 2 credentials',
    ),
  ])
  // As a process of the release before has noted it.
  await sql`delete from seal_keys`.execute(host.store.db)
  await sql`insert into seal_keys (id) values ('k1')`.execute(host.store.db)
  const wrong = await host.end(['worker/api.ts'], write('k1', randomBytes(32)))
  expect([wrong.code, wrong.output]).toEqual([2, expect.stringContaining('has other bytes')])
  const { rows } = await sql<{ proof: Buffer | null }>`select proof from seal_keys`.execute(host.store.db)
  expect(rows).toEqual([{ proof: null }])
  await host.startsWith(own(host))
  await sql`delete from credentials`.execute(host.store.db)
  const later = await host.end(['worker/api.ts'], write('k1', randomBytes(32)))
  expect([later.code, later.output]).toEqual([2, expect.stringContaining('has other bytes')])
})

test('keys rotate goes on where it was killed, while credentials are read, made and changed', {
  tags: 'long',
  timeout: 180_000,
}, async () => {
  const host = await install()
  const { store, teamId } = host
  const k2 = randomBytes(32)
  const both = `${write('k2', k2)},${own(host)}`
  const rotated: Keys = { current: 'k2', byId: new Map([...store.keys.byId, ['k2', k2]]) }
  const first = await host.create('first')
  const many = Array.from({ length: 3_000 }, (_, at) => {
    const id = randomUUID()
    const data = { token: `secret ${at}` }
    const sealed = sealCredential(store.keys, { teamId, id, type: 'HTTP_BEARER' }, data)
    return { id, teamId, name: `many ${at}`, type: 'HTTP_BEARER', keys: ['token'], ...sealed }
  })
  for (let at = 0; at < many.length; at += 1_000)
    await store.db
      .insertInto('credentials')
      .values(many.slice(at, at + 1_000))
      .execute()
  const count = async (keyId: string) => {
    const rows = await store.db.selectFrom('credentials').select('id').where('keyId', '=', keyId).execute()
    return rows.length
  }

  const killed = launch(['worker/cli.ts', 'keys', 'rotate'], host.env(both))
  await killed.until(() => killed.output().includes('credentials are wrapped'))
  killed.kill('SIGKILL')
  await killed.ended
  const left = await count('k1')
  expect(left).toBeGreaterThan(0)
  expect(left).toBeLessThan(3_001)

  // The API here still has k1 as its first key, as processes have that were not started anew.
  ;(store.keys.byId as Map<string, Buffer>).set('k2', k2)
  const again: Launched = launch(['worker/cli.ts', 'keys', 'rotate'], host.env(both))
  let reads = 0
  let running = true
  const end = again.ended.finally(() => (running = false))
  const reader = (async () => {
    for (let at = 0; running; at = (at + 7) % many.length, reads++)
      expect(await open(host, many[at]!.id)).toEqual({ token: `secret ${at}` })
  })()
  let token = ''
  const writer = (async () => {
    for (let at = 0; running; at++) {
      token = `changed ${at}`
      const changed = await host.call('PUT', `/api/credentials/${first}`, host.admin, { data: { token } })
      expect(changed.status).toBe(200)
    }
  })()
  await Promise.all([end, reader, writer])
  expect(reads).toBeGreaterThan(10)
  expect(await open(host, first)).toEqual({ token })
  await host.end(['worker/cli.ts', 'keys', 'rotate'], both)
  expect([await count('k1'), await count('k2')]).toEqual([0, 3_001])
  for (const at of [0, 1_234, 2_999])
    expect(await open(host, many[at]!.id, rotated)).toEqual({ token: `secret ${at}` })

  const shown = await host.end(['worker/cli.ts', 'keys', 'show'], both)
  expect(shown).toEqual({
    code: 0,
    output: expect.stringMatching(
      /^k2 +current +3001 credentials, .*\nk1 +opens +0 credentials, .*[1-9]\d* audit entries\nNot counted/,
    ),
  })
  const { rows } = await sql<{
    details: object
  }>`select details from audit_entries where action = 'KEYS_ROTATED'`.execute(store.db)
  expect(rows.at(0)!.details).toMatchObject({ to: 'k2', closed: 0 })
  await host.startsWith(write('k2', k2))
  const verified = await host.end(['worker/cli.ts', 'audit', 'verify', teamId], both)
  expect([verified.code, verified.output]).toEqual([0, expect.stringContaining('intact')])
})

test('what cannot be opened is left as it is, and is named', { tags: 'long', timeout: 60_000 }, async () => {
  const host = await install()
  const [good, bad] = [await host.create('good'), await host.create('bad')]
  await sql`update credentials set wrapped = (select wrapped from credentials where id = ${good}) where id = ${bad}`.execute(
    host.store.db,
  )
  const rotated = await host.end(
    ['worker/cli.ts', 'keys', 'rotate'],
    `${write('k2', randomBytes(32))},${own(host)}`,
  )
  expect([rotated.code, rotated.output]).toEqual([
    1,
    expect.stringContaining(`The credential ${bad} cannot be opened, so it was left as it is`),
  ])
  expect(rotated.output).toContain('1 credentials were wrapped with k2 anew; 1 are now')
  const row = await host.store.db
    .selectFrom('credentials')
    .select('keyId')
    .where('id', '=', good)
    .executeTakeFirst()
  expect(row?.keyId).toBe('k2')
})

test('the messages that nodes have sent are counted with the key that they are sealed with', async () => {
  const { store, teamId, call, admin } = await install()
  const start = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }
  const made = await call('POST', '/api/workflows', admin, { name: 'w', teamId, nodes: [start], edges: [] })
  const begun = await call('POST', `/api/workflows/${made.body.id}/execute`, admin, { teamId })
  expect(begun.status).toBe(202)
  const place = { executionId: begun.body.id ?? begun.body.executionId, activity: 'send' }
  await noteSent(store, place, { call: randomUUID(), output: { messageId: 'm' } })
  await noteSending(store, { ...place, activity: 'other' }, { call: randomUUID(), again: false })
  expect(await listKeyUse(store)).toMatchObject([{ id: 'k1', others: { messages: 1 } }])
})
