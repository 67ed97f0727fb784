import { pino } from 'pino'
import { expect, test } from 'vitest'
import { makeNextReport } from '../../../activities/audit/reports/make.ts'
import { eraseDetails } from '../../../db/audit/erasure/erase.ts'
import { countOpening, settleOpenings } from '../../../db/credentials/opens.ts'
import { serviceScope } from '../../../db/scope.ts'
import { makeChains } from '../../support/chains.ts'
import { keep } from '../../support/keep.ts'
import { type Body, startService } from '../../support/service.ts'

const service = await keep(startService({ rateLimits: false }))
const { team, oldTeam, act, verdicts } = makeChains(service)
const { store } = service
const never = new AbortController().signal

/** Has a report made of all that the team has done, and reads it in both formats. */
async function report(teamId: string, type: string) {
  const path = `/api/audit/team/${teamId}/reports`
  const to = new Date(Date.now() + 60_000).toISOString()
  const { body } = await service.call('POST', path, service.admin, {
    ...{ name: type, type, from: '2020-01-01', to },
  })
  while (await makeNextReport({ store, log: pino({ level: 'silent' }) }, never));
  const download = (format: string) =>
    service.request(`${path}/${body.id}/download?format=${format}`, { as: service.admin })
  const content: Body = await (await download('json')).json()
  const html = await (await download('html')).text()
  const rows = (id: string): Body[] => content.sections.find((one: Body) => one.id === id).rows
  return { content, html, rows }
}

test('what was refused, sent out, used and given is in the reports, counted once', async () => {
  const teamId = await team(1)
  const path = `/api/audit/team/${teamId}`
  const ann = await service.signUp()
  const members = `/api/teams/${teamId}/members`
  await service.call('POST', members, service.admin, { email: ann.email, role: 'BUILDER' })
  // Denied: twice one act, once another.
  for (const rest of ['', '', '/retention'])
    expect((await service.call('GET', path + rest, ann.cookie)).status).toBe(403)
  // A token that is revoked, and used all the same.
  const tokens = `/api/teams/${teamId}/sdk-tokens`
  const made = await service.call('POST', tokens, service.admin, { name: 'old', role: 'ADMIN' })
  await service.call('DELETE', `${tokens}/${made.body.id}`, service.admin)
  expect((await service.call('GET', path, made.body.token)).status).toBe(401)
  // What leaves the service, and where the audit is sent.
  const data = { token: 'a secret of the team' }
  const credential = await service.call('POST', '/api/credentials', service.admin, {
    ...{ teamId, name: 'Bank', type: 'HTTP_BEARER', data },
  })
  const workflow = await service.call('POST', '/api/workflows', service.admin, { teamId, name: 'Pay' })
  await service.call('GET', `/api/workflows/${workflow.body.id}/export`, service.admin)
  await service.request(`${path}/siem`, { as: service.admin }).then((response) => response.text())
  await service.request(`${path}/export`, { as: service.admin }).then((response) => response.text())
  const forwarder = await service.call('POST', `${path}/forwarders`, service.admin, {
    ...{ name: 'SIEM', type: 'SYSLOG', host: 'logs.example.com' },
  })
  expect(forwarder.status).toBe(201)
  await service.call('DELETE', `${path}/forwarders/${forwarder.body.id}`, service.admin)
  // Two attempts of the workflow have opened the credential, and the hour is over.
  const workflowId = workflow.body.id
  const opener = { kind: 'WORKFLOW' as const, id: workflowId }
  const opening = { teamId, credentialId: credential.body.id, opener }
  for (let i = 0; i < 2; i++) await countOpening(store, opening)
  const fail = (_: string, error: unknown) => {
    throw error
  }
  expect(await settleOpenings(store, fail, new Date(Date.now() + 2 * 3_600_000))).toBe(1)

  const compliance = await report(teamId, 'COMPLIANCE')
  expect(compliance.rows('credential-use')).toMatchObject([
    { credential: 'Bank', workflow: 'Pay', times: 2, credentialId: credential.body.id },
  ])
  const exports = [
    ...['AUDIT_FORWARDER_DELETED', 'AUDIT_FORWARDER_CREATED', 'AUDIT_EXPORTED', 'AUDIT_SIEM_READ'],
    'WORKFLOW_EXPORTED',
  ]
  expect(compliance.rows('exports').map(({ action }) => action)).toEqual(exports)
  expect(compliance.rows('permission-changes').map(({ action }) => action)).toEqual([
    ...['SDK_TOKEN_REVOKED', 'SDK_TOKEN_CREATED', 'MEMBER_ADDED', 'TEAM_CREATED'],
  ])

  const security = await report(teamId, 'SECURITY')
  const denied = security
    .rows('denied')
    .map(({ who, act, times, needs, has }) => [who, act, times, needs, has])
  expect(denied).toEqual([
    ['Ada Byron', 'listAuditEntries', 2, 'ADMIN', 'BUILDER'],
    ['Ada Byron', 'readAuditRetention', 1, 'ADMIN', 'BUILDER'],
  ])
  expect(security.rows('revoked-tokens')).toMatchObject([{ name: 'old', times: 1 }])
  expect(security.rows('exports').map(({ action }) => action)).toEqual([
    ...['AUDIT_REPORT_DOWNLOADED', 'AUDIT_REPORT_DOWNLOADED', ...exports],
  ])

  const activity = await report(teamId, 'ACTIVITY')
  const of = (name: string) => activity.rows('actions').find(({ action }) => action === name)
  expect(of('ACCESS_DENIED')).toMatchObject({ n: 3, denied: 3 })
  expect(of('CREDENTIAL_USED')).toMatchObject({ n: 1 })
  for (const { html, content } of [compliance, security, activity])
    expect(html + JSON.stringify(content)).not.toContain(data.token)
  expect(await verdicts(teamId)).toEqual([])
})

test('a report says how many entries were erased, and how it is checked without the service', async () => {
  const teamId = await team(1)
  await act(teamId)
  const operator = { kind: 'SYSTEM', id: null, name: 'cli' } as const
  const scope = serviceScope(store, operator, [[teamId, 'ADMIN']], { instanceAdmin: true })
  const { erased } = await eraseDetails(scope, teamId, service.user.id)
  expect(erased).toBeGreaterThan(0)
  const { content, html } = await report(teamId, 'SECURITY')
  expect(content.proof).toMatchObject({ valid: true, erased })
  expect(html).toContain(`Of ${erased} the operator has erased`)
  for (const path of ['verify?seq=', 'export'])
    expect(html).toContain(`GET /api/audit/team/${teamId}/${path}`)
  expect(html).toContain('npx perdure audit verify --file')
  expect(html).toContain('GET /api/audit/public-key')
})

test('a table ends at 2,000 rows, the newest, and both files say how many there are', {
  tags: 'long',
  timeout: 120_000,
}, async () => {
  const count = 2_010
  const teamId = await oldTeam(Array.from({ length: count }, (_, i) => 40 - i / 1_000))
  const { rows, html, content } = await report(teamId, 'COMPLIANCE')
  const { total } = content.sections.find((one: Body) => one.id === 'settings')
  const seqs = rows('settings').map(({ seq }) => seq)
  expect([seqs.length, total]).toEqual([2_000, count])
  expect(seqs).toEqual(seqs.toSorted((a, b) => b - a))
  expect(seqs[0]).toBeGreaterThanOrEqual(count)
  expect(html).toContain(`These are the first 2000 of ${count}.`)
})
