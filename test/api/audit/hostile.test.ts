import { sql } from 'kysely'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { makeNextReport } from '../../../activities/audit/reports/make.ts'
import { makeChains } from '../../support/chains.ts'
import { createChats } from '../../support/chat/replies.ts'
import { plantCredential } from '../../support/credentials.ts'
import { keep } from '../../support/keep.ts'
import { startService } from '../../support/service.ts'
import { until } from '../../support/until.ts'

const service = await keep(startService({ rateLimits: false }))
const { store, call, admin } = service
const { team, act, tamper, entries, verdicts } = makeChains(service)

test('a chat whose deletion no chain can note stays, with its executions', async () => {
  const chat = await createChats(service).addReply()
  const { executionId, sessionId } = chat
  await sql`update executions set chat_session_id = ${sessionId} where id = ${executionId}`.execute(store.db)
  const left = async () => {
    const { rows } = await sql`select from executions where id = ${executionId}`.execute(store.db)
    return rows.length
  }
  const path = `/api/agent-chat/sessions/${sessionId}`
  const { rows: heads } = await sql<{ mac: Buffer }>`
    select mac from audit_heads where team_id = ${service.teamId}`.execute(store.db)
  await tamper(`update audit_heads set mac = sha256('x') where team_id = '${service.teamId}'`)
  for (const [method, rest] of [
    ['DELETE', ''],
    ['POST', '/clear'],
  ] as const) {
    const refused = await call(method, `${path}${rest}`, admin)
    expect([method, rest, refused.body.code]).toEqual([method, rest, 'AUDIT_CHAIN_BROKEN'])
    expect(await left()).toBe(1)
  }
  await tamper(
    `update audit_heads set mac = '\\x${heads[0]!.mac.toString('hex')}' where team_id = '${service.teamId}'`,
  )
  expect((await call('DELETE', path, admin)).status).toBeLessThan(300)
  expect(await left()).toBe(0)
  expect((await entries(service.teamId)).at(-1)).toMatchObject({
    action: 'AGENT_CHAT_SESSION_DELETED',
    resourceId: sessionId,
  })
})

test('two hundred changes of one team at once leave connections for another one, and all are in its chain', async () => {
  const [busy, other] = [await team(1), await team(1)]
  let done = 0
  const all = Array.from({ length: 200 }, (_, i) =>
    call('POST', '/api/variables', admin, { teamId: busy, key: `k${i}`, value: i }).then(({ status }) => {
      done++
      return status
    }),
  )
  // They have all begun, and wait for each other.
  await until(async () => done, { holds: (count) => count > 0 })
  expect((await act(other, 'beside')).status).toBe(200)
  const before = done
  const statuses = await Promise.all(all)
  // It did not wait for the end of them all.
  expect(before).toBeLessThan(150)
  // Who has waited for ten seconds is told so, and has changed nothing.
  expect(statuses.filter((status) => status !== 201 && status !== 503)).toEqual([])
  const made = statuses.filter((status) => status === 201).length
  expect(await entries(busy)).toHaveLength(1 + made)
  expect([await verdicts(busy), await verdicts(other)]).toEqual([[], []])
}, 60_000)

