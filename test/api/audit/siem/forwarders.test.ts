import { expect, test } from 'vitest'
import { deliverEntries } from '../../../../activities/audit/siem/deliver.ts'
import { createOutsides } from '../../../../activities/egress/outside.ts'
import { readViews } from '../../../../db/audit/list.ts'
import { settleOpenings } from '../../../../db/credentials/opens.ts'
import { startJsonReceiver, startSyslogReceiver } from '../../../support/audit/siem/receivers.ts'
import { makeChains } from '../../../support/chains.ts'
import { plantCredential } from '../../../support/credentials.ts'
import { keep } from '../../../support/keep.ts'
import { AUTHORITY, CERT } from '../../../support/servers/certificate.ts'
import { LOCAL } from '../../../support/servers/loopback.ts'
import { startService } from '../../../support/service.ts'

const service = await keep(startService({ rateLimits: false, outside: createOutsides(LOCAL) }))
const { team, entries } = makeChains(service)
const { store } = service

const SIEM = { name: 'SIEM', type: 'HTTPS', url: 'https://siem.example.com/ingest' }
const path = (teamId: string, rest = '') => `/api/audit/team/${teamId}/forwarders${rest}`
const call = (method: string, teamId: string, rest = '', json?: unknown, as = service.admin) =>
  service.call(method, path(teamId, rest), as, json)

/** The paths of what is wrong with a body. */
async function faults(teamId: string, body: object): Promise<string[]> {
  const response = await call('POST', teamId, '', body)
  expect(response.status).toBe(400)
  return response.body.errors.map((one: { path: string }) => one.path).sort()
}

test('a forwarder is added, read, changed and deleted, and each of it is an entry', async () => {
  const teamId = await team(2)
  const made = await call('POST', teamId, '', SIEM)
  expect(made.status).toBe(201)
  const { id } = made.body
  expect(made.headers.get('location')).toBe(path(teamId, `/${id}`))
  expect(made.body).toMatchObject({ ...SIEM, teamId, enabled: true, after: 2, missed: 0, lastError: null })
  expect((await call('GET', teamId)).body).toMatchObject([{ id, waiting: 1 }])
  const syslog = {
    name: 'Syslog',
    type: 'SYSLOG',
    host: 'logs.example.com',
    caCertificate: CERT,
    enabled: false,
  }
  const changed = await call('PUT', teamId, `/${id}`, { ...syslog, after: 0 })
  expect(changed.body).toMatchObject({ ...syslog, port: 6514, url: null, after: 0 })
  expect((await call('GET', teamId, `/${id}`)).body).toMatchObject({ name: 'Syslog', waiting: 4 })
  // What is not given stays.
  const { name, type, host } = syslog
  expect((await call('PUT', teamId, `/${id}`, { name, type, host })).body).toMatchObject({
    enabled: false,
    after: 0,
    caCertificate: null,
  })
  expect((await call('DELETE', teamId, `/${id}`)).status).toBe(200)
  expect((await call('GET', teamId, `/${id}`)).status).toBe(404)
  expect((await call('PUT', teamId, `/${id}`, SIEM)).status).toBe(404)
  const rows = (await entries(teamId)).slice(2)
  expect(rows.map(({ action, resourceId }) => [action, resourceId])).toEqual([
    ['AUDIT_FORWARDER_CREATED', id],
    ['AUDIT_FORWARDER_UPDATED', id],
    ['AUDIT_FORWARDER_UPDATED', id],
    ['AUDIT_FORWARDER_DELETED', id],
  ])
  expect(rows[0]!.details).toMatchObject({ name: 'SIEM', url: SIEM.url, enabled: true })
  expect(rows[1]!.details).toMatchObject({
    before: { url: SIEM.url },
    after: { host: 'logs.example.com', port: 6514 },
  })
})

