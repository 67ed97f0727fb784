import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { checkpointChain } from '../../../../db/audit/checkpoints.ts'
import { checkRange } from '../../../../db/audit/verify/ranges.ts'
import { createChainVerifier } from '../../../../db/audit/verify/verifier.ts'
import { verifyAudit } from '../../../../db/audit/verify/verify.ts'
import { change } from '../../../../db/change.ts'
import { readSnapshot } from '../../../../db/connection.ts'
import { serviceScope } from '../../../../db/scope.ts'
import { makeChains } from '../../../support/chains.ts'
import { keep } from '../../../support/keep.ts'
import { startService } from '../../../support/service.ts'

const service = await keep(startService({ rateLimits: false }))
const { team, oldTeam, actAt, act, tamper, rewrite, adaptHead } = makeChains(service)
const { store } = service
const { url } = service.database
const verify = createChainVerifier({ url, threads: 2, least: 0 })

/** What threads and the walk without them say of a chain: they must agree in all. */
async function both(teamId: string, noted?: { seq: number; hash: string }) {
  const found = await verify(store, teamId, noted)
  expect(found).toEqual(await verifyAudit(store, teamId, noted))
  return found.findings.map(({ verdict, seq }) => `${verdict} ${seq}`)
}

/** Whether the fast check of a range finds it clean: it must agree with the walk, which is slower. */
async function isClean(teamId: string, to: number): Promise<boolean> {
  const clean = await readSnapshot(store.db).execute(async (db) => {
    const { rows } = await sql<{ snapshot: string }>`select pg_export_snapshot() as snapshot`.execute(db)
    return (await checkRange(url, store.keys, { teamId, from: 1, to, snapshot: rows[0]!.snapshot })).clean
  })
  const { findings } = await verifyAudit(store, teamId)
  expect(clean).toBe(findings.length === 0)
  return clean
}

/** Entries with all that the columns can hold. */
async function hostileTeam(): Promise<string> {
  const teamId = await team(2)
  await actAt(teamId, new Date(), { old: true })
  const about = {
    ip: '::1\0"\\',
    requestId: 'a"b\\c\u0001\u007f\u2028é😀',
    userAgent: `"};{"a":\t\r\n\b\f😀${'\ud800'}`,
  }
  const actor = { kind: 'USER', id: service.user.id, name: 'Grace "\\ \u0000 \u001f Ǆ' } as const
  const scope = { ...serviceScope(store, actor, [[teamId, 'ADMIN']], { userId: service.user.id }), ...about }
  for (const details of [
    { k: '\u2028"\\\u0001😀é', '': [[], {}, null, 1e21, -0, 1.5e-7] },
    { long: 'é'.repeat(9_000) },
    {},
  ])
    await change(scope, 'WORKFLOW_UPDATED', teamId, async () => ({
      result: 0,
      resourceId: crypto.randomUUID(),
      details,
    }))
  return teamId
}

test('threads find an intact chain intact, whatever its texts are', {
  tags: 'long',
  timeout: 120_000,
}, async () => {
  const teamId = await hostileTeam()
  expect(await both(teamId)).toEqual([])
  const { last } = await verifyAudit(store, teamId)
  expect(await both(teamId, last!)).toEqual([])
  expect(await both(teamId, { ...last!, hash: '0'.repeat(64) })).toEqual(['checkpoint_mismatch 6'])
  expect(await both(teamId, { seq: 99, hash: last!.hash })).toEqual(['checkpoint_mismatch 99'])
  expect(await both(await team(1))).toEqual([])
})

test('a change of any column of any row of any version is found, as without threads', {
  tags: 'long',
  timeout: 120_000,
}, async () => {
  const teamId = await hostileTeam()
  const { rows: columns } = await sql<{ name: string; type: string }>`
    select column_name as name, data_type as type from information_schema.columns
    where table_name = 'audit_entries'`.execute(store.db)
  expect(columns).toHaveLength(27)
  const flips: Record<string, (name: string) => string[]> = {
    uuid: (name) => ['gen_random_uuid()', `nullif(${name}, ${name})`],
    bytea: (name) => [
      `set_byte(${name}, 3, get_byte(${name}, 3) # 1)`,
      `${name} || '\\x00'`,
      `nullif(${name}, ${name})`,
    ],
    bigint: (name) => [`${name} + 100`],
    smallint: (name) => [`3 - ${name}`, `${name} + 256`],
    text: (name) => [`coalesce(${name}, '') || 'x'`, `nullif(${name}, ${name})`],
    json: (name) => [`'{"i":99}'`, `(${name}::text || ' ')::json`],
    'timestamp with time zone': (name) => [
      `${name} + interval '1 millisecond'`,
      `'infinity'`,
      `(to_char(${name}, 'YYYY-MM-DD HH24:MI:SS.MS') || ' BC')::timestamptz`,
    ],
  }
  const nullable =
    `actor_id resource_id user_id access_id actor_role actor_name request_id src_ip user_agent mac
    key_id`.split(/\s+/)
  const rows = `from audit_entries where team_id = '${teamId}'`
  for (const seq of [1, 3, 4]) {
    for (const { name, type } of columns) {
      for (const flip of flips[type]!(name)) {
        if (flip.startsWith('nullif') && !nullable.includes(name)) continue
        // What is null already cannot be taken away.
        const { rows: same } = await sql<{ same: boolean }>`
          select ${sql.ref(name)} is null as same from audit_entries where team_id = ${teamId} and seq = ${seq}`.execute(
          store.db,
        )
        if (flip.startsWith('nullif') && same[0]!.same) continue
        await tamper(`create table kept as select * ${rows};
          update audit_entries set ${name} = ${flip} where team_id = '${teamId}' and seq = ${seq}`)
        expect([seq, name, flip, await isClean(teamId, 6)]).toEqual([seq, name, flip, false])
        await tamper(`delete from audit_entries e using kept k where e.core = k.core or e.id = k.id or e.hash = k.hash;
          insert into audit_entries select * from kept; drop table kept`)
      }
    }
  }
  expect(await isClean(teamId, 6)).toBe(true)
})

