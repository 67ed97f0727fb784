import { expect, test } from 'vitest'
import { keep } from '../../../support/keep.ts'
import { makeNotices } from '../../../support/monitoring/notices.ts'
import { shareService } from '../../../support/service.ts'

const service = await keep(shareService())
const { path, add } = makeNotices(service)

const STOP = { name: 'Stop', steps: [{ type: 'DEACTIVATE_WORKFLOW' }] }

const call = (method: string, teamId: string, rest = '', json?: unknown, as = service.admin) =>
  service.call(method, path(teamId, `playbooks${rest}`), as, json)

test('a playbook is added, read, changed and deleted, and each of it is an entry', async () => {
  const { teamId, cookie } = await service.otherTeam()
  const made = await call('POST', teamId, '', STOP, cookie)
  expect(made.status).toBe(201)
  const { id } = made.body
  expect(made.body).toMatchObject({
    ...STOP,
    enabled: true,
    on: {
      alertTypes: ['ANOMALY', 'DRIFT', 'SENTIMENT'],
      minSeverity: 'LOW',
      evaluations: false,
      workflowIds: null,
    },
  })
  const changed = await call('PUT', teamId, `/${id}`, { on: { minSeverity: 'HIGH' }, enabled: false }, cookie)
  expect(changed.body).toMatchObject({
    name: 'Stop',
    enabled: false,
    on: { minSeverity: 'HIGH', evaluations: false },
  })
  // What was read can be sent back.
  expect((await call('PUT', teamId, `/${id}`, changed.body, cookie)).body).toMatchObject({ name: 'Stop' })
  expect((await call('GET', teamId, `/${id}`, undefined, cookie)).body.on.minSeverity).toBe('HIGH')
  expect((await call('GET', teamId, '', undefined, cookie)).body).toHaveLength(1)
  expect((await call('POST', teamId, '', STOP, cookie)).status).toBe(409)
  expect((await call('GET', teamId, `/${id}/runs`, undefined, cookie)).body.content).toEqual([])
  expect((await call('DELETE', teamId, `/${id}`, undefined, cookie)).status).toBe(200)
  expect((await call('GET', teamId, `/${id}/runs`, undefined, cookie)).status).toBe(404)
  const { body } = await service.call('GET', `/api/audit/team/${teamId}?resourceId=${id}`, cookie)
  expect(body.content.map(({ action }: { action: string }) => action)).toEqual([
    'PLAYBOOK_DELETED',
    'PLAYBOOK_UPDATED',
    'PLAYBOOK_UPDATED',
    'PLAYBOOK_CREATED',
  ])
})

test('what is wrong with a playbook is named', async () => {
  const { teamId, cookie } = await service.otherTeam()
  const other = await service.otherTeam()
  const config = { recipients: ['ada@example.com'] }
  const foreign = await add(other.teamId, 'channels', { name: 'Us', type: 'EMAIL', config }, other.cookie)
  const faults = async (body: object) => {
    const response = await call('POST', teamId, '', body, cookie)
    expect(response.status).toBe(400)
    return response.body.errors.map((one: { path: string }) => one.path).sort()
  }
  expect(await faults({ name: '', steps: [] })).toEqual(['name', 'steps'])
  expect(await faults({ ...STOP, steps: Array(21).fill(STOP.steps[0]) })).toEqual(['steps'])
  expect(await faults({ ...STOP, steps: [{ type: 'PAGE' }] })).toEqual(['steps[0].type'])
  const strange = crypto.randomUUID()
  const steps = [
    { type: 'NOTIFY', channelId: foreign.id },
    { type: 'START_WORKFLOW', workflowId: strange },
  ]
  expect(await faults({ ...STOP, steps, on: { workflowIds: [strange] } })).toEqual([
    'on.workflowIds[0]',
    'steps[0].channelId',
    'steps[1].workflowId',
  ])
  const input = { text: 'x'.repeat(20_000) }
  expect(await faults({ ...STOP, steps: [{ type: 'START_WORKFLOW', workflowId: strange, input }] })).toEqual([
    'steps[0].input',
  ])
})
