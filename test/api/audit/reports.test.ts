import { createHash } from 'node:crypto'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { makeNextReport, type ReportMaker } from '../../../activities/audit/reports/make.ts'
import { removeExpiredReports } from '../../../db/audit/reports/expired.ts'
import { makeChains } from '../../support/chains.ts'
import { keep } from '../../support/keep.ts'
import { type Body, PASSWORD, startService } from '../../support/service.ts'

const service = await keep(startService({ rateLimits: false }))
const { team, tamper, entries, verdicts } = makeChains(service)
const { store } = service
const never = new AbortController().signal
const maker: ReportMaker = { store, log: pino({ level: process.env.TEST_LOG ?? 'silent' }) }

const path = (teamId: string, rest = '') => `/api/audit/team/${teamId}/reports${rest}`
const now = () => new Date(Date.now() + 60_000).toISOString()
const ask = async (teamId: string, type: string, more: object = {}) => {
  const json = { name: `A ${type} report`, type, from: '2020-01-01', to: now(), ...more }
  return service.call('POST', path(teamId), service.admin, json)
}
const read = async (teamId: string, id: string) =>
  (await service.call('GET', path(teamId, `/${id}`), service.admin)).body
const download = (teamId: string, id: string, format = 'json', as = service.admin) =>
  service.request(path(teamId, `/${id}/download?format=${format}`), { as })

/** Asks for a report, has it made, and reads it. */
async function make(teamId: string, type: string, more: object = {}) {
  const { body } = await ask(teamId, type, more)
  while (await makeNextReport(maker, never));
  const row = await read(teamId, body.id)
  expect([row.status, row.error]).toEqual(['COMPLETED', null])
  const content: Body = await (await download(teamId, body.id)).json()
  const html = await (await download(teamId, body.id, 'html')).text()
  const rows = (id: string): Body[] => {
    const found = content.sections.find((section: Body) => section.id === id)
    if (!found) throw new Error(`there is no section ${id}`)
    expect(found.rows.length).toBeLessThanOrEqual(found.total)
    return found.rows
  }
  return { row, content, html, rows }
}

test('a report is PENDING until a worker makes it; then both files are there, with their hashes, and in the audit', async () => {
  const teamId = await team(3)
  const { status, body, headers } = await ask(teamId, 'ACTIVITY', { name: ' Third quarter ' })
  expect([status, headers.get('location')]).toEqual([201, path(teamId, `/${body.id}`)])
  expect(body).toMatchObject({
    name: 'Third quarter',
    type: 'ACTIVITY',
    status: 'PENDING',
    files: null,
    teamId,
  })
  expect(body).toMatchObject({ createdBy: { id: service.user.id, name: 'Grace Hopper' }, startedAt: null })
  expect(Date.parse(body.expiresAt) - Date.parse(body.createdAt)).toBe(365 * 86_400_000)
  const early = await download(teamId, body.id)
  expect([early.status, ((await early.json()) as Body).message]).toEqual([
    409,
    expect.stringContaining('PENDING'),
  ])
  expect(await makeNextReport(maker, never)).toBe(true)
  expect(await makeNextReport(maker, never)).toBe(false)
  const row = await read(teamId, body.id)
  expect(row).toMatchObject({
    status: 'COMPLETED',
    error: null,
    downloadUrl: path(teamId, `/${body.id}/download`),
  })
  expect((await service.call('GET', path(teamId), service.admin)).body).toEqual([row])
  for (const format of ['html', 'json']) {
    const response = await download(teamId, body.id, format)
    const bytes = Buffer.from(await response.arrayBuffer())
    const sha256 = createHash('sha256').update(bytes).digest('hex')
    expect({ bytes: bytes.length, sha256 }).toEqual(row.files[format])
    expect(response.headers.get('content-length')).toBe(String(bytes.length))
    expect(response.headers.get('content-disposition')).toContain(`.${format}"`)
    expect(response.headers.get('content-security-policy')).toContain('sandbox')
    expect((await entries(teamId)).at(-1)).toMatchObject({
      action: 'AUDIT_REPORT_DOWNLOADED',
      resourceId: body.id,
      details: { format, sha256, bytes: bytes.length },
    })
  }
  expect(
    (await service.request(path(teamId, `/${body.id}/download`), { method: 'HEAD', as: service.admin }))
      .status,
  ).toBe(200)
  expect((await service.call('DELETE', path(teamId, `/${body.id}`), service.admin)).status).toBe(200)
  expect((await service.call('GET', path(teamId, `/${body.id}`), service.admin)).status).toBe(404)
  const acts = (await entries(teamId)).map(({ action }) => action).slice(3)
  expect(acts).toEqual(['CREATED', 'DOWNLOADED', 'DOWNLOADED', 'DELETED'].map((act) => `AUDIT_REPORT_${act}`))
  expect(await verdicts(teamId)).toEqual([])
})

