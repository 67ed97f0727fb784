import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { listChains, verifyAudit } from '../../../../db/audit/verify/verify.ts'
import { change } from '../../../../db/change.ts'
import { createTeam, deleteTeam } from '../../../../db/people/teams.ts'
import type { Scope } from '../../../../db/scope.ts'
import { onServer } from '../../../support/database.ts'
import { keep } from '../../../support/keep.ts'
import { makeKeys, startService } from '../../../support/service.ts'

const service = await keep(startService())
const scope: Scope = {
  store: service.store,
  actor: { kind: 'USER', id: service.user.id, name: 'Grace Hopper' },
  userId: service.user.id,
  instanceAdmin: true,
  access: null,
  roles: new Map(),
  requestId: null,
  ip: null,
  userAgent: null,
}

const inTeam = (teamId: string): Scope => ({ ...scope, roles: new Map([[teamId, 'ADMIN']]) })

async function makeChain(entries: number): Promise<string> {
  const { id } = await createTeam(scope, { name: 'Chain' })
  for (let i = 1; i < entries; i++) {
    await change(inTeam(id), 'WORKFLOW_UPDATED', id, async () => ({
      result: undefined,
      resourceId: null,
      details: { i, text: 'é \u2028 "quoted"' },
    }))
  }
  return id
}

/** Changes entries as the owner of the database can, with the trigger disabled. */
const tamper = (statement: string) =>
  onServer(
    service.database.url,
    `alter table audit_entries disable trigger user; ${statement}; alter table audit_entries enable trigger user`,
  )
const verdicts = async (teamId: string) =>
  (await verifyAudit(service.store, teamId)).findings.map(({ verdict, seq }) => `${verdict} ${seq}`)

test('an intact chain of more than one page has no findings', { tags: 'long', timeout: 60_000 }, async () => {
  const teamId = await makeChain(520)
  const { last, entries, closed, findings } = await verifyAudit(service.store, teamId)
  expect({ entries, closed, findings }).toEqual({ entries: 520, closed: false, findings: [] })
  expect(last).toEqual({ seq: 520, hash: expect.stringMatching(/^[\da-f]{64}$/) })
  expect(await listChains(service.store)).toEqual(expect.arrayContaining([teamId, service.teamId]))
  await tamper(`update audit_entries set action = 'X' where team_id = '${teamId}' and seq in (500, 501)`)
  expect(await verdicts(teamId)).toEqual(['entry_modified 500', 'entry_modified 501'])
})

test('a change of any column of any row is found at its entry', async () => {
  const teamId = await makeChain(3)
  const columns = await sql<{ name: string; type: string }>`select column_name as name, data_type as type
    from information_schema.columns where table_name = 'audit_entries'`.execute(service.store.db)
  expect(columns.rows.length).toBe(27)
  const flips: Record<string, (name: string) => string> = {
    uuid: () => 'gen_random_uuid()',
    bytea: (name) => `set_byte(${name}, 3, get_byte(${name}, 3) # 1)`,
    bigint: (name) => `${name} + 100`,
    smallint: (name) => `3 - ${name}`,
    text: (name) => `coalesce(${name}, '') || 'x'`,
    json: () => `'{"i":99}'::json`,
    'timestamp with time zone': (name) => `${name} + interval '1 millisecond'`,
  }
  for (const seq of [1, 2, 3]) {
    for (const { name, type } of columns.rows) {
      const one = `team_id = '${teamId}' and seq = ${seq}`
      await tamper(`create table kept as select * from audit_entries where ${one};
        update audit_entries set ${name} = ${flips[type]!(name)} where ${one}`)
      const found = await verdicts(teamId)
      const expected =
        name !== 'team_id' && name !== 'seq'
          ? [`${name === 'mac' || name === 'key_id' ? 'entry_forged' : 'entry_modified'} ${seq}`]
          : seq < 3
            ? [`gap ${seq + 1}`]
            : name === 'seq'
              ? ['gap 103']
              : ['tail_truncated 3']
      expect([name, seq, found]).toEqual([name, seq, expect.arrayContaining(expected)])
      await tamper(`delete from audit_entries e using kept k where e.core = k.core or e.id = k.id or e.hash = k.hash;
        insert into audit_entries select * from kept; drop table kept`)
      expect(await verdicts(teamId)).toEqual([])
    }
  }
}, 60_000)

