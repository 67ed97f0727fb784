import { expect, test } from 'vitest'
import { keep } from '../../support/keep.ts'
import { makeNotices } from '../../support/monitoring/notices.ts'
import { shareService } from '../../support/service.ts'

const service = await keep(shareService())
const { add } = makeNotices(service)
const pathOf = (teamId: string) => `/api/monitoring/teams/${teamId}/config`

const DEFAULTS = {
  anomalyDetectionEnabled: false,
  driftAlertEnabled: false,
  sentimentTrackingEnabled: false,
  alertThresholds: { tokenUsageSpike: 3, errorRateThreshold: 0.1, latencyThreshold: 30_000 },
  notificationChannels: [],
}

const NO_CHANNEL = 'must be email, slack, webhook or the id of a channel of the team'

/** A team of its own, and how its ADMIN asks for and changes its config. */
async function openTeam() {
  const team = await service.otherTeam()
  const path = pathOf(team.teamId)
  const read = async (as = team.cookie) => (await service.call('GET', path, as)).body
  const put = (json: unknown, as = team.cookie) => service.call('PUT', path, as, json)
  /** Adds channels. Returns their ids. */
  const addChannels = async (count: number): Promise<string[]> => {
    const ids: string[] = []
    while (ids.length < count) {
      const name = crypto.randomUUID()
      const json = { name, type: 'EMAIL', config: { recipients: ['ada@example.com'] } }
      ids.push((await add(team.teamId, 'channels', json, team.cookie)).id)
    }
    return ids
  }
  const entries = () =>
    service.store.db
      .selectFrom('auditEntries')
      .select(['actorId', 'resourceType', 'resourceId', 'details'])
      .where('teamId', '=', team.teamId)
      .where('action', '=', 'MONITORING_CONFIG_UPDATED')
      .orderBy('seq')
      .execute()
  return { ...team, path, read, put, addChannels, entries }
}

test('a team that has changed nothing has the defaults', async () => {
  const team = await openTeam()
  expect(await team.read()).toEqual(DEFAULTS)
})

test('only what is given is changed, each threshold by itself', async () => {
  const team = await openTeam()
  const first = await team.put({ driftAlertEnabled: true, alertThresholds: { errorRateThreshold: 0 } })
  expect(first).toMatchObject({ status: 200 })
  const alertThresholds = { ...DEFAULTS.alertThresholds, errorRateThreshold: 0 }
  const expected = { ...DEFAULTS, driftAlertEnabled: true, alertThresholds }
  expect(first.body).toEqual(expected)
  expect(await team.read()).toEqual(expected)
  const second = await team.put({
    alertThresholds: { latencyThreshold: 0.5, tokenUsageSpike: 1.5 },
    notificationChannels: ['email', 'slack'],
  })
  expect(second.body).toEqual({
    ...expected,
    alertThresholds: { tokenUsageSpike: 1.5, errorRateThreshold: 0, latencyThreshold: 0.5 },
    notificationChannels: ['email', 'slack'],
  })
  // What it reads, a client may send back; and a body may be left out.
  expect((await team.put(second.body)).body).toEqual(second.body)
  expect((await team.put({})).body).toEqual(second.body)
  expect((await team.put({ driftAlertEnabled: false, notificationChannels: [] })).body).toMatchObject({
    driftAlertEnabled: false,
    notificationChannels: [],
    alertThresholds: second.body.alertThresholds,
  })
})

test('each change has an audit entry with what was before and after; what changes nothing has none', async () => {
  const team = await openTeam()
  await team.put({ anomalyDetectionEnabled: true, alertThresholds: { tokenUsageSpike: 5 } })
  await team.put({ anomalyDetectionEnabled: true })
  // The audit masks what is named like a token.
  const { tokenUsageSpike: _, ...rest } = DEFAULTS.alertThresholds
  expect(await team.entries()).toEqual([
    {
      actorId: team.id,
      resourceType: 'MONITORING_CONFIG',
      resourceId: team.teamId,
      details: {
        changed: ['anomalyDetectionEnabled', 'alertThresholds'],
        before: { anomalyDetectionEnabled: false, alertThresholds: { ...rest, usageSpike: 3 } },
        after: { anomalyDetectionEnabled: true, alertThresholds: { ...rest, usageSpike: 5 } },
      },
    },
  ])
})