test('a request that is wrong names everything that is', async () => {
  const teamId = await team(1)
  const wrong = async (json: object) =>
    (await service.call('POST', path(teamId), service.admin, json)).body.errors
      ?.map(({ path }: Body) => path)
      .sort()
  expect(await wrong({})).toEqual(['from', 'name', 'to', 'type'])
  expect(await wrong({ name: ' ', type: 'OTHER', from: 'x', to: 7 })).toEqual(['from', 'name', 'to', 'type'])
  const good = { name: 'a', type: 'SECURITY' }
  expect(await wrong({ ...good, from: '2026-02-01', to: '2026-01-01' })).toEqual(['from'])
  expect(await wrong({ ...good, from: '2026-02-01', to: '2026-02-01' })).toEqual(['from'])
  expect(await wrong({ ...good, from: '2199-01-01', to: '2199-02-01' })).toEqual(['from'])
  const late = '9999-12-31T23:59:59-12:00'
  expect(await wrong({ ...good, from: '2026-01-01', to: late })).toEqual(['to'])
  expect(await wrong({ ...good, name: 'x'.repeat(201), from: '2026-01-01', to: '2026-02-30' })).toEqual([
    'name',
    'to',
  ])
  expect(await entries(teamId)).toHaveLength(1)
})

test("reports are for the team's ADMINs, and no other team's ids find them", async () => {
  const [teamId, other] = [await team(1), await team(1)]
  const { row } = await make(teamId, 'ACTIVITY')
  const builder = await service.signUp('BUILDER', teamId)
  for (const [method, rest] of [
    ['GET', ''],
    ['POST', ''],
    ['GET', `/${row.id}`],
    ['GET', `/${row.id}/download`],
    ['DELETE', `/${row.id}`],
  ] as const) {
    const json =
      method === 'POST' ? { name: 'a', type: 'ACTIVITY', from: '2026-01-01', to: now() } : undefined
    expect((await service.call(method, path(teamId, rest), builder.cookie, json)).status).toBe(403)
    if (rest) expect((await service.call(method, path(other, rest), service.admin, json)).status).toBe(404)
  }
  expect((await entries(teamId)).filter(({ action }) => action === 'AUDIT_REPORT_DELETED')).toEqual([])
  expect((await read(teamId, row.id)).status).toBe('COMPLETED')
})

