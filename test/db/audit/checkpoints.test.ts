import { createPublicKey, verify } from 'node:crypto'
import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { checkpointAll, checkpointChain } from '../../../db/audit/checkpoints.ts'
import { listPublicKeys } from '../../../db/audit/proofs/publickeys.ts'
import { reopenChain } from '../../../db/audit/reopen.ts'
import { verifyAudit } from '../../../db/audit/verify/verify.ts'
import { serviceScope } from '../../../db/scope.ts'
import { makeChains } from '../../support/chains.ts'
import { keep } from '../../support/keep.ts'
import { makeKeys, startService } from '../../support/service.ts'

const service = await keep(startService({ rateLimits: false }))
const { team, act, tamper, adaptHead, verdicts } = makeChains(service)
const { store } = service

const operator = serviceScope(store, { kind: 'SYSTEM', id: null, name: 'cli' }, [], { instanceAdmin: true })
const reopen = (teamId: string) => reopenChain(operator, teamId, { by: 'root@host', note: null })

const countOf = async (teamId: string) =>
  (await store.db.selectFrom('auditCheckpoints').select('seq').where('teamId', '=', teamId).execute()).length

test('each hour a checkpoint is made of every chain that has moved, and of no other', async () => {
  const teams = [await team(1), await team(2)]
  // Those of the service itself, and of the instance.
  expect(await checkpointAll(store)).toBeGreaterThanOrEqual(3)
  expect(await Promise.all(teams.map(countOf))).toEqual([1, 1])
  expect(await checkpointAll(store)).toBe(0)
  await act(teams[1]!)
  expect(await checkpointAll(store)).toBe(1)
  expect(await Promise.all(teams.map(countOf))).toEqual([1, 2])
  // One that is broken keeps the others from nothing.
  await act(teams[0]!)
  await act(teams[1]!)
  await tamper(`update audit_heads set mac = sha256(mac) where team_id = '${teams[0]}'`)
  expect(await checkpointAll(store)).toBe(1)
})

test('many who ask for a checkpoint at once get the same one', async () => {
  const teamId = await team(3)
  const made = await Promise.all(Array.from({ length: 6 }, () => checkpointChain(store, teamId)))
  expect(new Set(made.map((one) => JSON.stringify(one))).size).toBe(1)
  expect(await countOf(teamId)).toBe(1)
})

test('a chain that was cut behind a checkpoint goes on behind it, so that the checkpoint stays a break', async () => {
  const teamId = await team(4)
  const head = await store.db
    .selectFrom('auditHeads')
    .selectAll()
    .where('teamId', '=', teamId)
    .executeTakeFirst()
  await act(teamId)
  await checkpointChain(store, teamId)
  await tamper(`delete from audit_entries where team_id = '${teamId}' and seq > 4; ${adaptHead(teamId)};
    update audit_heads set mac = '\\x${head!.mac.toString('hex')}' where team_id = '${teamId}'`)
  // Head and entries agree, as they were once.
  expect(await verdicts(teamId)).toEqual(['checkpoint_mismatch 5'])
  const operator = serviceScope(store, { kind: 'SYSTEM', id: null, name: 'cli' }, [], { instanceAdmin: true })
  const { seq, details } = await reopenChain(operator, teamId, { by: 'me', note: null })
  expect([seq, details.findings[0]!.verdict]).toEqual([6, 'checkpoint_mismatch'])
  expect((await act(teamId)).status).toBe(200)
  const { findings, breaks } = await verifyAudit(store, teamId)
  expect(findings).toEqual([])
  expect(breaks.map(({ seq, findings }) => [seq, findings[0]!.verdict])).toEqual([[6, 'checkpoint_mismatch']])
})

test('checkpoints, anchors and public keys are only added', async () => {
  await checkpointChain(store, await team(1))
  const { db } = store
  await expect(db.updateTable('auditCheckpoints').set({ seq: 9 }).execute()).rejects.toThrow('cannot be')
  await expect(db.deleteFrom('auditCheckpoints').execute()).rejects.toThrow('cannot be')
  await expect(db.deleteFrom('auditPublicKeys').execute()).rejects.toThrow('cannot be')
  await expect(db.updateTable('auditPublicKeys').set({ keyId: 'x' }).execute()).rejects.toThrow('cannot be')
})

