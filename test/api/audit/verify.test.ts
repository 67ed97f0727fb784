import { expect, test } from 'vitest'
import { checkpointChain } from '../../../db/audit/checkpoints.ts'
import { makeChains } from '../../support/chains.ts'
import { keep } from '../../support/keep.ts'
import { startService } from '../../support/service.ts'

const service = await keep(startService({ rateLimits: false }))
const { team, act, tamper, rewrite, adaptHead, entries } = makeChains(service)
const { db } = service.store

const verify = (teamId: string, query = '', as = service.admin) =>
  service.call('GET', `/api/audit/team/${teamId}/verify${query}`, as)
const problem = async (teamId: string) => (await verify(teamId)).body.problem

test('an intact chain is valid, from its first entry to its last', async () => {
  const teamId = await team(5)
  const rows = await entries(teamId)
  const { status, body } = await verify(teamId)
  expect(status).toBe(200)
  expect(body).toEqual({
    valid: true,
    entriesVerified: 5,
    verifiedAt: expect.stringMatching(/Z$/),
    firstEntry: rows[0]!.ts.toISOString(),
    lastEntry: rows[4]!.ts.toISOString(),
    intactFrom: 1,
    breaks: [],
    erased: 0,
    last: { seq: 5, hash: rows[4]!.hash.toString('hex') },
  })
})

test('a broken chain is a 200 too, with the time and the number of the entry that is wrong', async () => {
  const teamId = await team(5)
  const rows = await entries(teamId)
  await tamper(
    `update audit_entries set action = 'TEAM_FORGED' where team_id = '${teamId}' and seq in (3, 4)`,
  )
  const { status, body } = await verify(teamId)
  expect(status).toBe(200)
  expect(body).toEqual({
    valid: false,
    entriesVerified: 5,
    verifiedAt: expect.stringMatching(/Z$/),
    brokenAtTimestamp: rows[2]!.ts.toISOString(),
    problem: { kind: 'entry_modified', seq: 3 },
    intactFrom: 1,
    breaks: [],
    erased: 0,
    last: { seq: 5, hash: rows[4]!.hash.toString('hex') },
  })
})

test('each kind of attack has its name', async () => {
  const attacks: [string, (id: string) => Promise<unknown>, object][] = [
    [
      'first',
      (id) => tamper(`delete from audit_entries where team_id = '${id}' and seq = 1`),
      { kind: 'gap', seq: 2 },
    ],
    [
      'middle',
      (id) => tamper(`delete from audit_entries where team_id = '${id}' and seq = 3`),
      { kind: 'gap', seq: 4 },
    ],
    [
      'last',
      (id) => tamper(`delete from audit_entries where team_id = '${id}' and seq = 4`),
      { kind: 'tail_truncated', seq: 4 },
    ],
    [
      'all',
      (id) => tamper(`delete from audit_entries where team_id = '${id}'`),
      { kind: 'tail_truncated', seq: 4 },
    ],
    [
      'cut tail and head',
      (id) => tamper(`delete from audit_entries where team_id = '${id}' and seq > 2; ${adaptHead(id)}`),
      { kind: 'head_mac_invalid', seq: 2 },
    ],
    [
      'head',
      (id) => tamper(`delete from audit_heads where team_id = '${id}'`),
      { kind: 'head_missing', seq: null },
    ],
    [
      'rewritten chain',
      (id) => rewrite(id, 2, (core) => core.replace('TEAM_UPDATED', 'TEAM_FORGED')),
      { kind: 'entry_forged', seq: 2 },
    ],
    [
      'swapped',
      (id) =>
        tamper(`update audit_entries set seq = -seq where team_id = '${id}' and seq in (2, 3);
          update audit_entries set seq = 5 + seq where team_id = '${id}' and seq < 0`),
      { kind: 'entry_modified', seq: 2 },
    ],
  ]
  for (const [name, attack, expected] of attacks) {
    const teamId = await team(4)
    await attack(teamId)
    expect([name, await problem(teamId)]).toEqual([name, expected])
    expect((await verify(teamId)).body.brokenAtTimestamp).toMatch(/^\d{4}-.*Z$/)
  }
})