test('COMPLIANCE says who has access and how that came about, as it was at the end of the period', async () => {
  const teamId = await team(1)
  const [ann, bob] = [await service.signUp(), await service.signUp()]
  const members = `/api/teams/${teamId}/members`
  const add = (email: string, role: string) => service.call('POST', members, service.admin, { email, role })
  await add(ann.email, 'OPERATOR')
  await service.call('PUT', `${members}/${ann.id}`, service.admin, { role: 'ADMIN' })
  await add(bob.email, 'BUILDER')
  const token = await service.token('BUILDER', ann.cookie, teamId)
  expect(token).toMatch(/^sdk_/)
  const data = { token: 'a secret of the team' }
  const credential = await service.call('POST', '/api/credentials', ann.cookie, {
    ...{ teamId, name: 'Bank', type: 'HTTP_BEARER', data },
  })
  expect(credential.status).toBe(201)
  const middle = (await entries(teamId)).at(-1)!.ts
  const to = new Date(middle.getTime() + 1).toISOString()
  await new Promise((resolve) => setTimeout(resolve, 5))
  // After the period.
  await service.call('PUT', `${members}/${ann.id}`, service.admin, { role: 'OPERATOR' })
  await service.call('DELETE', `${members}/${bob.id}`, service.admin)
  await service.call('DELETE', `/api/credentials/${credential.body.id}`, service.admin)
  const stranger = await service.signUp('BUILDER', teamId)

  const then = await make(teamId, 'COMPLIANCE', { to })
  const access = (rows: Body[]) =>
    rows.map(({ role, email, cameAbout, seq, finding }) => [role, email, cameAbout, seq, finding])
  expect(access(then.rows('access-people'))).toEqual([
    ['ADMIN', ann.email, 'role changed to ADMIN by Grace Hopper', 3, null],
    ['ADMIN', 'admin@example.com', 'made the team', 1, null],
    ['BUILDER', bob.email, 'added as BUILDER by Grace Hopper', 4, null],
  ])
  expect(then.rows('access-tokens')).toMatchObject([
    { right: 'BUILDER', person: ann.email, makerRole: 'ADMIN', createdBy: 'Ada Byron', seq: 5 },
  ])
  expect(then.rows('permission-changes').map(({ action }) => action)).toEqual([
    'SDK_TOKEN_CREATED',
    'MEMBER_ADDED',
    'MEMBER_ROLE_CHANGED',
    'MEMBER_ADDED',
    'TEAM_CREATED',
  ])
  expect(then.rows('credentials')).toMatchObject([
    { name: 'Bank', type: 'HTTP_BEARER', deletedAt: expect.stringMatching(/Z$/) },
  ])
  expect(then.rows('credential-changes').map(({ action }) => action)).toEqual(['CREDENTIAL_CREATED'])
  expect(then.html + JSON.stringify(then.content)).not.toContain(data.token)

  const today = await make(teamId, 'COMPLIANCE', { from: to })
  expect(access(today.rows('access-people'))).toEqual([
    ['ADMIN', 'admin@example.com', 'made the team', 1, null],
    // Somebody has put this row there: no entry tells of it.
    ['BUILDER', stranger.email, 'no entry that is kept says so', null, 'a row without an entry'],
    ['OPERATOR', ann.email, 'role changed to OPERATOR by Grace Hopper', 7, null],
  ])
  expect(today.rows('access-tokens')).toMatchObject([{ right: 'OPERATOR', role: 'BUILDER' }])
  expect(today.rows('credentials')).toEqual([])
  expect(today.rows('exports').map(({ action }) => action)).toEqual([
    'AUDIT_REPORT_DOWNLOADED',
    'AUDIT_REPORT_DOWNLOADED',
  ])
  expect(today.content.proof).toMatchObject({ valid: true, problem: null, intactFrom: 1, breaks: [] })
  expect(today.content.proof.checkpoint.seq).toBe(today.content.proof.last.seq)
  const { seq, hash } = today.content.proof.last
  const later = await service.call(
    'GET',
    `/api/audit/team/${teamId}/verify?seq=${seq}&hash=${hash}`,
    service.admin,
  )
  expect(later.body).toMatchObject({ valid: true, noted: 'found' })
})

test('a role that was changed in the rows alone is a finding', async () => {
  const teamId = await team(1)
  const ann = await service.signUp()
  await service.call('POST', `/api/teams/${teamId}/members`, service.admin, {
    email: ann.email,
    role: 'OPERATOR',
  })
  await tamper(`update members set role = 'ADMIN' where user_id = '${ann.id}' and team_id = '${teamId}'`)
  const { rows } = await make(teamId, 'COMPLIANCE')
  expect(rows('access-people').find(({ email }) => email === ann.email)).toMatchObject({
    role: 'OPERATOR',
    finding: 'the row of today says ADMIN, and no entry tells why',
  })
})

