import { describe, expect, test } from 'vitest'
import { type Alarm, onBrokenChain } from '../../../db/audit/alarm.ts'
import { checkHeads, countBroken } from '../../../db/audit/heads.ts'
import { INSTANCE_CHAIN } from '../../../db/audit/signing.ts'
import { verifyAudit } from '../../../db/audit/verify/verify.ts'
import { openDatabase } from '../../../db/connection.ts'
import { updateMasking } from '../../../db/redaction/masking.ts'
import { serviceScope } from '../../../db/scope.ts'
import { makeChains } from '../../support/chains.ts'
import { onServer } from '../../support/database.ts'
import { edges } from '../../support/engine/graphs.ts'
import { keep } from '../../support/keep.ts'
import { PASSWORD, startService } from '../../support/service.ts'

const service = await keep(startService({ rateLimits: false }))
const { team, act, tamper, rewrite, adaptHead, verdicts, entries } = makeChains(service)
const alarms: Alarm[] = []
onBrokenChain(service.store, (alarm) => alarms.push(alarm))

const ATTACKS: Record<string, { attack: (teamId: string) => Promise<unknown>; found: string[] }> = {
  'cuts the tail': {
    attack: (id) => tamper(`delete from audit_entries where team_id = '${id}' and seq = 4`),
    found: ['tail_truncated 4'],
  },
  'cuts the tail and adapts the head': {
    attack: (id) => tamper(`delete from audit_entries where team_id = '${id}' and seq = 4; ${adaptHead(id)}`),
    found: ['head_mac_invalid 3'],
  },
  'rewrites an entry and hashes the chain anew': {
    attack: (id) => rewrite(id, 2, (core) => core.replace('TEAM_UPDATED', 'TEAM_FORGED')),
    found: ['entry_forged 2', 'head_mac_invalid 4'],
  },
  'deletes the head': {
    attack: (id) => tamper(`delete from audit_heads where team_id = '${id}'`),
    found: ['head_missing null'],
  },
  'deletes all entries and the head, so that the team looks new': {
    attack: (id) =>
      tamper(
        `delete from audit_heads where team_id = '${id}'; delete from audit_entries where team_id = '${id}'`,
      ),
    found: ['head_missing null'],
  },
  'begins the chain anew without the key': {
    attack: (id) =>
      tamper(`delete from audit_entries where team_id = '${id}'; update audit_heads set seq = 0, ts = '-infinity',
        hash = sha256(convert_to('audit-v1-genesis|${id}', 'UTF8')) where team_id = '${id}'`),
    found: ['head_mac_invalid 0'],
  },
  'puts an older head back': {
    attack: async (id) => {
      const old = await service.store.db
        .selectFrom('auditHeads')
        .selectAll()
        .where('teamId', '=', id)
        .executeTakeFirstOrThrow()
      await act(id)
      await tamper(`update audit_heads set seq = 4, mac = '\\x${old.mac.toString('hex')}',
        hash = '\\x${old.hash.toString('hex')}', ts = '${old.ts.toISOString()}' where team_id = '${id}'`)
    },
    found: ['head_mismatch 4'],
  },
  'puts an entry behind the head': {
    attack: (id) =>
      tamper(`insert into audit_entries select (jsonb_populate_record(e, jsonb_build_object('id', gen_random_uuid(),
        'seq', 5, 'prev', e.hash, 'event_id', gen_random_uuid()))).* from audit_entries e
        where team_id = '${id}' and seq = 4`),
    found: ['entry_modified 5', 'head_mismatch 4'],
  },
  'rewrites the hash of the last entry': {
    attack: (id) => tamper(`update audit_entries set hash = sha256('x') where team_id = '${id}' and seq = 4`),
    found: ['entry_modified 4', 'head_mismatch 4'],
  },
  'turns the clock of the head': {
    attack: (id) => tamper(`update audit_heads set ts = ts + interval '9 years' where team_id = '${id}'`),
    found: ['head_mismatch 4'],
  },
  'sets the clock of the head to the end of time': {
    attack: (id) => tamper(`update audit_heads set ts = 'infinity' where team_id = '${id}'`),
    found: ['head_mismatch 4'],
  },
  'names another key': {
    attack: (id) => tamper(`update audit_heads set key_id = E'\\x1b[2Jk9' where team_id = '${id}'`),
    found: ['head_mac_invalid 4'],
  },
}

