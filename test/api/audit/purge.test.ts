import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { reopenChain } from '../../../db/audit/reopen.ts'
import { purgeByPolicy } from '../../../db/audit/retention/schedule.ts'
import { serviceScope } from '../../../db/scope.ts'
import { makeChains } from '../../support/chains.ts'
import { keep } from '../../support/keep.ts'
import { type Body, startService } from '../../support/service.ts'

const service = await keep(startService({ rateLimits: false }))
const { team, oldTeam, actAt, act, tamper, entries, verdicts } = makeChains(service)
const { store } = service

const path = (teamId: string, rest: string) => `/api/audit/team/${teamId}/${rest}`
const keepFor = (teamId: string, retentionDays: number, more = {}) =>
  service.call('PUT', path(teamId, 'retention'), service.admin, { retentionDays, ...more })
const purge = (teamId: string, as = service.admin) => service.call('POST', path(teamId, 'purge'), as)
const verify = async (teamId: string, query = '') =>
  (await service.call('GET', path(teamId, `verify${query}`), service.admin)).body

/** A team with two years of entries, kept for 30 days; `keepFor` itself is its last entry. */
async function longTeam(days = [700, 400, 100, 40, 31, 29, 5]): Promise<string> {
  const teamId = await oldTeam(days)
  await keepFor(teamId, 30)
  return teamId
}

const DEFAULTS = { retentionDays: 365, autoDeleteEnabled: false, reportRetentionDays: 365 }

test('the policy is 365 days and nothing by itself, until an ADMIN sets another', async () => {
  const teamId = await team(1)
  const first = { ...DEFAULTS, retentionDays: 30, autoDeleteEnabled: true }
  const read = async () => (await service.call('GET', path(teamId, 'retention'), service.admin)).body
  expect(await read()).toEqual({ ...DEFAULTS, lastPurgedAt: null })
  const { status, body } = await keepFor(teamId, 30, { autoDeleteEnabled: true })
  expect([status, body]).toEqual([200, { ...first, lastPurgedAt: null }])
  expect((await keepFor(teamId, 31)).body).toMatchObject({ retentionDays: 31, autoDeleteEnabled: true })
  expect((await keepFor(teamId, 31)).status).toBe(200)
  expect(await read()).toEqual({ ...first, retentionDays: 31, lastPurgedAt: null })
  const changes = (await entries(teamId)).filter(({ action }) => action === 'AUDIT_RETENTION_UPDATED')
  expect(changes.map(({ details }) => details)).toEqual([
    {
      changed: ['retentionDays', 'autoDeleteEnabled'],
      before: { retentionDays: 365, autoDeleteEnabled: false },
      after: { retentionDays: 30, autoDeleteEnabled: true },
    },
    { changed: ['retentionDays'], before: { retentionDays: 30 }, after: { retentionDays: 31 } },
  ])
})

test('a period below 30 days, and what is no period, is refused', async () => {
  const teamId = await team(1)
  const wrong = [29, 0, -1, 36_501, 30.5, '30', null, undefined, 1e300]
  for (const days of wrong) {
    const { status, body } = await keepFor(teamId, days as number)
    expect([days, status, body.errors?.map(({ path }: Body) => path)]).toEqual([days, 400, ['retentionDays']])
  }
  const { body } = await service.call('PUT', path(teamId, 'retention'), service.admin, {
    retentionDays: 1,
    autoDeleteEnabled: 'yes',
  })
  expect(body.errors.map(({ path }: Body) => path).sort()).toEqual(['autoDeleteEnabled', 'retentionDays'])
  expect((await keepFor(teamId, 30)).status).toBe(200)
  expect((await keepFor(teamId, 36_500)).status).toBe(200)
})

