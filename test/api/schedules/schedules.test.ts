import { expect, test } from 'vitest'
import { keep } from '../../support/keep.ts'
import { shareService } from '../../support/service.ts'

const service = await keep(shareService())

const nightly = (id: string, disabled = false) => ({
  ...{ id, type: 'SCHEDULE_TRIGGER', disabled },
  config: { cron: '30 2 * * *', timezone: 'Europe/Berlin' },
})

test("a team's schedules are listed by workflow, for its members only", async () => {
  const team = await service.otherTeam()
  const create = async (name: string, nodes: object[]) => {
    const json = { teamId: team.teamId, name, nodes, edges: [] }
    const { status, body } = await service.call('POST', '/api/workflows', team.cookie, json)
    expect(status).toBe(201)
    return body.id as string
  }
  await create('By hand', [{ id: 'start', type: 'MANUAL_TRIGGER', config: {} }])
  const odd = { id: 'odd', type: 'SET', config: { values: { text: 'NUL \u0000' } } }
  const second = await create('Weekly', [nightly('b'), nightly('off', true), odd])
  const first = await create('Monthly', [nightly('a')])
  const list = (query: string, as: string) =>
    service.call('GET', `/api/schedules?teamId=${team.teamId}${query}`, as)
  const { status, body } = await list('', team.cookie)
  expect(status).toBe(200)
  expect(body).toMatchObject({ totalElements: 2, number: 0 })
  const schedule = { cron: '30 2 * * *', timezone: 'Europe/Berlin', registered: false, nextRuns: [] }
  expect(body.content).toEqual([
    {
      ...{ workflowId: first, workflowName: 'Monthly', active: false },
      schedules: [expect.objectContaining({ nodeId: 'a', ...schedule })],
    },
    {
      ...{ workflowId: second, workflowName: 'Weekly', active: false },
      schedules: [expect.objectContaining({ nodeId: 'b', ...schedule })],
    },
  ])
  const page = (await list('&size=1&page=1', team.cookie)).body
  expect(page.content.map(({ workflowId }: { workflowId: string }) => workflowId)).toEqual([second])
  const stranger = await service.signUp('ADMIN')
  expect((await list('', stranger.cookie)).status).toBe(403)
})