test('an older state of the whole database is found out by what the caller has noted, and by a checkpoint', async () => {
  const teamId = await team(3)
  const noted = (await verify(teamId)).body.last
  const dump = await db
    .selectFrom('auditHeads')
    .selectAll()
    .where('teamId', '=', teamId)
    .executeTakeFirstOrThrow()
  await act(teamId)
  const later = (await verify(teamId)).body.last
  const restore = () =>
    tamper(`delete from audit_entries where team_id = '${teamId}' and seq > 3; delete from audit_heads where team_id = '${teamId}';
      insert into audit_heads values ('${teamId}', 3, '\\x${dump.hash.toString('hex')}', '${dump.ts.toISOString()}',
        '\\x${dump.mac.toString('hex')}', '${dump.keyId}')`)
  expect((await verify(teamId, `?seq=4&hash=${later.hash}`)).body).toMatchObject({
    valid: true,
    noted: 'found',
  })
  const signed = await checkpointChain(service.store, teamId)
  await restore()
  // The dump has the checkpoints of then, and their number.
  await tamper(
    `create table kept_checkpoints as select * from audit_checkpoints; delete from audit_checkpoints`,
  )
  expect(await problem(teamId)).toEqual({ kind: 'checkpoint_missing', seq: null })
  await tamper(
    `create table kept_counts as select * from audit_checkpoint_counts; delete from audit_checkpoint_counts`,
  )
  expect((await verify(teamId)).body.valid).toBe(true)
  expect((await verify(teamId, `?seq=3&hash=${noted.hash.toUpperCase()}`)).body).toMatchObject({
    valid: true,
    noted: 'found',
  })
  expect((await verify(teamId, `?seq=4&hash=${later.hash}`)).body).toMatchObject({
    valid: false,
    noted: 'missing',
    problem: { kind: 'checkpoint_mismatch', seq: 4 },
  })
  // Who leaves the checkpoints is found out without any note.
  await tamper(`insert into audit_checkpoints select * from kept_checkpoints; drop table kept_checkpoints;
    insert into audit_checkpoint_counts select * from kept_counts; drop table kept_counts`)
  expect(signed!.seq).toBe(4)
  expect(await problem(teamId)).toEqual({ kind: 'checkpoint_mismatch', seq: 4 })
})

test('seq and hash are only taken together, and must be what they should', async () => {
  const teamId = await team(1)
  const errors = async (query: string) => {
    const { status, body } = await verify(teamId, query)
    return [status, body.errors]
  }
  expect(await errors('?seq=1')).toEqual([400, [{ path: 'hash', message: 'is required with seq' }]])
  expect(await errors(`?hash=${'a'.repeat(64)}`)).toEqual([
    400,
    [{ path: 'seq', message: 'is required with hash' }],
  ])
  expect((await errors('?seq=0&hash=xyz'))[1]).toHaveLength(2)
})

test('only an ADMIN of the team verifies', async () => {
  const teamId = await team(1)
  const builder = await service.signUp('BUILDER', teamId)
  expect((await verify(teamId, '', builder.cookie)).status).toBe(403)
  expect((await verify(teamId, '', await service.token('VIEWER', service.admin, teamId))).status).toBe(403)
  expect((await verify(teamId, '', (await service.otherTeam()).cookie)).status).toBe(403)
  expect((await verify(crypto.randomUUID())).status).toBe(404)
})

test('a change of any column of a checkpoint or of a public key is found', async () => {
  const teamId = await team(4)
  await checkpointChain(service.store, teamId)
  expect(await problem(teamId)).toBeUndefined()
  const flips: Record<string, string> = {
    team_id: `'${await team(2)}'`,
    seq: 'seq - 1',
    hash: 'set_byte(hash, 3, get_byte(hash, 3) # 1)',
    at: "at + interval '1 millisecond'",
    key_id: "'k2'",
    signature: 'set_byte(signature, 3, get_byte(signature, 3) # 1)',
  }
  for (const [column, flip] of Object.entries(flips)) {
    await tamper(
      `create table kept as select * from audit_checkpoints; update audit_checkpoints set ${column} = ${flip}`,
    )
    const moved = column === 'team_id' ? flip.slice(1, -1) : teamId
    expect([column, (await problem(moved))?.kind]).toEqual([column, 'checkpoint_invalid'])
    await tamper(
      `delete from audit_checkpoints; insert into audit_checkpoints select * from kept; drop table kept`,
    )
    expect(await problem(teamId)).toBeUndefined()
  }
  const keyFlips = {
    key_id: "'k0'",
    public_key: 'set_byte(public_key, 3, get_byte(public_key, 3) # 1)',
    created_at: "created_at + interval '1 second'",
    mac: 'set_byte(mac, 3, get_byte(mac, 3) # 1)',
    mac_key_id: "'k0'",
  }
  for (const [column, flip] of Object.entries({ ...keyFlips, created: '' }).slice(0, 5)) {
    await tamper(
      `create table kept as select * from audit_public_keys; update audit_public_keys set ${column} = ${flip}`,
    )
    expect([column, await problem(teamId)]).toEqual([column, { kind: 'key_invalid', seq: null }])
    await tamper(
      `delete from audit_public_keys; insert into audit_public_keys select * from kept; drop table kept`,
    )
    expect(await problem(teamId)).toBeUndefined()
  }
})