test('what is missing, too much, moved or rewritten is found, as without threads', {
  tags: 'long',
  timeout: 120_000,
}, async () => {
  const attacks: ((id: string) => Promise<unknown>)[] = [
    (id) => tamper(`delete from audit_entries where team_id = '${id}' and seq = 1`),
    (id) => tamper(`delete from audit_entries where team_id = '${id}' and seq = 3`),
    (id) => tamper(`delete from audit_entries where team_id = '${id}' and seq = 4`),
    (id) => tamper(`delete from audit_entries where team_id = '${id}'`),
    (id) => tamper(`delete from audit_heads where team_id = '${id}'`),
    (id) => tamper(`delete from audit_entries where team_id = '${id}' and seq > 2; ${adaptHead(id)}`),
    (id) => tamper(`update audit_entries set seq = -7 where team_id = '${id}' and seq = 2`),
    (id) => tamper(`update audit_heads set ts = ts + interval '1 ms' where team_id = '${id}'`),
    (id) => rewrite(id, 2, (core) => core.replace('TEAM_UPDATED', 'TEAM_FORGED')),
    (id) =>
      tamper(`insert into audit_entries select (jsonb_populate_record(e, jsonb_build_object('id', gen_random_uuid(),
        'seq', 9, 'event_id', gen_random_uuid(), 'prev', '\\x00'))).* from audit_entries e where team_id = '${id}' and seq = 4`),
  ]
  for (const attack of attacks) {
    const teamId = await team(4)
    await attack(teamId)
    expect([attack.toString(), (await both(teamId)).length]).not.toEqual([attack.toString(), 0])
  }
})

test('chains that were purged, reopened, signed or closed are the same to both', {
  tags: 'long',
  timeout: 120_000,
}, async () => {
  const purged = await oldTeam([500, 400, 10])
  await service.call('POST', `/api/audit/team/${purged}/purge`, service.admin)
  expect(await both(purged)).toEqual([])
  const signed = await team(4)
  await checkpointChain(store, signed)
  await act(signed)
  expect(await both(signed)).toEqual([])
  const closed = await team(3)
  await service.call('DELETE', `/api/teams/${closed}`, service.admin)
  expect(await both(closed)).toEqual([])
  await tamper(`update audit_checkpoints set hash = sha256(hash) where team_id = '${signed}'`)
  // One that nobody has signed does not count.
  expect(await both(signed)).toEqual(['checkpoint_invalid 4', 'checkpoint_missing null'])
})

test('while entries are appended, what is verified is the chain of one moment', {
  tags: 'long',
  timeout: 120_000,
}, async () => {
  const teamId = await team(3)
  const appending = (async () => {
    for (let i = 0; i < 30; i++) await act(teamId)
  })()
  for (let i = 0; i < 3; i++) expect((await verify(store, teamId, undefined)).findings).toEqual([])
  await appending
  expect((await verify(store, teamId, undefined)).entries).toBe(33)
})

test('a third verification of one team at once is refused, and one that is given up ends', async () => {
  const teamId = await team(3)
  // None of them gets further until the third is there.
  const holder = await store.db.startTransaction().execute()
  await sql`lock table audit_entries in access exclusive mode`.execute(holder)
  const several = [1, 2, 3].map(() => verify(store, teamId, undefined).then(({ findings }) => findings))
  const refused = await Promise.race(several.map((one) => one.catch((error) => error)))
  expect(refused).toMatchObject({ code: 'THROTTLED', retryAfter: 10 })
  await holder.rollback().execute()
  const ended = await Promise.allSettled(several)
  expect(ended.filter(({ status }) => status === 'fulfilled')).toHaveLength(2)
  const leaving = new AbortController()
  const left = verify(store, teamId, undefined, leaving.signal)
  leaving.abort(new Error('gone'))
  await expect(left).rejects.toThrow('gone')
  expect((await verify(store, teamId, undefined)).findings).toEqual([])
}, 120_000)

test('threads that reach no database fail, and do not call the chain broken', async () => {
  const teamId = await team(2)
  const lost = new URL(url)
  lost.pathname = '/gone'
  const failing = createChainVerifier({ url: lost.href, least: 0 })
  await expect(failing(store, teamId, undefined)).rejects.toThrow('gone')
}, 120_000)
