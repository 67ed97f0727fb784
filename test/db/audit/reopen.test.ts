import { expect, test } from 'vitest'
import { countBroken } from '../../../db/audit/heads.ts'
import { reopenChain } from '../../../db/audit/reopen.ts'
import { INSTANCE_CHAIN } from '../../../db/audit/signing.ts'
import { verifyAudit } from '../../../db/audit/verify/verify.ts'
import { deleteTeam } from '../../../db/people/teams.ts'
import { serviceScope } from '../../../db/scope.ts'
import { makeChains } from '../../support/chains.ts'
import { keep } from '../../support/keep.ts'
import { startService } from '../../support/service.ts'

const service = await keep(startService({ rateLimits: false }))
const { team, act, tamper, rewrite, adaptHead, verdicts, entries } = makeChains(service)
const { store } = service

const operator = serviceScope(store, { kind: 'SYSTEM', id: null, name: 'cli' }, [], { instanceAdmin: true })
const asked = { by: 'root@host', note: 'restored from the backup of Monday' }
const reopen = (teamId: string, more = {}) => reopenChain(operator, teamId, { ...asked, ...more })

const ATTACKS: Record<
  string,
  [(teamId: string) => Promise<unknown>, { seq: number; lastGood: number | null }]
> = {
  'was cut': [
    (id) => tamper(`delete from audit_entries where team_id = '${id}' and seq = 4`),
    { seq: 5, lastGood: 3 },
  ],
  'was cut, and its head adapted': [
    (id) => tamper(`delete from audit_entries where team_id = '${id}' and seq = 4; ${adaptHead(id)}`),
    { seq: 4, lastGood: 3 },
  ],
  'was rewritten': [
    (id) => rewrite(id, 2, (core) => core.replace('TEAM_UPDATED', 'TEAM_FORGED')),
    { seq: 5, lastGood: 1 },
  ],
  'has lost its head': [
    (id) => tamper(`delete from audit_heads where team_id = '${id}'`),
    { seq: 5, lastGood: 4 },
  ],
  'has lost everything': [
    (id) =>
      tamper(
        `delete from audit_heads where team_id = '${id}'; delete from audit_entries where team_id = '${id}'`,
      ),
    { seq: 1, lastGood: null },
  ],
  'has a head of another time': [
    (id) => tamper(`update audit_heads set ts = 'infinity' where team_id = '${id}'`),
    { seq: 5, lastGood: 4 },
  ],
  'was altered inside': [
    (id) => tamper(`update audit_entries set actor_name = 'M' where team_id = '${id}' and seq = 3`),
    { seq: 5, lastGood: 2 },
  ],
}

test.each(Object.entries(ATTACKS))(
  'a chain that %s takes entries again, and names the break for ever',
  async (_, [attack, expected]) => {
    const teamId = await team(4)
    const good =
      expected.lastGood === null ? null : (await entries(teamId))[expected.lastGood - 1]!.hash.toString('hex')
    await attack(teamId)
    const found = (await verifyAudit(store, teamId)).findings
    expect(found).not.toEqual([])
    const { length } = await entries(teamId)
    const { seq, details } = await reopen(teamId)
    expect(seq).toBe(expected.seq)
    expect(details).toMatchObject({
      entries: length,
      lastGood: expected.lastGood === null ? null : { seq: expected.lastGood, hash: good },
      findings: found,
      ...asked,
    })
    for (let i = 0; i < 3; i++) expect((await act(teamId)).status).toBe(200)
    expect(await countBroken(store)).toBe(0)
    const verification = await verifyAudit(store, teamId)
    expect(verification).toMatchObject({ entries: length + 4, findings: [] })
    expect(verification.breaks).toMatchObject([{ seq, details: { ...asked, findings: found } }])
    // The instance's chain says it too.
    const told = (await entries(INSTANCE_CHAIN)).at(-1)
    expect(told).toMatchObject({ action: 'AUDIT_REOPENED', resourceId: teamId, details: { seq, ...asked } })
  },
)

test('what is altered behind a break, or before it after the reopening, is found', async () => {
  const teamId = await team(3)
  await tamper(`delete from audit_entries where team_id = '${teamId}' and seq = 2`)
  await reopen(teamId)
  await act(teamId)
  await act(teamId)
  await tamper(`update audit_entries set action = 'X' where team_id = '${teamId}' and seq = 5`)
  expect(await verdicts(teamId)).toEqual(['entry_modified 5'])
  await tamper(`update audit_entries set src_ip = '::1' where team_id = '${teamId}' and seq = 1`)
  expect(await verdicts(teamId)).toEqual(['segment_modified 4', 'entry_modified 5'])
  // A second break: both are named.
  const { seq } = await reopen(teamId, { note: null })
  expect(seq).toBe(7)
  await act(teamId)
  const { breaks, findings } = await verifyAudit(store, teamId)
  expect(findings).toEqual([])
  expect(breaks.map(({ seq, details }) => [seq, details.findings.map(({ verdict }) => verdict)])).toEqual([
    [4, ['gap', 'link_broken']],
    [7, ['segment_modified', 'entry_modified']],
  ])
  await tamper(`delete from audit_entries where team_id = '${teamId}' and seq = 4`)
  expect(await verdicts(teamId)).toEqual(['segment_modified 7'])
})