test('missing, swapped, moved and duplicate entries have different verdicts', async () => {
  const cut = async (where: string) => {
    const teamId = await makeChain(4)
    await tamper(`delete from audit_entries where team_id = '${teamId}' and ${where}`)
    return verdicts(teamId)
  }
  expect(await cut('seq = 1')).toEqual(['gap 2', 'link_broken 2'])
  expect(await cut('seq = 2')).toEqual(['gap 3', 'link_broken 3'])
  expect(await cut('seq > 2')).toEqual(['tail_truncated 4'])
  expect(await cut('true')).toEqual(['tail_truncated 4'])

  const swapped = await makeChain(4)
  await tamper(`update audit_entries set seq = -seq where team_id = '${swapped}' and seq in (2, 3);
    update audit_entries set seq = 5 + seq where team_id = '${swapped}' and seq < 0`)
  expect(await verdicts(swapped)).toEqual([
    'entry_modified 2',
    'link_broken 2',
    'entry_modified 3',
    'link_broken 3',
    'link_broken 4',
  ])

  const [from, to] = [await makeChain(3), await makeChain(2)]
  await tamper(`update audit_entries set team_id = '${to}' where team_id = '${from}' and seq = 3`)
  expect(await verdicts(from)).toEqual(['tail_truncated 3'])
  expect(await verdicts(to)).toEqual(['entry_modified 3', 'link_broken 3', 'head_mismatch 2'])

  const doubled = await makeChain(3)
  await tamper(`alter table audit_entries drop constraint audit_entries_team_id_seq_key;
    update audit_entries set seq = 2 where team_id = '${doubled}' and seq = 3`)
  expect(await verdicts(doubled)).toContain('fork 2')
  await tamper(`update audit_entries set seq = 3 where team_id = '${doubled}' and action = 'WORKFLOW_UPDATED'
      and (details->>'i') = '2';
    alter table audit_entries add constraint audit_entries_team_id_seq_key unique (team_id, seq)`)
  expect(await verdicts(doubled)).toEqual([])
})

test('the signature reveals an adapted head, but only a checkpoint reveals a restored older state', async () => {
  const teamId = await makeChain(3)
  const { url } = service.database
  await onServer(url, `create table old_head as select * from audit_heads where team_id = '${teamId}'`)
  const earlier = (await verifyAudit(service.store, teamId)).last!
  await change(inTeam(teamId), 'WORKFLOW_DELETED', teamId, async () => ({ result: 0, resourceId: null }))
  const noted = (await verifyAudit(service.store, teamId)).last!
  expect((await verifyAudit(service.store, teamId, earlier)).findings).toEqual([])

  await tamper(`delete from audit_entries where team_id = '${teamId}' and seq = 4`)
  await onServer(
    url,
    `update audit_heads h set seq = o.seq, hash = o.hash, ts = o.ts from old_head o where h.team_id = o.team_id`,
  )
  expect(await verdicts(teamId)).toEqual(['head_mac_invalid 3'])
  await onServer(url, 'update audit_heads h set mac = o.mac from old_head o where h.team_id = o.team_id')
  expect(await verdicts(teamId)).toEqual([])
  const { findings } = await verifyAudit(service.store, teamId, noted)
  expect(findings.map(({ verdict }) => verdict)).toEqual(['checkpoint_mismatch'])

  await onServer(url, `update audit_heads set seq = 2 where team_id = '${teamId}'`)
  expect(await verdicts(teamId)).toEqual(['head_mismatch 2', 'head_mac_invalid 2'])
  await onServer(url, `delete from audit_heads where team_id = '${teamId}'`)
  expect(await verdicts(teamId)).toEqual(['head_missing null'])
})

test('what was signed with the keys of another installation is not valid', async () => {
  const teamId = await makeChain(2)
  const other = { ...service.store, keys: makeKeys() }
  expect((await verifyAudit(other, teamId)).findings.map(({ verdict }) => verdict)).toEqual([
    'entry_forged',
    'entry_forged',
    'head_mac_invalid',
  ])
})

test('the chain of a deleted team is closed; that of a team that was removed by hand is not', async () => {
  const [closed, torn] = [await makeChain(2), await makeChain(2)]
  await deleteTeam(inTeam(closed), closed)
  expect(await verifyAudit(service.store, closed)).toMatchObject({ closed: true, entries: 3, findings: [] })
  await onServer(service.database.url, `delete from teams where id = '${torn}'`)
  expect(await verdicts(torn)).toEqual(['team_mismatch null'])
  expect(await listChains(service.store)).toEqual(expect.arrayContaining([closed, torn]))
  await expect(verifyAudit(service.store, crypto.randomUUID())).rejects.toMatchObject({ code: 'NOT_FOUND' })
})