test('all faults are named at once, and nothing is saved', async () => {
  const team = await openTeam()
  const [channel] = (await team.addChannels(1)) as [string]
  const { status, body } = await team.put({
    anomalyDetectionEnabled: 'yes',
    driftAlertEnabled: null,
    alertThresholds: {
      tokenUsageSpike: 1,
      errorRateThreshold: 1.1,
      latencyThreshold: 0,
      tokenUsageSpikes: 4,
    },
    notificationChannels: 'email',
  })
  expect(status).toBe(400)
  expect(body.errors.map(({ path }: { path: string }) => path).sort()).toEqual([
    'alertThresholds.errorRateThreshold',
    'alertThresholds.latencyThreshold',
    'alertThresholds.tokenUsageSpike',
    'alertThresholds.tokenUsageSpikes',
    'anomalyDetectionEnabled',
    'driftAlertEnabled',
    'notificationChannels',
  ])
  for (const json of [
    { alertThresholds: null },
    { alertThresholds: [] },
    { alertThresholds: { errorRate: 1 } },
    { alertThresholds: { tokenUsageSpike: null } },
    { notificationChannels: ['email', 'email'] },
    { notificationChannels: ['sms'] },
    { notificationChannels: [''] },
    { notificationChannels: [{}] },
    { notificationChannels: [channel, channel.toUpperCase()] },
    { notificationChannels: await team.addChannels(21) },
  ])
    expect((await team.put(json)).status, JSON.stringify(json)).toBe(400)
  expect((await team.put({ notificationChannels: ['email', 'sms'] })).body.errors).toEqual([
    { path: 'notificationChannels[1]', message: NO_CHANNEL },
  ])
  expect(await team.read()).toEqual(DEFAULTS)
})

test('a channel of the list is one that the team has, and leaves the list when it is deleted', async () => {
  const team = await openTeam()
  const other = await openTeam()
  const [first, second] = (await team.addChannels(2)) as [string, string]
  const [foreign] = (await other.addChannels(1)) as [string]
  const saved = await team.put({ notificationChannels: ['email', first.toUpperCase(), second] })
  expect(saved).toMatchObject({ status: 200, body: { notificationChannels: ['email', first, second] } })
  const refused = await team.put({ notificationChannels: [foreign, first, crypto.randomUUID()] })
  expect(refused.status).toBe(400)
  expect(refused.body.errors).toEqual(
    [0, 2].map((at) => ({ path: `notificationChannels[${at}]`, message: NO_CHANNEL })),
  )
  const drop = (id: string) =>
    service.call('DELETE', `/api/monitoring/teams/${team.teamId}/channels/${id}`, team.cookie)
  expect((await drop(first)).status).toBe(200)
  expect(await team.read()).toMatchObject({ notificationChannels: ['email', second] })
  // Whoever changes the config meanwhile does not put it back.
  const [dropped] = await Promise.all([
    drop(second),
    team.put({ driftAlertEnabled: true }),
    team.put({ notificationChannels: [second, 'slack'] }),
    team.put({ sentimentTrackingEnabled: true }),
  ])
  expect(dropped.status).toBe(200)
  const { notificationChannels } = await team.read()
  expect(notificationChannels).not.toContain(second)
})

test('every member may read it, only an ADMIN may change it', async () => {
  const team = await openTeam()
  const viewer = await service.token('VIEWER', team.cookie, team.teamId)
  const builder = await service.signUp('BUILDER', team.teamId)
  const admin = await service.token('ADMIN', team.cookie, team.teamId)
  expect(await team.read(viewer)).toEqual(DEFAULTS)
  for (const who of [viewer, builder.cookie])
    expect((await team.put({ driftAlertEnabled: true }, who)).status).toBe(403)
  expect((await service.call('GET', team.path, service.admin)).status).toBe(403)
  expect((await service.call('GET', pathOf(crypto.randomUUID()), team.cookie)).status).toBe(404)
  expect((await team.put({ driftAlertEnabled: true }, admin)).status).toBe(200)
})

test('two changes at once both count', async () => {
  const team = await openTeam()
  await Promise.all([
    team.put({ driftAlertEnabled: true }),
    team.put({ sentimentTrackingEnabled: true }),
    team.put({ alertThresholds: { tokenUsageSpike: 9 } }),
    team.put({ alertThresholds: { latencyThreshold: 9 } }),
  ])
  expect(await team.read()).toMatchObject({
    driftAlertEnabled: true,
    sentimentTrackingEnabled: true,
    alertThresholds: { tokenUsageSpike: 9, latencyThreshold: 9 },
  })
})