test('an entry that reopens a chain cannot be forged, moved or taken away unnoticed', async () => {
  const [from, to] = [await team(2), await team(2)]
  await tamper(`delete from audit_entries where team_id = '${from}' and seq = 2`)
  await reopen(from)
  await tamper(`delete from audit_entries where team_id = '${to}' and seq = 2;
    insert into audit_entries select (jsonb_populate_record(e, jsonb_build_object('team_id', '${to}', 'id',
      gen_random_uuid()))).* from audit_entries e where team_id = '${from}' and seq = 3; ${adaptHead(to)}`)
  expect((await verdicts(to)).length).toBeGreaterThan(1)
  expect((await verifyAudit(store, to)).breaks).toEqual([])
  expect((await act(to)).body.code).toBe('AUDIT_CHAIN_BROKEN')
  await tamper(`delete from audit_entries where team_id = '${from}' and seq = 3; ${adaptHead(from)}`)
  expect(await verdicts(from)).toEqual(['head_mac_invalid 1'])
})

test('a chain that is intact is not reopened; of two who reopen one, one is told that it is intact', async () => {
  const teamId = await team(3)
  await expect(reopen(teamId)).rejects.toMatchObject({ code: 'CONFLICT' })
  await tamper(`delete from audit_heads where team_id = '${teamId}'`)
  const both = await Promise.allSettled([reopen(teamId), reopen(teamId), act(teamId)])
  const refused = both.filter((one) => one.status === 'rejected')
  expect(refused.map(({ reason }) => reason.code)).toEqual(['CONFLICT'])
  expect((await act(teamId)).status).toBe(200)
  expect((await verifyAudit(store, teamId)).breaks).toHaveLength(1)
  expect(await verdicts(teamId)).toEqual([])
})

test('only the operator reopens a chain, and only that of a team that exists', async () => {
  const teamId = await team(2)
  await tamper(`delete from audit_heads where team_id = '${teamId}'`)
  const admin = serviceScope(store, { kind: 'USER', id: service.user.id, name: 'G' }, [[teamId, 'ADMIN']], {
    instanceAdmin: true,
  })
  await expect(reopenChain(admin, teamId, asked)).rejects.toMatchObject({ code: 'FORBIDDEN' })
  await expect(reopen(crypto.randomUUID())).rejects.toMatchObject({ code: 'NOT_FOUND' })
  const gone = await team(2)
  await deleteTeam(serviceScope(store, operator.actor, [[gone, 'ADMIN']]), gone)
  await tamper(`delete from audit_heads where team_id = '${gone}'`)
  await expect(reopen(gone)).rejects.toMatchObject({ code: 'NOT_FOUND' })
})

test('a state that was set back, which only a checkpoint shows, is reopened with the checkpoint', async () => {
  const teamId = await team(2)
  await tamper(`create table old_head as select * from audit_heads where team_id = '${teamId}'`)
  await act(teamId)
  const checkpoint = (await verifyAudit(store, teamId)).last!
  await tamper(`delete from audit_entries where team_id = '${teamId}' and seq = 3;
    delete from audit_heads where team_id = '${teamId}'; insert into audit_heads select * from old_head`)
  await expect(reopen(teamId)).rejects.toMatchObject({ code: 'CONFLICT' })
  const { details } = await reopen(teamId, { checkpoint })
  expect(details.findings.map(({ verdict }) => verdict)).toEqual(['checkpoint_mismatch'])
  expect(await verdicts(teamId)).toEqual([])
})

test("the instance's chain is reopened first if it is broken too", async () => {
  const teamId = await team(2)
  await tamper(`update audit_heads set mac = sha256('x') where team_id in ('${teamId}', '${INSTANCE_CHAIN}')`)
  await expect(reopen(teamId)).rejects.toMatchObject({
    code: 'AUDIT_CHAIN_BROKEN',
    message: expect.stringContaining(INSTANCE_CHAIN),
  })
  await reopen(INSTANCE_CHAIN)
  await reopen(teamId)
  expect((await act(teamId)).status).toBe(200)
  expect([await verdicts(teamId), await verdicts(INSTANCE_CHAIN)]).toEqual([[], []])
  expect((await verifyAudit(store, INSTANCE_CHAIN)).breaks).toHaveLength(1)
})

test('an entry with an impossible number is told, since nothing can follow it', async () => {
  const teamId = await team(2)
  await tamper(`update audit_entries set seq = 9223372036854775807 where team_id = '${teamId}' and seq = 2`)
  expect((await act(teamId)).body.code).toBe('AUDIT_CHAIN_BROKEN')
  expect(await verdicts(teamId)).toContain('entry_modified 9223372036854776000')
  await expect(reopen(teamId)).rejects.toMatchObject({
    code: 'CONFLICT',
    message: expect.stringContaining('delete it'),
  })
})
