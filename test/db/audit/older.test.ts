import { createHash, randomBytes } from 'node:crypto'
import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { canonicalCore, hashPersonal, signHead } from '../../../db/audit/signing.ts'
import { verifyAudit } from '../../../db/audit/verify/verify.ts'
import { makeChains } from '../../support/chains.ts'
import { keep } from '../../support/keep.ts'
import { startService } from '../../support/service.ts'

const service = await keep(startService({ rateLimits: false }))
const { team, oldTeam, act, actAt, tamper, rewrite, adaptHead, verdicts, entries } = makeChains(service)
const { db, keys } = service.store

/** Appends an entry as the release before 0019 does: unsigned, with its own statements. */
async function actOlder(teamId: string): Promise<void> {
  await db.transaction().execute(async (tx) => {
    const [eventId, salt] = [crypto.randomUUID(), randomBytes(16)]
    const detailsSha256 = hashPersonal(salt, 1, {
      actorName: 'older',
      srcIp: null,
      userAgent: null,
      details: '{}',
    })
    const core = canonicalCore({
      v: 1,
      userId: null,
      accessId: null,
      teamId,
      eventId,
      actorKind: 'SYSTEM',
      actorId: null,
      actorRole: null,
      action: 'TEAM_UPDATED',
      resourceType: 'TEAM',
      resourceId: null,
      outcome: 'SUCCESS',
      requestId: null,
      srcIp: null,
      detailsSha256,
    })
    const coreSha256 = createHash('sha256').update(core).digest()
    const { rows } = await sql<{ seq: number; hash: Buffer }>`
      with head as (select seq, hash, ts from audit_heads where team_id = ${teamId} for update),
      next as (
        select seq + 1 as seq, hash as prev, greatest(date_trunc('milliseconds', clock_timestamp()), ts) as ts from head),
      link as (
        select seq, prev, ts, sha256(convert_to('audit-v1', 'UTF8') || prev || int8send(seq)
          || convert_to(to_char(ts at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), 'UTF8')
          || ${coreSha256}::bytea) as hash
        from next),
      added as (
        insert into audit_entries (id, team_id, seq, prev, hash, ts, event_id, actor_kind, actor_id, actor_role,
          actor_name, action, resource_type, resource_id, outcome, request_id, src_ip, details, details_salt,
          details_sha256, core)
        select ${eventId}::uuid, ${teamId}::uuid, seq, prev, hash, ts, ${eventId}::uuid, 'SYSTEM', null, null,
          'older', 'TEAM_UPDATED', 'TEAM', null, 'SUCCESS', null, null, '{}'::json, ${salt}::bytea,
          ${detailsSha256}::bytea, ${core}
        from link)
      update audit_heads h set seq = link.seq, hash = link.hash, ts = link.ts from link where h.team_id = ${teamId}
      returning h.seq, h.hash`.execute(tx)
    const { seq, hash } = rows[0]!
    const mac = signHead(keys, keys.current, teamId, seq, hash)
    await sql`update audit_heads set mac = ${mac}, key_id = ${keys.current} where team_id = ${teamId}`.execute(
      tx,
    )
  })
}

/** A chain as the release before has left it: no entry has a signature. */
async function olderTeam(length: number): Promise<string> {
  const teamId = await oldTeam([])
  for (let i = 0; i < length; i++) await actOlder(teamId)
  return teamId
}

const unsigned = async (teamId: string) => (await verifyAudit(service.store, teamId)).unsigned

test('entries from before have no signature; how many they are is signed with the first entry after them', async () => {
  const teamId = await olderTeam(4)
  expect(await verdicts(teamId)).toEqual([])
  expect((await act(teamId)).status).toBe(200)
  expect((await act(teamId)).status).toBe(200)
  expect((await entries(teamId)).map(({ mac }) => mac !== null)).toEqual([
    false,
    false,
    false,
    false,
    true,
    true,
  ])
  expect(await unsigned(teamId)).toEqual([{ fromSeq: 1, toSeq: 4 }])
  expect(await verdicts(teamId)).toEqual([])
})