test('a purge removes what is older than the period, says so, and the chain is intact from there on', async () => {
  const teamId = await longTeam()
  const before = await entries(teamId)
  const first = await verify(teamId)
  const { status, body } = await purge(teamId)
  expect([status, body]).toEqual([
    200,
    { purgedCount: 5, oldestRemaining: before[5]!.ts.toISOString(), purgedAt: expect.stringMatching(/Z$/) },
  ])
  const after = await entries(teamId)
  expect(after.map(({ seq, action }) => [seq, action])).toEqual([
    [6, 'TEAM_UPDATED'],
    [7, 'TEAM_UPDATED'],
    [8, 'AUDIT_RETENTION_UPDATED'],
    [9, 'AUDIT_PURGED'],
  ])
  expect(after[3]!.details).toEqual({
    fromSeq: 1,
    toSeq: 5,
    count: 5,
    lastHash: before[4]!.hash.toString('hex'),
    cutoff: expect.stringMatching(/Z$/),
    retentionDays: 30,
  })
  expect(await verify(teamId)).toMatchObject({
    valid: true,
    entriesVerified: 4,
    intactFrom: 6,
    firstEntry: before[5]!.ts.toISOString(),
    last: { seq: 9 },
  })
  // What was noted before.
  expect(await verify(teamId, `?seq=8&hash=${first.last.hash}`)).toMatchObject({
    valid: true,
    noted: 'found',
  })
  const base = before[4]!.hash.toString('hex')
  expect(await verify(teamId, `?seq=5&hash=${base}`)).toMatchObject({ valid: true, noted: 'found' })
  expect(await verify(teamId, `?seq=2&hash=${base}`)).toMatchObject({ valid: true, noted: 'purged' })
  const listed = await service.call('GET', `/api/audit/team/${teamId}`, service.admin)
  expect([listed.body.totalElements, listed.body.content.length]).toEqual([4, 4])
  const policy = await service.call('GET', path(teamId, 'retention'), service.admin)
  expect(policy.body.lastPurgedAt).toBe(body.purgedAt)
  // Once more: there is nothing to remove, and that is an entry too.
  expect((await purge(teamId)).body.purgedCount).toBe(0)
  expect((await act(teamId)).status).toBe(200)
  expect(await verify(teamId)).toMatchObject({ valid: true, entriesVerified: 6, intactFrom: 6 })
})

test('an entry goes only when its age is the period, to the millisecond, by the clock of the database', async () => {
  const minute = 1 / 1_440
  for (const [ago, gone] of [
    [29, 0],
    [30 - minute, 0],
    [30 + minute, 1],
    [31, 1],
  ] as const) {
    const teamId = await longTeam([ago, 1])
    expect([ago, (await purge(teamId)).body.purgedCount]).toEqual([ago, gone])
    expect(await verdicts(teamId)).toEqual([])
  }
  const longer = await longTeam([99, 89, 1])
  await keepFor(longer, 90)
  expect((await purge(longer)).body.purgedCount).toBe(1)
})

test('everything may be old enough: the entry of the purge is left', async () => {
  const teamId = await oldTeam([600, 500, 400])
  const { body } = await purge(teamId)
  const [last] = await entries(teamId)
  expect(body).toMatchObject({ purgedCount: 3, oldestRemaining: last!.ts.toISOString() })
  expect(await verify(teamId)).toMatchObject({
    valid: true,
    entriesVerified: 1,
    intactFrom: 4,
    last: { seq: 4 },
  })
  expect((await act(teamId)).status).toBe(200)
  expect(await verdicts(teamId)).toEqual([])
})

test('purges follow each other, each with its anchor', async () => {
  const teamId = await longTeam([100, 95, 91, 60, 40])
  await keepFor(teamId, 90)
  expect((await purge(teamId)).body.purgedCount).toBe(3)
  await keepFor(teamId, 30)
  expect((await purge(teamId)).body.purgedCount).toBe(2)
  expect(await verify(teamId)).toMatchObject({ valid: true, intactFrom: 6 })
})

test('many purges and appends at the same time leave one chain that verifies', async () => {
  const teamId = await longTeam([400, 300, 200, 100, 40, 10])
  const [purges] = await Promise.all([
    Promise.all(Array.from({ length: 5 }, () => purge(teamId))),
    Promise.all(Array.from({ length: 20 }, () => act(teamId))),
  ])
  expect(purges.map(({ status }) => status)).toEqual(Array(5).fill(200))
  expect(purges.reduce((sum, { body }) => sum + body.purgedCount, 0)).toBe(5)
  expect(await verify(teamId)).toMatchObject({ valid: true, entriesVerified: 27, intactFrom: 6 })
})

test('what does not verify is not removed', async () => {
  const teamId = await longTeam()
  await tamper(`update audit_entries set actor_name = 'Mallory' where team_id = '${teamId}' and seq = 2`)
  const { status, body } = await purge(teamId)
  expect([status, body.message]).toEqual([409, expect.stringContaining('entry 2')])
  expect((await entries(teamId)).length).toBe(8)
})

