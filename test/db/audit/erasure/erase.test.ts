import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { afterAll, expect, test } from 'vitest'
import { checkpointChain } from '../../../../db/audit/checkpoints.ts'
import { eraseDetails } from '../../../../db/audit/erasure/erase.ts'
import { reopenChain } from '../../../../db/audit/reopen.ts'
import { INSTANCE_CHAIN } from '../../../../db/audit/signing.ts'
import { createChainVerifier } from '../../../../db/audit/verify/verifier.ts'
import { verifyAudit } from '../../../../db/audit/verify/verify.ts'
import { serviceScope } from '../../../../db/scope.ts'
import { exportChain, perdure, readBlocks, runProgram, verifyText } from '../../../support/audit/export.ts'
import { makeChains } from '../../../support/chains.ts'
import { keep } from '../../../support/keep.ts'
import { startService } from '../../../support/service.ts'

const service = await keep(startService({ rateLimits: false }))
const { team, oldTeam, act, tamper, entries, verdicts, rewrite } = makeChains(service)
const { db } = service.store
const folder = mkdtempSync(join(tmpdir(), 'perdure-erasure-'))
afterAll(() => rmSync(folder, { recursive: true }))
const { current, byId } = service.store.keys
const env = {
  DATABASE_URL: service.database.url,
  DATA_DIR: folder,
  PERDURE_KEYS: `${current}:${byId.get(current)!.toString('base64')}`,
}
const operator = (teamId: string) =>
  serviceScope(service.store, { kind: 'SYSTEM', id: null, name: 'cli' }, [[teamId, 'ADMIN']], {
    instanceAdmin: true,
  })
const verify = async (teamId: string) =>
  (await service.call('GET', `/api/audit/team/${teamId}/verify`, service.admin)).body

/** The threads that verify long chains must say the same as the walk. */
async function expectSame(teamId: string): Promise<void> {
  const fast = createChainVerifier({ url: service.database.url, threads: 2, least: 1 })
  expect(await fast(service.store, teamId, undefined)).toEqual(await verifyAudit(service.store, teamId))
}

/** A team of Grace's in which somebody else has acted too, with a session and with a token. */
async function sharedTeam() {
  const teamId = await team(2)
  const ada = await service.signUp('ADMIN', teamId)
  const as = { 'user-agent': 'Lovelace/1.0', 'x-request-id': 'r-1' }
  await service.call('PUT', `/api/teams/${teamId}`, ada.cookie, { name: 'Secret of Ada' }, as)
  await act(teamId, 'Of Grace')
  await service.call('PUT', `/api/teams/${teamId}`, await service.token('ADMIN', ada.cookie, teamId), {
    name: 'By a token of Ada',
  })
  return { teamId, ada }
}

test('the operator erases what is personal about a person, and nothing else; the chain says so and stays intact', {
  tags: 'long',
}, async () => {
  const { teamId, ada } = await sharedTeam()
  const before = await entries(teamId)
  const of = before.filter(({ userId }) => userId === ada.id).map(({ seq }) => seq)
  expect(of).toEqual([3, 5, 6])
  await checkpointChain(service.store, teamId)
  const said = await perdure(['audit', 'erase', teamId, '--user', ada.id], env)
  expect(said).toMatchObject({ code: 0, err: '' })
  expect(said.out).toBe(`${teamId}  erased the details of 3 entries of ${ada.id}, as its entries 7 say\n`)
  const after = await entries(teamId)
  for (const [i, row] of before.entries()) {
    const gone = { actorName: null, srcIp: null, userAgent: null, details: null, detailsSalt: null }
    expect(after[i]).toEqual(of.includes(row.seq) ? { ...row, ...gone } : row)
  }
  expect(after[6]).toMatchObject({ action: 'AUDIT_DETAILS_ERASED', resourceId: ada.id })
  expect(after[6]!.actorName).toMatch(/^cli \(.+@.+\)$/)
  expect(after[6]!.details).toEqual({
    userId: ada.id,
    count: 3,
    seqs: [
      [3, 3],
      [5, 6],
    ],
  })
  const { rows } = await sql<{ all: string }>`
    select string_agg(e::text, ' ') as all from audit_entries e where team_id = ${teamId}`.execute(db)
  // The name that she gave the team is what the next one has changed, and stays in that entry.
  expect(rows[0]!.all).not.toMatch(/Lovelace|By a token/)
  expect(await verify(teamId)).toMatchObject({ valid: true, entriesVerified: 7, erased: 3 })
  const { body } = await service.call('GET', `/api/audit/team/${teamId}`, service.admin)
  expect(body.content.find(({ seq }: { seq: number }) => seq === 3)).toMatchObject({
    ...{ userId: ada.id, userName: null, details: null, ip: null, userAgent: null, action: 'TEAM_UPDATED' },
  })
  const again = await perdure(['audit', 'erase', teamId, '--user', ada.id], env)
  expect(again.out).toContain('erased the details of 0 entries')
  expect(await entries(teamId)).toHaveLength(7)
  expect((await perdure(['audit', 'verify', teamId], env)).out).toContain(
    'intact  7 entries, 3 without details',
  )

  const text = await exportChain(service, teamId)
  expect(await verifyText(text)).toMatchObject({ findings: [], erased: 3, entries: 8 })
  writeFileSync(join(folder, 'verify.py'), readBlocks('python')[0]!)
  writeFileSync(join(folder, 'audit.ndjson'), text)
  expect((await runProgram('python3', ['verify.py', 'audit.ndjson'], { cwd: folder })).out).toContain(
    '0 faults',
  )
  // A part that ends before the entry which names them cannot know it.
  const part = await verifyText(await exportChain(service, teamId, '?from=1&to=6'))
  expect(part).toMatchObject({ findings: [], erased: 3, unnamed: 3 })
  expect((await perdure(['audit', 'erase', crypto.randomUUID(), '--user', ada.id], env)).code).toBe(1)
  expect((await perdure(['audit', 'erase', teamId], env)).code).toBe(2)
})