test('what is wrong with a forwarder is named', async () => {
  const teamId = await team(1)
  expect(await faults(teamId, { name: ' ', type: 'MAIL', port: 0, after: -1 })).toEqual([
    'after',
    'name',
    'port',
    'type',
  ])
  expect(await faults(teamId, { name: 'a', type: 'SYSLOG', url: SIEM.url })).toEqual(['host', 'url'])
  expect(await faults(teamId, { ...SIEM, port: 1, host: 'a' })).toEqual(['host', 'port'])
  const bad = [
    'siem.example.com',
    'ftp://a.example/',
    'http://siem.example.com/',
    'https://a:b@a.example/',
    'https://a/#b',
  ]
  for (const url of bad) expect(await faults(teamId, { ...SIEM, url })).toEqual(['url'])
  const caCertificate = CERT.replace('MIIB', 'AAAA')
  expect(await faults(teamId, { name: 'a', type: 'SYSLOG', host: 'a', caCertificate })).toEqual([
    'caCertificate',
  ])
  expect(await faults(teamId, { ...SIEM, after: 2 })).toEqual(['after'])
  expect(await faults(teamId, { ...SIEM, credentialId: crypto.randomUUID() })).toEqual(['credentialId'])
  const signature = await plantCredential(store, teamId, 'SIGNATURE', { secret: 'a' })
  expect(await faults(teamId, { ...SIEM, credentialId: signature })).toEqual(['credentialId'])
  const other = await plantCredential(store, service.teamId, 'HTTP_BEARER', { token: 'a' })
  expect(await faults(teamId, { ...SIEM, credentialId: other })).toEqual(['credentialId'])
  for (let i = 0; i < 5; i++) expect((await call('POST', teamId, '', SIEM)).status).toBe(201)
  expect((await call('POST', teamId, '', SIEM)).status).toBe(409)
})

test('only ADMINs of its team reach a forwarder', async () => {
  const teamId = await team(1)
  const { body } = await call('POST', teamId, '', SIEM)
  const builder = await service.signUp('BUILDER', teamId)
  const other = await service.otherTeam()
  for (const [method, rest] of [
    ['GET', ''],
    ['GET', `/${body.id}`],
    ['DELETE', `/${body.id}`],
    ['POST', `/${body.id}/test`],
  ] as const)
    for (const as of [builder.cookie, other.cookie])
      expect((await call(method, teamId, rest, undefined, as)).status).toBe(403)
  for (const [method, rest] of [
    ['GET', ''],
    ['PUT', ''],
    ['DELETE', ''],
    ['POST', '/test'],
  ] as const) {
    const json = method === 'PUT' ? SIEM : undefined
    expect((await call(method, other.teamId, `/${body.id}${rest}`, json, other.cookie)).status).toBe(404)
  }
})

test('a test sends one event with the credential, and says what is wrong without its secrets', async () => {
  const teamId = await team(1)
  const receiver = await keep(startJsonReceiver())
  const token = 'a-very-secret-token-51'
  const credentialId = await plantCredential(store, teamId, 'HTTP_BEARER', { token })
  const { body } = await call('POST', teamId, '', {
    ...SIEM,
    url: receiver.url,
    credentialId,
    enabled: false,
  })
  const good = await call('POST', teamId, `/${body.id}/test`)
  expect(good.body).toMatchObject({ status: 'SUCCESS', message: 'The receiver has taken one event' })
  expect(receiver.batches).toHaveLength(1)
  const [batch] = receiver.batches
  expect(batch!.headers).toMatchObject({
    authorization: `Bearer ${token}`,
    'content-type': 'application/json',
  })
  expect(batch!.events).toMatchObject([{ event: { action: 'AUDIT_FORWARDER_TESTED', sequence: 0 } }])
  for (const status of [302, 401, 500]) {
    receiver.answer(() => status)
    expect((await call('POST', teamId, `/${body.id}/test`)).body).toMatchObject({
      status: 'FAILED',
      message: `${new URL(receiver.url).host} answered with ${status}`,
    })
  }
  const rows = await entries(teamId)
  expect(rows.at(-1)).toMatchObject({ action: 'AUDIT_FORWARDER_TESTED', details: { status: 'FAILED' } })
  expect(JSON.stringify(rows.map(({ details }) => details))).not.toContain(token)

  const refused = await service.call('DELETE', `/api/credentials/${credentialId}`, service.admin)
  expect(refused.status).toBe(200)
  expect((await call('POST', teamId, `/${body.id}/test`)).body.message).toBe(
    'The credential no longer exists',
  )
})