test('ACTIVITY counts by user, act, day and resource', async () => {
  const teamId = await team(4)
  const ann = await service.signUp('BUILDER', teamId)
  const made = await service.call('POST', '/api/workflows', ann.cookie, { teamId, name: 'Pay' })
  await service.call('PUT', `/api/workflows/${made.body.id}`, ann.cookie, { name: 'Pay out' })
  const { rows, content } = await make(teamId, 'ACTIVITY')
  expect(rows('people').map(({ who, person, n }) => [who, person, n])).toEqual([
    ['Grace Hopper', 'admin@example.com', 5],
    ['Ada Byron', ann.email, 2],
  ])
  expect(rows('actions').slice(0, 1)).toMatchObject([{ action: 'TEAM_UPDATED', n: 3, failed: 0, denied: 0 }])
  expect(rows('actions').reduce((sum, { n }) => sum + n, 0)).toBe(7)
  expect(rows('days').reduce((sum, { n }) => sum + n, 0)).toBe(7)
  expect(rows('days')[0].day).toMatch(/^\d{4}-\d\d-\d\d$/)
  expect(rows('resources').find(({ resourceType }) => resourceType === 'WORKFLOW')).toMatchObject({
    name: 'Pay out',
    n: 2,
  })
  expect(rows('workflow-changes').map(({ action }) => action)).toEqual([
    'WORKFLOW_UPDATED',
    'WORKFLOW_CREATED',
  ])
  expect(content.entries).toEqual({ first: 1, last: 7, count: 7 })
  const before = await make(teamId, 'ACTIVITY', { from: '2020-01-01', to: '2020-02-01' })
  expect(before.content.entries).toEqual({ first: null, last: null, count: 0 })
  expect(before.content.sections.map(({ total }: Body) => total)).toEqual([0, 0, 0, 0, 0])
})

test('SECURITY tells failed sign-ins of members only while they were members, what is new, and who got more rights', async () => {
  const teamId = await team(1)
  const [ann, bob] = [await service.signUp(), await service.signUp()]
  const fail = (email: string) =>
    service.call('POST', '/api/auth/login', undefined, { email, password: `${PASSWORD}?` })
  // Before they are members.
  await fail(ann.email)
  const members = `/api/teams/${teamId}/members`
  await service.call('POST', members, service.admin, { email: ann.email, role: 'OPERATOR' })
  await service.call('POST', members, service.admin, { email: bob.email, role: 'BUILDER' })
  for (let i = 0; i < 3; i++) await fail(ann.email)
  await fail(bob.email)
  await fail('nobody@example.com')
  await service.signIn(ann.email)
  await service.call('PUT', `${members}/${ann.id}`, service.admin, { role: 'ADMIN' })
  await service.call('DELETE', `${members}/${bob.id}`, service.admin)
  await fail(bob.email)
  const { rows } = await make(teamId, 'SECURITY')
  expect(rows('failed-sign-ins').map(({ account, times, addresses }) => [account, times, addresses])).toEqual(
    [
      [ann.email, 3, 1],
      [bob.email, 1, 1],
    ],
  )
  expect(rows('failed-sign-in-addresses')).toMatchObject([{ times: 4, accounts: 2 }])
  expect(rows('escalations').map(({ action, whom, before, after }) => [action, whom, before, after])).toEqual(
    [
      ['MEMBER_ROLE_CHANGED', ann.email, 'OPERATOR', 'ADMIN'],
      ['MEMBER_ADDED', bob.email, null, 'BUILDER'],
    ],
  )
})