test('in the chain of the instance are the sign-ins of a person', async () => {
  const { id } = await service.signUp()
  const { erased, entries: named } = await eraseDetails(operator(INSTANCE_CHAIN), INSTANCE_CHAIN, id)
  expect([erased, named.length]).toEqual([1, 1])
  expect(await verdicts(INSTANCE_CHAIN)).toEqual([])
  const scope = { ...operator(INSTANCE_CHAIN), actor: { kind: 'USER' as const, id, name: 'x' } }
  await expect(eraseDetails(scope, INSTANCE_CHAIN, id)).rejects.toMatchObject({ code: 'FORBIDDEN' })
})

test('many entries are named by several, each of which stays small', async () => {
  const teamId = await team(1)
  const { id } = service.user
  await Promise.all(Array.from({ length: 12 }, () => act(teamId)))
  const erasure = await eraseDetails(operator(teamId), teamId, id, { most: 5 })
  expect(erasure).toMatchObject({ erased: 13, entries: [14, 15, 16] })
  expect(await verify(teamId)).toMatchObject({ valid: true, erased: 13 })
  await act(teamId)
  await expectSame(teamId)
})

test('nobody erases by hand: neither a part, nor more, nor without an entry that names it', async () => {
  const { teamId, ada } = await sharedTeam()
  const where = `where team_id = '${teamId}' and seq = 3`
  const all = 'actor_name = null, src_ip = null, user_agent = null, details = null, details_salt = null'
  const refused = [
    `update audit_entries set details = null ${where}`,
    `update audit_entries set ${all}, action = 'X' ${where}`,
    `update audit_entries set ${all}, core = 'x' ${where}`,
    `update audit_entries set actor_name = 'X' ${where}`,
    `update audit_entries set ${all} ${where}`,
    `select erase_audit_details('${teamId}', '${ada.id}', 0, 10)`,
  ]
  const before = await entries(teamId)
  for (const statement of refused)
    await expect(sql.raw(statement).execute(db), statement).rejects.toMatchObject({ code: '42501' })
  expect(await entries(teamId)).toEqual(before)

  // Who can turn off the triggers is found out, by the chain and by an export of it.
  await tamper(`update audit_entries set ${all} ${where}`)
  expect(await verify(teamId)).toMatchObject({ valid: false, problem: { kind: 'details_missing', seq: 3 } })
  expect((await verifyText(await exportChain(service, teamId))).findings).toMatchObject([
    { verdict: 'details_missing' },
  ])
  await eraseDetails(operator(teamId), teamId, ada.id)
  expect(await verdicts(teamId)).toEqual(['details_missing 3'])
  await expectSame(teamId)
})

test('what is half erased, or names itself as erased, is altered', async () => {
  const { teamId, ada } = await sharedTeam()
  await eraseDetails(operator(teamId), teamId, ada.id)
  await tamper(`update audit_entries set actor_name = 'Ada' where team_id = '${teamId}' and seq = 3`)
  expect(await verdicts(teamId)).toEqual(['entry_modified 3'])
  await tamper(`update audit_entries set actor_name = null where team_id = '${teamId}' and seq = 3;
    update audit_entries set details = '{"seqs":[[1,6]]}' where team_id = '${teamId}' and seq = 7`)
  expect(await verdicts(teamId)).toEqual(['entry_modified 7'])
})

test('what proves the chain stays whole: purges, what a break has signed, and entries of version 1', async () => {
  const teamId = await oldTeam([700, 40, 5])
  const path = `/api/audit/team/${teamId}`
  await service.call('PUT', `${path}/retention`, service.admin, { retentionDays: 30 })
  await service.call('POST', `${path}/purge`, service.admin)
  const { id } = service.user
  const purged = await eraseDetails(operator(teamId), teamId, id)
  expect(purged.kept).toEqual({ version1: 0, beforeBreak: 0, purges: 1 })
  expect(await verify(teamId)).toMatchObject({ valid: true, intactFrom: 3 })
  expect((await verifyText(await exportChain(service, teamId))).findings).toEqual([])

  const broken = await team(4)
  await rewrite(broken, 2, (core) => core.replace('TEAM_UPDATED', 'TEAM_FORGED'))
  await reopenChain(operator(broken), broken, { by: 'me', note: null })
  await act(broken)
  const before = await entries(broken)
  const { erased, kept } = await eraseDetails(operator(broken), broken, id)
  expect([erased, kept]).toEqual([1, { version1: 0, beforeBreak: 4, purges: 0 }])
  expect((await entries(broken)).slice(0, 5)).toEqual(before.slice(0, 5))
  expect(await verify(broken)).toMatchObject({ valid: true, erased: 1 })
})