describe('nothing is appended to a chain if somebody', () => {
  test.each(Object.entries(ATTACKS))('%s', async (_, { attack, found }) => {
    const teamId = await team(4)
    await attack(teamId)
    const before = await entries(teamId)
    expect(await verdicts(teamId)).toEqual(found)
    const refused = await act(teamId, 'refused')
    expect([refused.status, refused.body.code]).toEqual([503, 'AUDIT_CHAIN_BROKEN'])
    expect(refused.headers.get('retry-after')).toBe('60')
    expect(refused.body.message).toContain(`npx perdure audit verify ${teamId}`)
    // Neither the act nor the entry, and what was found before is found still.
    expect((await service.call('GET', `/api/teams/${teamId}`, service.admin)).body.name).not.toBe('refused')
    expect(await entries(teamId)).toEqual(before)
    expect(await verdicts(teamId)).toEqual(found)
    expect(alarms.filter((alarm) => alarm.teamId === teamId)).toHaveLength(1)
    // What somebody has put into the database does not reach the operator's terminal as it is.
    expect(alarms.at(-1)!.why).not.toMatch(/\p{Cc}/u)
    expect((await act(teamId)).status).toBe(503)
    expect(alarms.filter((alarm) => alarm.teamId === teamId)).toHaveLength(1)
  })

  test('swaps the heads of two teams', async () => {
    const [one, two] = [await team(4), await team(4)]
    await tamper(`alter table audit_heads drop constraint audit_heads_pkey;
      update audit_heads set team_id = case team_id when '${one}'::uuid then '${two}'::uuid else '${one}' end
        where team_id in ('${one}', '${two}');
      alter table audit_heads add primary key (team_id)`)
    for (const teamId of [one, two]) {
      expect((await act(teamId)).body.code).toBe('AUDIT_CHAIN_BROKEN')
      expect(await verdicts(teamId)).toEqual(['head_mismatch 4', 'head_mac_invalid 4'])
    }
  })
})

test('an entry that was rewritten in the middle is named after all later acts', async () => {
  const teamId = await team(3)
  await tamper(`update audit_entries set actor_name = 'Mallory' where team_id = '${teamId}' and seq = 2`)
  for (let i = 0; i < 3; i++) expect((await act(teamId)).status).toBe(200)
  expect(await verdicts(teamId)).toEqual(['entry_modified 2'])
})

test('a whole older state, head and signature included, is found only by a checkpoint', async () => {
  const teamId = await team(3)
  await tamper(`create table old_head as select * from audit_heads where team_id = '${teamId}'`)
  await act(teamId)
  const noted = (await verifyAudit(service.store, teamId)).last!
  await tamper(`delete from audit_entries where team_id = '${teamId}' and seq = 4;
    delete from audit_heads where team_id = '${teamId}'; insert into audit_heads select * from old_head`)
  expect((await act(teamId)).status).toBe(200)
  expect(await verdicts(teamId)).toEqual([])
  const { findings } = await verifyAudit(service.store, teamId, noted)
  expect(findings.map(({ verdict }) => verdict)).toEqual(['checkpoint_mismatch'])
})

test('acts that come while a chain breaks are either in it or refused', async () => {
  const teamId = await team(1)
  const acts = Array.from({ length: 24 }, (_, i) => act(teamId, `n${i}`))
  await tamper(`update audit_heads set mac = '\\x00' where team_id = '${teamId}'`)
  const statuses = (await Promise.all(acts)).map(({ status }) => status)
  const done = statuses.filter((status) => status === 200).length
  expect(statuses.filter((status) => status === 503)).toHaveLength(24 - done)
  // Those that were before the attack are in the chain, and all behind it are refused.
  expect(await entries(teamId)).toHaveLength(1 + done)
})

const breakHead = (teamId: string) =>
  tamper(`update audit_heads set mac = sha256('forged') where team_id = '${teamId}'`)