test("no way of asking shows another team's entries, reports or forwarders", async () => {
  const [own, foreign] = [await service.otherTeam(), await team(1)]
  const secret = `only-of-${foreign}`
  await act(foreign, secret)
  const reports = (id: string) => `/api/audit/team/${id}/reports`
  const report = await call('POST', reports(foreign), admin, {
    ...{ name: secret, type: 'ACTIVITY', from: '2020-01-01', to: new Date(Date.now() + 1_000).toISOString() },
  })
  const log = pino({ level: 'silent' })
  while (await makeNextReport({ store, log }, new AbortController().signal));
  const forwarders = (id: string) => `/api/audit/team/${id}/forwarders`
  const forwarder = await call('POST', forwarders(foreign), admin, {
    ...{ name: secret, type: 'HTTPS', url: 'https://siem.example.com/', after: 0 },
  })
  expect([report.status, forwarder.status]).toEqual([201, 201])
  const audit = `/api/audit/team/${own.teamId}`
  const answers: [string, string, unknown][] = []
  const ask = async (method: string, path: string, json?: unknown) => {
    const response = await service.request(path, { method, as: own.cookie, json })
    answers.push([`${method} ${path}`, await response.text(), response.status])
  }
  const seen = (await entries(foreign)).at(-1)!
  for (const query of [
    `resourceId=${foreign}`,
    `userId=${service.user.id}`,
    `resourceType=TEAM&outcome=SUCCESS&page=0&size=200`,
    'page=5000000&size=200',
    'from=0001-01-01T00:00:00Z&to=9999-12-31T23:59:59Z',
  ])
    await ask('GET', `${audit}?${query}`)
  for (const format of ['json', 'syslog', 'cef'])
    for (const query of [
      '',
      '&after=0',
      '&after=9007199254740990',
      `&from=${seen.ts.toISOString()}&limit=100000`,
    ])
      await ask('GET', `${audit}/siem?format=${format}${query}`)
  await ask('GET', `${audit}/export`)
  await ask('GET', `${audit}/export?from=1&to=9007199254740991`)
  await ask('GET', `${audit}/verify?seq=${seen.seq}&hash=${seen.hash.toString('hex')}`)
  for (const rest of [
    `/${report.body.id}`,
    `/${report.body.id}/download`,
    `/${report.body.id}/download?format=json`,
  ])
    await ask('GET', `${reports(own.teamId)}${rest}`)
  await ask('DELETE', `${reports(own.teamId)}/${report.body.id}`)
  for (const method of ['GET', 'DELETE']) await ask(method, `${forwarders(own.teamId)}/${forwarder.body.id}`)
  await ask('POST', `${forwarders(own.teamId)}/${forwarder.body.id}/test`)
  // Nor can a forwarder of one's own use a credential of somebody else.
  const credentialId = await plantCredential(store, foreign, 'HTTP_BEARER', { token: 'a-secret' })
  const url = 'https://siem.example.com/'
  await ask('POST', forwarders(own.teamId), { name: 'x', type: 'HTTPS', url, credentialId })
  expect(answers.at(-1)![2]).toBe(400)
  for (const [what, text, status] of answers) {
    expect([what, text.includes(secret) || text.includes(seen.id)]).toEqual([what, false])
    expect([what, status]).not.toEqual([what, 500])
  }
  expect((await call('GET', `${reports(foreign)}/${report.body.id}`, admin)).status).toBe(200)
  expect((await call('GET', `${forwarders(foreign)}/${forwarder.body.id}`, admin)).status).toBe(200)
  expect([await verdicts(own.teamId), await verdicts(foreign)]).toEqual([[], []])
})

test('a report whose file was altered in the rows is not downloaded as a whole', async () => {
  const teamId = await team(2)
  const to = new Date(Date.now() + 1_000).toISOString()
  const json = { name: 'Altered', type: 'SECURITY', from: '2020-01-01', to }
  const { body } = await call('POST', `/api/audit/team/${teamId}/reports`, admin, json)
  const log = pino({ level: 'silent' })
  while (await makeNextReport({ store, log }, new AbortController().signal));
  const download = async () => {
    const path = `/api/audit/team/${teamId}/reports/${body.id}/download?format=html`
    const response = await service.app.request(path, { headers: { cookie: admin } })
    return response.text()
  }
  expect(await download()).toContain('Altered')
  await sql`update audit_report_parts set bytes = set_byte(bytes, 900, get_byte(bytes, 900) # 1)
    where report_id = ${body.id} and part = 0`.execute(store.db)
  await expect(download()).rejects.toThrow()
})

test('what is secret in what somebody sends is in no entry', async () => {
  const teamId = await team(1)
  const canary = 'Qz8vKp3xNw7tLm2yRc5b'
  const jwt = `eyJhbGciOiJIUzI1NiJ9.${Buffer.from(`{"sub":"${canary}"}`).toString('base64url')}.${canary}${canary}`
  const put = (method: string, path: string, json: unknown) => call(method, path, admin, json)
  const variable = await put('POST', '/api/variables', { teamId, key: 'apiToken', value: canary })
  await put('PUT', `/api/variables/${variable.body.id}`, {
    value: { password: canary, nested: [{ secret: canary }] },
  })
  await put('PUT', `/api/variables/${variable.body.id}`, { key: 'plain', value: `Bearer ${jwt}` })
  await put('PUT', `/api/variables/${variable.body.id}`, { value: `postgres://u:${canary}@db.example.com/x` })
  await call('DELETE', `/api/variables/${variable.body.id}`, admin)
  await put('PUT', `/api/teams/${teamId}`, {
    name: `Team ${jwt}`,
    description: `https://u:${canary}@example.com/`,
  })
  await put('POST', `/api/audit/team/${teamId}/forwarders`, {
    ...{ name: 'hook', type: 'HTTPS', url: `https://siem.example.com/?token=${canary}` },
  })
  await put('POST', '/api/credentials', { teamId, name: 'c', type: 'HTTP_BEARER', data: { token: canary } })
  await call('GET', `/api/audit/team/${teamId}/siem?token=${canary}`, admin)
  const { rows } = await sql<{ text: string }>`select e::text as text from audit_entries e`.execute(store.db)
  const told = rows.filter(({ text }) => text.includes(canary)).map(({ text }) => text.slice(0, 900))
  expect(told).toEqual([])
})