test('what users have written is text in the page, and what is not seen is shown', async () => {
  const teamId = await team(1)
  const evil = `<script>alert(1)</script>"'&\u202e\u0007<img src=x onerror=alert(2)>`
  await service.call('PUT', `/api/teams/${teamId}`, service.admin, { name: evil })
  const { html, content } = await make(teamId, 'COMPLIANCE', { name: evil })
  expect(content.report).toMatchObject({ name: evil, teamName: evil })
  expect(html).not.toMatch(/<script|<img|onerror=alert\(2\)>|\u202e|\u0007/)
  expect(html).toContain('&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;')
  expect(html).toContain('U+202E')
  expect(
    html.match(
      /<(?!\/?(?:!doctype|html|head|meta|title|style|body|header|p|h1|h2|section|table|tbody|thead|tr|th|td|bdi|span|nav|ol|li|a|main|code|pre|wbr)\b)/g,
    ),
  ).toBeNull()
})

test('a chain that is broken is what the report says first, and it can be asked for all the same', async () => {
  const teamId = await team(4)
  await tamper(`update audit_entries set actor_name = 'Mallory' where team_id = '${teamId}' and seq = 2`)
  const found = await make(teamId, 'SECURITY')
  expect(found.content.proof).toMatchObject({ valid: false, problem: { kind: 'entry_modified', seq: 2 } })
  expect(found.html).toContain('The audit chain does not verify')
  // Not even its head is right: the entries go to the instance's chain.
  await tamper(`update audit_heads set mac = sha256(mac) where team_id = '${teamId}'`)
  const { content, rows } = await make(teamId, 'SECURITY')
  expect(content.proof).toMatchObject({ valid: false, checkpoint: null })
  expect(rows('moved').map(({ action }) => action)).toEqual(['AUDIT_REPORT_CREATED'])
})

test('ten reports of a team may wait, and one of each team is made before the next of the first', async () => {
  const [many, one] = [await team(1), await team(1)]
  for (let i = 0; i < 10; i++) expect((await ask(many, 'ACTIVITY')).status).toBe(201)
  const { status, body } = await ask(many, 'ACTIVITY')
  expect([status, body.message]).toEqual([409, expect.stringContaining('10 reports')])
  await ask(one, 'ACTIVITY')
  const left = async () => {
    const rows = (await service.call('GET', path(one), service.admin)).body
    return rows.filter((row: Body) => row.status === 'PENDING').length
  }
  await makeNextReport(maker, never)
  await makeNextReport(maker, never)
  expect(await left()).toBe(0)
  while (await makeNextReport(maker, never));
  expect((await ask(many, 'ACTIVITY')).status).toBe(201)
  while (await makeNextReport(maker, never));
})

test('a report is removed when its time is over, with an entry; the policy says when', async () => {
  const teamId = await team(1)
  const policy = { retentionDays: 30, reportRetentionDays: 7 }
  expect(
    (await service.call('PUT', `/api/audit/team/${teamId}/retention`, service.admin, policy)).body,
  ).toMatchObject(policy)
  const { row } = await make(teamId, 'ACTIVITY')
  const kept = (await make(teamId, 'ACTIVITY')).row
  expect(Date.parse(row.expiresAt) - Date.parse(row.createdAt)).toBe(7 * 86_400_000)
  const failures: unknown[] = []
  const sweep = () => removeExpiredReports(store, (_, error) => failures.push(error))
  expect(await sweep()).toBe(0)
  await store.db.updateTable('auditReports').set({ expiresAt: new Date() }).where('id', '=', row.id).execute()
  expect(await sweep()).toBe(1)
  expect(failures).toEqual([])
  expect((await service.call('GET', path(teamId), service.admin)).body.map(({ id }: Body) => id)).toEqual([
    kept.id,
  ])
  expect((await entries(teamId)).at(-1)).toMatchObject({
    action: 'AUDIT_REPORT_DELETED',
    actorKind: 'SYSTEM',
    details: { expired: true },
  })
  const parts = await store.db
    .selectFrom('auditReportParts')
    .select('part')
    .where('reportId', '=', row.id)
    .execute()
  expect(parts).toEqual([])
})