/** A team with a member, a token, and executions that are open. */
async function makeHouse() {
  const teamId = await team(1)
  const member = await service.signUp('OPERATOR', teamId)
  const made = await service.call('POST', `/api/teams/${teamId}/sdk-tokens`, service.admin, {
    name: 'leaked',
    role: 'Builder',
  })
  const graph = {
    nodes: [
      { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
      { id: 'end', type: 'NO_OP', config: {} },
    ],
    edges: edges('start -> end'),
  }
  const workflow = await service.call('POST', '/api/workflows', service.admin, {
    teamId,
    name: 'w',
    ...graph,
  })
  const start = () =>
    service.call('POST', `/api/workflows/${workflow.body.id}/execute`, service.admin, { teamId })
  return { teamId, member, token: made.body, start }
}

test("while a chain is broken, what stops somebody or something still works, and is in the instance's chain", async () => {
  const { teamId, member, token, start } = await makeHouse()
  const running = [await start(), await start()].map(({ body }) => body.executionId)
  await breakHead(teamId)
  const { length } = await entries(teamId)
  const since = (await entries(INSTANCE_CHAIN)).length

  expect((await act(teamId)).status).toBe(503)
  // The service's own work goes on, and so do starts, which are no acts.
  expect((await start()).status).toBe(202)
  const ok = [
    await service.call('DELETE', `/api/teams/${teamId}/sdk-tokens/${token.id}`, service.admin),
    await service.call('POST', `/api/executions/${running[0]}/cancel`, service.admin),
    await service.call('POST', `/api/executions/team/${teamId}/cancel`, service.admin, {
      filter: { status: 'PENDING' },
    }),
    await service.call('DELETE', `/api/teams/${teamId}/members/${member.id}`, service.admin),
    await service.call('POST', '/api/auth/logout', member.cookie),
  ]
  expect(ok.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
  expect(ok[2]!.body.cancelled).toBe(2)
  expect((await service.call('GET', `/api/teams/${teamId}`, token.token)).status).toBe(401)
  expect((await service.call('GET', '/api/auth/me', member.cookie)).status).toBe(401)

  expect(await entries(teamId)).toHaveLength(length)
  const noted = (await entries(INSTANCE_CHAIN)).slice(since)
  expect(
    noted.map(({ action, resourceId, details }) => [
      action,
      resourceId,
      (details as { brokenChain?: string }).brokenChain,
    ]),
  ).toEqual([
    ['SDK_TOKEN_REVOKED', token.id, teamId],
    ['EXECUTION_CANCELLED', running[0], teamId],
    ['EXECUTIONS_CANCELLED', null, teamId],
    ['MEMBER_REMOVED', member.id, teamId],
    ['SIGNED_OUT', member.id, undefined],
    ['REVOKED_TOKEN_USED', token.id, teamId],
    ['ENDED_SESSION_USED', member.id, undefined],
  ])
  expect(noted[0]).toMatchObject({ actorId: service.user.id, actorRole: 'ADMIN', srcIp: expect.any(String) })
  expect(await verdicts(INSTANCE_CHAIN)).toEqual([])
})

test('many urgent acts at once, of several teams with broken chains, wait for each other and make one chain', async () => {
  const houses = [await makeHouse(), await makeHouse()]
  const cancels: string[] = []
  for (const { teamId, start } of houses) {
    for (let i = 0; i < 8; i++) cancels.push((await start()).body.executionId)
    await breakHead(teamId)
  }
  await tamper(`delete from audit_heads where team_id = '${houses[1]!.teamId}'`)
  const { length } = await entries(INSTANCE_CHAIN)
  const acts = [
    ...cancels.map((id) => service.call('POST', `/api/executions/${id}/cancel`, service.admin)),
    ...houses.map(({ teamId, member }) =>
      service.call('DELETE', `/api/teams/${teamId}/members/${member.id}`, service.admin),
    ),
    ...Array.from({ length: 4 }, () =>
      service.call('PUT', '/api/admin/masking', service.admin, { style: 'LABEL' }),
    ),
  ]
  expect(new Set((await Promise.all(acts)).map(({ status }) => status))).toEqual(new Set([200]))
  expect(await entries(INSTANCE_CHAIN)).toHaveLength(length + acts.length)
  expect(await verdicts(INSTANCE_CHAIN)).toEqual([])
})

test('what is not urgent is refused: nobody gets in, nothing starts again, nothing is decided', async () => {
  const { teamId, start } = await makeHouse()
  const { executionId } = (await start()).body
  await service.call('POST', `/api/executions/${executionId}/cancel`, service.admin)
  const someone = await service.signUp()
  await breakHead(teamId)
  const refused = [
    await service.call('POST', `/api/teams/${teamId}/members`, service.admin, {
      email: someone.email,
      role: 'ADMIN',
    }),
    await service.call('POST', `/api/teams/${teamId}/sdk-tokens`, service.admin, {
      name: 'x',
      role: 'Admin',
    }),
    await service.call('POST', `/api/executions/${executionId}/retry`, service.admin, {}),
    await service.call('DELETE', `/api/teams/${teamId}`, service.admin),
  ]
  expect(refused.map(({ status, body }) => [status, body.code])).toEqual(
    Array(4).fill([503, 'AUDIT_CHAIN_BROKEN']),
  )
  const { body } = await service.call('GET', `/api/teams/${teamId}`, service.admin)
  expect(body.memberCount).toBe(2)
})

test('a role that does not allow an act is told so, and not that the chain is broken', async () => {
  const { teamId, member } = await makeHouse()
  await breakHead(teamId)
  const put = await service.call('PUT', `/api/teams/${teamId}`, member.cookie, { name: 'x' })
  expect(put.status).toBe(403)
})

test('the gauge counts the chains found broken by acts or by the check of all heads, until they are intact', async () => {
  await checkHeads(service.store)
  const before = await countBroken(service.store)
  const teamId = await team(2)
  await tamper(`create table kept_head as select * from audit_heads where team_id = '${teamId}'`)
  await breakHead(teamId)
  expect(await countBroken(service.store)).toBe(before)
  await checkHeads(service.store)
  expect(await countBroken(service.store)).toBe(before + 1)
  expect(alarms.filter((alarm) => alarm.teamId === teamId)).toHaveLength(1)
  await tamper(`update audit_heads h set mac = k.mac from kept_head k where h.team_id = k.team_id`)
  expect(await countBroken(service.store)).toBe(before)
  await checkHeads(service.store)
  expect(await countBroken(service.store)).toBe(before)
})

test('the check of all heads sees every team, however many there are', async () => {
  await checkHeads(service.store)
  const before = await countBroken(service.store)
  await tamper("insert into teams (id, name) select gen_random_uuid(), 'Bare' from generate_series(1, 1200)")
  await checkHeads(service.store)
  expect(await countBroken(service.store)).toBe(before + 1_200)
  await tamper("delete from teams where name = 'Bare'")
})

test("while the instance's chain is broken too, urgent acts and sign-ins go on, and the log has their entries", async () => {
  const { teamId, token } = await makeHouse()
  await tamper(`create table kept_instance as select * from audit_heads where team_id = '${INSTANCE_CHAIN}'`)
  await breakHead(teamId)
  await breakHead(INSTANCE_CHAIN)
  const chain = await entries(INSTANCE_CHAIN)
  alarms.length = 0

  const cookie = await service.signIn('admin@example.com')
  const revoked = await service.call('DELETE', `/api/teams/${teamId}/sdk-tokens/${token.id}`, cookie)
  const masking = await service.call('PUT', '/api/admin/masking', cookie, { style: 'PARTIAL' })
  expect([revoked.status, masking.status, masking.body.code]).toEqual([200, 503, 'AUDIT_CHAIN_BROKEN'])
  const wrong = await service.call('POST', '/api/auth/login', undefined, {
    email: 'admin@example.com',
    password: 'not this one',
  })
  expect(wrong.status).toBe(401)
  const lost = alarms.flatMap(({ unaudited }) => (unaudited ? [unaudited] : []))
  expect(lost.map(({ action, resourceId }) => [action, resourceId])).toEqual([
    ['SIGNED_IN', service.user.id],
    ['SDK_TOKEN_REVOKED', token.id],
    ['SIGN_IN_FAILED', service.user.id],
  ])
  expect(JSON.stringify(lost)).not.toContain(PASSWORD)
  expect(await entries(INSTANCE_CHAIN)).toEqual(chain)
  await tamper(`update audit_heads h set mac = k.mac from kept_instance k where h.team_id = k.team_id`)
})

test("the instance's chain cannot be made to look new", async () => {
  await tamper(`create table kept as select * from audit_heads where team_id = '${INSTANCE_CHAIN}';
    create table kept_entries as select * from audit_entries where team_id = '${INSTANCE_CHAIN}';
    delete from audit_entries where team_id = '${INSTANCE_CHAIN}';
    update audit_heads set seq = 0, ts = '-infinity', mac = '', key_id = '',
      hash = sha256('audit-v1-genesis|${INSTANCE_CHAIN}') where team_id = '${INSTANCE_CHAIN}'`)
  expect(await verdicts(INSTANCE_CHAIN)).toEqual(['head_mac_invalid 0'])
  // A process that starts now has not seen the chain before.
  const second = openDatabase(service.database.url, { max: 2, name: 'second' })
  const store = { ...service.store, db: second.db }
  const scope = serviceScope(store, { kind: 'SYSTEM', id: null, name: 'test' }, [], { instanceAdmin: true })
  await expect(updateMasking(scope, { style: 'PARTIAL' })).rejects.toMatchObject({
    code: 'AUDIT_CHAIN_BROKEN',
  })
  await checkHeads(store)
  expect(await countBroken(store)).toBeGreaterThan(0)
  await second.close()
  await tamper(`delete from audit_heads where team_id = '${INSTANCE_CHAIN}'; insert into audit_heads select * from kept;
    insert into audit_entries select * from kept_entries`)
  expect(await verdicts(INSTANCE_CHAIN)).toEqual([])
})

test('a database that takes no changes is another fault', async () => {
  const teamId = await team(1)
  const name = new URL(service.database.url).pathname.slice(1)
  const kick = `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}' and pid <> pg_backend_pid()`
  await tamper(`alter database ${name} set default_transaction_read_only = on; ${kick}`)
  await expect
    .poll(async () => {
      const { status, body } = await act(teamId)
      return [status, body.code, body.message]
    })
    .toEqual([503, undefined, 'The database takes no changes at the moment'])
  await onServer(
    `${service.database.url}?options=-c%20default_transaction_read_only%3Doff`,
    `alter database ${name} reset default_transaction_read_only; ${kick}`,
  )
  await expect.poll(async () => (await act(teamId)).status).toBe(200)
  expect(await verdicts(teamId)).toEqual([])
})