test('what a forwarder opens a credential for is one entry an hour, and an entry of that alone makes no other one', async () => {
  const teamId = await team(1)
  const receiver = await keep(startJsonReceiver())
  const credentialId = await plantCredential(store, teamId, 'HTTP_BEARER', { token: 'a-secret' })
  const { body } = await call('POST', teamId, '', {
    ...SIEM,
    url: receiver.url,
    credentialId,
    enabled: false,
  })
  for (let i = 0; i < 2; i++) await call('POST', teamId, `/${body.id}/test`)
  const settle = () =>
    settleOpenings(
      store,
      (_, error) => {
        throw error
      },
      new Date(Date.now() + 2 * 3_600_000),
    )
  await settle()
  const uses = (await entries(teamId)).filter(({ action }) => action === 'CREDENTIAL_USED')
  // Of one hour, unless the test has run over the end of one.
  expect(uses.reduce((sum, { details }) => sum + (details as { count: number }).count, 0)).toBe(2)
  expect(uses[0]).toMatchObject({
    resourceId: credentialId,
    actorKind: 'SYSTEM',
    details: { forwarderId: body.id, forwarderName: SIEM.name },
  })
  const views = await readViews(store.db, teamId, { limit: 100, order: 'oldest' })
  const target = { ...body, url: receiver.url }
  const signal = new AbortController().signal
  const carrier = { store, outside: createOutsides(LOCAL), host: 'perdure.example.com' }
  const told = views.filter(({ action }) => action === 'CREDENTIAL_USED')
  await deliverEntries(carrier, teamId, target, told, signal)
  expect(await settle()).toBe(0)
  await deliverEntries(carrier, teamId, target, views, signal)
  expect(await settle()).toBe(1)
})

test('a credential that an enabled forwarder uses is deleted only by force', async () => {
  const teamId = await team(1)
  const credentialId = await plantCredential(store, teamId, 'HTTP_BEARER', { token: 'a-secret' })
  await call('POST', teamId, '', { ...SIEM, credentialId })
  const refused = await service.call('DELETE', `/api/credentials/${credentialId}`, service.admin)
  expect(refused.status).toBe(409)
  expect(refused.body.message).toContain('"SIEM"')
  const forced = await service.call('DELETE', `/api/credentials/${credentialId}?force=true`, service.admin)
  expect(forced.status).toBe(200)
})

test('a test over syslog trusts only the given authority, and follows the rules of egress', async () => {
  const teamId = await team(1)
  const receiver = await keep(startSyslogReceiver())
  const { port } = receiver
  const target = { name: 'a', type: 'SYSLOG', host: '127.0.0.1', port, enabled: false }
  const said: [string, string][] = []
  for (const [host, caCertificate] of [
    ['127.0.0.1', CERT],
    ['127.0.0.1', AUTHORITY],
    ['127.0.0.1', null],
    ['10.0.0.1', CERT],
  ]) {
    const { body } = await call('POST', teamId, '', { ...target, host, caCertificate })
    const tried = await call('POST', teamId, `/${body.id}/test`)
    said.push([tried.body.status, tried.body.message])
  }
  expect(said[0]).toEqual(['SUCCESS', 'The receiver has taken one event'])
  expect(said.slice(1).map(([status]) => status)).toEqual(['FAILED', 'FAILED', 'FAILED'])
  expect(said.slice(1, 3).join()).toMatch(/certificate/)
  expect(said[3]![1]).toMatch(/10\.0\.0\.1/)
  expect(receiver.messages).toHaveLength(1)
  expect(receiver.messages[0]).toMatch(
    /^<110>1 \S+ 127\.0\.0\.1 perdure - AUDIT_FORWARDER_TESTED \[perdure@32473 /,
  )
})