test('a purge of a chain with a broken head is refused, and removes nothing', async () => {
  const teamId = await longTeam()
  await tamper(`update audit_heads set mac = sha256(mac) where team_id = '${teamId}'`)
  const { status, body } = await purge(teamId)
  expect([status, body.code]).toEqual([503, 'AUDIT_CHAIN_BROKEN'])
  expect((await entries(teamId)).length).toBe(8)
  expect(
    (await store.db.selectFrom('auditAnchors').selectAll().where('teamId', '=', teamId).execute()).length,
  ).toBe(0)
})

test('entries that a reopening proves wait for it; then the break is named for ever', async () => {
  const teamId = await oldTeam([200, 150, 120])
  await tamper(`update audit_entries set actor_name = 'Mallory' where team_id = '${teamId}' and seq = 2`)
  const operator = serviceScope(store, { kind: 'SYSTEM', id: null, name: 'cli' }, [], { instanceAdmin: true })
  await reopenChain(operator, teamId, { by: 'me', note: null })
  expect(await verify(teamId)).toMatchObject({ valid: true, breaks: [{ seq: 4 }] })
  await keepFor(teamId, 30)
  expect((await purge(teamId)).body.purgedCount).toBe(0)
  expect((await entries(teamId)).at(-1)!.details).toMatchObject({ count: 0, provenBy: 4 })
  expect(await verify(teamId)).toMatchObject({ valid: true, entriesVerified: 6, breaks: [{ seq: 4 }] })
})

test('the anchor: forged, altered in any column, taken away, or for another chain', async () => {
  const teamId = await longTeam()
  await purge(teamId)
  const other = await longTeam()
  const problem = async (id = teamId) => (await verify(id)).problem
  const flips: Record<string, string> = {
    base_seq: 'base_seq + 1',
    base_hash: 'set_byte(base_hash, 3, get_byte(base_hash, 3) # 1)',
    base_ts: "base_ts + interval '1 millisecond'",
    purge_seq: 'purge_seq - 1',
    cutoff: "cutoff - interval '1 day'",
    breaks: `'[{"seq":1,"at":"x"}]'`,
    created_at: "created_at + interval '1 second'",
    key_id: "'k2'",
    signature: 'set_byte(signature, 3, get_byte(signature, 3) # 1)',
  }
  const { rows } = await sql<{ name: string }>`select column_name as name from information_schema.columns
    where table_name = 'audit_anchors'`.execute(store.db)
  expect(rows.map(({ name }) => name).sort()).toEqual(['team_id', ...Object.keys(flips)].sort())
  const restore = `delete from audit_anchors; insert into audit_anchors select * from kept; drop table kept`
  const one = `where team_id = '${teamId}'`
  for (const [column, flip] of Object.entries(flips)) {
    await tamper(
      `create table kept as select * from audit_anchors; update audit_anchors set ${column} = ${flip} ${one}`,
    )
    const found = await verdicts(teamId)
    expect([column, found]).toEqual([
      column,
      expect.arrayContaining([expect.stringMatching(/^anchor_invalid/)]),
    ])
    expect([column, found]).toEqual([column, expect.arrayContaining(['gap 6', 'anchor_missing 9'])])
    await tamper(restore)
    expect(await problem()).toBeUndefined()
  }
  await tamper(
    `create table kept as select * from audit_anchors; update audit_anchors set team_id = '${other}' ${one}`,
  )
  expect(await verdicts(other)).toContain('anchor_invalid 9')
  expect(await problem()).toEqual({ kind: 'gap', seq: 6 })
  await tamper(restore)
  await tamper(`create table kept as select * from audit_anchors; delete from audit_anchors ${one}`)
  expect(await problem()).toEqual({ kind: 'gap', seq: 6 })
  await tamper(restore)
  // The entry that tells of the purge is gone, and the chain ends before it.
  await tamper(`delete from audit_entries ${one} and seq = 9`)
  expect(await verdicts(teamId)).toContain('anchor_invalid 9')
})