test('while processes of both releases work, their entries follow each other and verify', async () => {
  const teamId = await olderTeam(2)
  await act(teamId)
  await actOlder(teamId)
  await actOlder(teamId)
  expect(await verdicts(teamId)).toEqual([])
  await act(teamId)
  await actOlder(teamId)
  await act(teamId)
  await Promise.all([act(teamId), actOlder(teamId), act(teamId), actOlder(teamId), act(teamId)])
  expect(await verdicts(teamId)).toEqual([])
  expect((await unsigned(teamId)).slice(0, 3)).toEqual([
    { fromSeq: 1, toSeq: 2 },
    { fromSeq: 4, toSeq: 5 },
    { fromSeq: 7, toSeq: 7 },
  ])
  expect(await entries(teamId)).toHaveLength(13)
})

test('a signature that was taken away is noticed, and so is the note of those without one', async () => {
  const teamId = await olderTeam(3)
  for (let i = 0; i < 3; i++) await act(teamId)
  await tamper(`update audit_entries set mac = null, key_id = null where team_id = '${teamId}' and seq = 5`)
  expect(await verdicts(teamId)).toEqual(['entry_unsigned 5'])

  const other = await olderTeam(3)
  await act(other)
  await tamper(`delete from audit_unsigned where team_id = '${other}'`)
  expect(await verdicts(other)).toEqual(['entry_unsigned 1'])
  await act(other)
  expect(await verdicts(other)).toEqual(['entry_unsigned 1'])
  await tamper(`insert into audit_unsigned values ('${other}', 1, 3,
    (select hash from audit_entries where team_id = '${other}' and seq = 3), sha256('forged'), 'k1')`)
  expect(await verdicts(other)).toEqual(['entry_unsigned 1'])
})

test('an older entry that was rewritten with all hashes behind it is found at the end of its range', async () => {
  const teamId = await olderTeam(4)
  await act(teamId)
  await act(teamId)
  await rewrite(teamId, 2, (core) => core.replace('TEAM_UPDATED', 'TEAM_FORGED'))
  expect(await verdicts(teamId)).toEqual(['range_modified 4', 'head_mac_invalid 6'])
  expect((await act(teamId)).body.code).toBe('AUDIT_CHAIN_BROKEN')
})

test('entries of this release at the end have no excuse for a missing signature, nor does the next act give them one', async () => {
  const teamId = await team(4)
  await tamper(`update audit_entries set mac = null, key_id = null where team_id = '${teamId}' and seq > 2`)
  expect(await verdicts(teamId)).toEqual(['entry_unsigned 3', 'entry_unsigned 4'])
  await act(teamId)
  expect(await verdicts(teamId)).toEqual(['entry_unsigned 3', 'entry_unsigned 4'])
  expect(await unsigned(teamId)).toEqual([])
})

test('the range of a chain whose last signatures were taken away covers only those', async () => {
  const teamId = await oldTeam([])
  for (let i = 0; i < 5; i++) await actAt(teamId, new Date(), { old: true })
  await tamper(
    `update audit_entries set mac = null, key_id = null where team_id = '${teamId}' and seq in (2, 4, 5)`,
  )
  await act(teamId)
  expect(await unsigned(teamId)).toEqual([{ fromSeq: 4, toSeq: 5 }])
  expect(await verdicts(teamId)).toEqual(['entry_unsigned 2'])
})

test('entries without signatures at the end need a head that vouches for them', async () => {
  const teamId = await olderTeam(3)
  await tamper(`delete from audit_entries where team_id = '${teamId}' and seq = 3; ${adaptHead(teamId)}`)
  expect(await verdicts(teamId)).toEqual(['head_mac_invalid 2', 'entry_unsigned 1'])
  expect((await act(teamId)).body.code).toBe('AUDIT_CHAIN_BROKEN')
})

test('the notes of what is not signed cannot be altered or removed', async () => {
  for (const statement of ['update audit_unsigned set to_seq = 1', 'delete from audit_unsigned'])
    await expect(sql.raw(statement).execute(db)).rejects.toThrow('cannot be altered')
})