// The last one, because it leaves what this installation does not know.
test('a checkpoint that was removed is missed, and so is what says how many there are, until the chain is reopened', async () => {
  const teamId = await team(2)
  for (let i = 0; i < 3; i++) {
    await checkpointChain(store, teamId)
    await act(teamId)
  }
  expect(await verdicts(teamId)).toEqual([])
  const one = `where team_id = '${teamId}'`
  const counts = `create table kept_counts as select * from audit_checkpoint_counts ${one}`
  await tamper(`${counts}; delete from audit_checkpoints ${one} and seq = 4`)
  expect(await verdicts(teamId)).toEqual(['checkpoint_missing null'])
  // Neither a number of their own, nor the one of another chain.
  await tamper(`update audit_checkpoint_counts set count = 2 ${one}`)
  expect(await verdicts(teamId)).toEqual(['checkpoint_invalid null'])
  await tamper(`delete from audit_checkpoint_counts ${one}`)
  expect(await verdicts(teamId)).toEqual(['checkpoint_missing null'])
  // The next checkpoint does not make it good.
  await act(teamId)
  await checkpointChain(store, teamId)
  expect(await verdicts(teamId)).toEqual(['checkpoint_missing null'])
  await tamper(`insert into audit_checkpoint_counts select * from kept_counts`)
  await tamper(`delete from audit_checkpoints ${one}`)
  expect(await verdicts(teamId)).toEqual(['checkpoint_missing null'])
  await reopen(teamId)
  expect(await verdicts(teamId)).toEqual([])
  const { breaks } = await verifyAudit(store, teamId)
  expect(breaks[0]!.details.findings.map(({ verdict }) => verdict)).toEqual(['checkpoint_missing'])
  await checkpointChain(store, teamId)
  expect(await verdicts(teamId)).toEqual([])
  await expect(
    sql`delete from audit_checkpoint_counts where team_id = ${teamId}`.execute(store.db),
  ).rejects.toThrow('cannot be altered or removed')
})

test('forged checkpoints, even of entries to come, belong to the break once the chain is reopened; later ones do not', async () => {
  const teamId = await team(3)
  const forge = (seq: number) =>
    sql`insert into audit_checkpoints (team_id, seq, hash, at, key_id, signature)
      values (${teamId}, ${seq}, sha256('x'), now(), 'k1', sha256('y'))`.execute(store.db)
  await forge(2)
  await forge(1_000_000)
  expect(await verdicts(teamId)).toEqual(['checkpoint_invalid 2', 'checkpoint_invalid 1000000'])
  const { details } = await reopen(teamId)
  expect(details.forged).toHaveLength(2)
  expect(await verdicts(teamId)).toEqual([])
  expect((await verifyAudit(store, teamId)).breaks).toHaveLength(1)
  await forge(1_000_001)
  expect(await verdicts(teamId)).toEqual(['checkpoint_invalid 1000001'])
})

test('what an older key has signed verifies when that key is gone, unless its public key was exchanged', async () => {
  const teamId = await team(2)
  const first = (await checkpointChain(store, teamId))!
  const second = makeKeys().byId.get('k1')!
  const both = { ...store, keys: { current: 'k2', byId: new Map([...store.keys.byId, ['k2', second]]) } }
  const later = (await checkpointChain(both, teamId))!
  expect([first.keyId, later.keyId, later.seq]).toEqual(['k1', 'k2', first.seq])
  const alone = { ...store, keys: { current: 'k2', byId: new Map([['k2', second]]) } }
  const keys = await listPublicKeys(alone)
  expect(keys.map(({ keyId, current }) => [keyId, current])).toEqual([
    ['k2', true],
    ['k1', false],
  ])
  const text = `perdure-audit-checkpoint-v1\n${teamId}\n${first.seq}\n${first.hash}\n${first.at}\n`
  const key = createPublicKey(keys[1]!.publicKey)
  expect(verify(null, Buffer.from(text), key, Buffer.from(first.signature, 'base64'))).toBe(true)
  const kinds = async () => (await verifyAudit(alone, teamId)).findings.map(({ verdict }) => verdict)
  // The entries need the key itself; the checkpoint does not.
  expect(await kinds()).not.toContain('checkpoint_invalid')
  await tamper(`create table kept as select * from audit_public_keys;
    update audit_public_keys set public_key = sha256(public_key) where key_id = 'k1'`)
  expect(await kinds()).toEqual(expect.arrayContaining(['checkpoint_invalid', 'key_invalid']))
  expect((await listPublicKeys(alone)).map(({ keyId }) => keyId)).toEqual(['k2'])
  await tamper(
    'delete from audit_public_keys; insert into audit_public_keys select * from kept; drop table kept',
  )
})