test('without an anchor the database removes nothing, nor what is younger than 30 days even with one', async () => {
  const teamId = await oldTeam([100, 50, 29])
  const { db } = store
  await expect(sql`delete from audit_entries where team_id = ${teamId}`.execute(db)).rejects.toThrow(
    'cannot be',
  )
  const anchor = (seq: number, cutoff: string) => sql`insert into audit_anchors
    select team_id, seq, hash, ts, 4, ${sql.raw(cutoff)}, '[]', now(), 'k1', '' from audit_entries
    where team_id = ${teamId} and seq = ${seq}`
  // No entry tells of a purge.
  await expect(anchor(1, "now() - interval '31 days'").execute(db)).rejects.toThrow('cannot be purged')
  // The cutoff is too late, and the base is not before it.
  await expect(anchor(3, "now() - interval '29 days'").execute(db)).rejects.toThrow('cannot be purged')
  await tamper(`insert into audit_anchors select team_id, seq, hash, ts, 4, now() - interval '31 days', '[]', now(),
    'k1', '' from audit_entries where team_id = '${teamId}' and seq = 3`)
  const { rows } = await sql<{ n: number }>`select purge_audit_entries(${teamId}, 3, 2) as n`.execute(db)
  expect(rows).toEqual([{ n: 2 }])
  await expect(sql`select purge_audit_entries(${teamId}, 3, 10)`.execute(db)).rejects.toThrow('cannot be')
})

test('the schedule removes what is due once a day, of the teams that want it, and finishes what was begun', async () => {
  const [wanted, unwanted] = [await longTeam(), await longTeam()]
  await keepFor(wanted, 30, { autoDeleteEnabled: true })
  const failures: unknown[] = []
  const run = () => purgeByPolicy(store, (_, error) => failures.push(error))
  expect(await run()).toBe(5)
  expect(await entries(unwanted)).toHaveLength(8)
  const left = await entries(wanted)
  expect(left.at(-1)).toMatchObject({
    action: 'AUDIT_PURGED',
    actorKind: 'SYSTEM',
    actorName: 'audit retention',
  })
  await actAt(wanted, new Date())
  expect(await run()).toBe(0)
  await sql`update audit_retention set looked_at = now() - interval '25 hours'`.execute(store.db)
  // Nothing is due: there is no entry.
  expect(await run()).toBe(0)
  expect(await entries(wanted)).toHaveLength(left.length + 1)
  expect(await verdicts(wanted)).toEqual([])
  expect(failures).toEqual([])
})

test('what a process leaves behind that ends after the anchor counts no more, and is removed later', async () => {
  const teamId = await longTeam()
  await tamper(`create table kept as select * from audit_entries where team_id = '${teamId}' and seq < 6`)
  await purge(teamId)
  await tamper('insert into audit_entries select * from kept; drop table kept')
  expect(await verify(teamId)).toMatchObject({ valid: true, entriesVerified: 4, intactFrom: 6 })
  const { body } = await service.call('GET', `/api/audit/team/${teamId}?to=2100-01-01`, service.admin)
  expect([body.totalElements, body.content.at(-1).seq]).toEqual([4, 6])
  // An anchor that this installation has not signed removes nothing, and keeps the others from nothing.
  const forged = await longTeam()
  await tamper(`insert into audit_anchors select team_id, seq, hash, ts, 9, now() - interval '31 days', '[]', now(),
    'k1', '' from audit_entries where team_id = '${forged}' and seq = 4`)
  await purgeByPolicy(store, () => {})
  expect((await entries(teamId)).map(({ seq }) => seq)).toEqual([6, 7, 8, 9])
  expect(await entries(forged)).toHaveLength(8)
})

test('a team whose chain does not verify does not keep the schedule from the others', async () => {
  const [broken, intact] = [await longTeam(), await longTeam()]
  for (const teamId of [broken, intact]) await keepFor(teamId, 30, { autoDeleteEnabled: true })
  await tamper(`update audit_entries set actor_name = 'Mallory' where team_id = '${broken}' and seq = 2;
    update audit_retention set looked_at = null`)
  const failures: string[] = []
  expect(
    await purgeByPolicy(store, (teamId, error) => failures.push(`${teamId} ${error}`)),
  ).toBeGreaterThanOrEqual(5)
  expect(failures).toEqual([expect.stringContaining(`${broken} Fault: Nothing was removed`)])
  expect((await entries(intact)).length).toBe(5)
})

test('only an ADMIN reads and sets the policy, and purges', async () => {
  const teamId = await longTeam()
  const builder = await service.signUp('BUILDER', teamId)
  for (const [method, rest, json] of [
    ['GET', 'retention', undefined],
    ['PUT', 'retention', { retentionDays: 40 }],
    ['POST', 'purge', undefined],
  ] as const) {
    expect((await service.call(method, path(teamId, rest), builder.cookie, json)).status).toBe(403)
    expect((await service.call(method, path(crypto.randomUUID(), rest), service.admin, json)).status).toBe(
      404,
    )
  }
  // Of the rest, three tell of what the BUILDER was refused.
  expect((await entries(teamId)).length).toBe(11)
})
