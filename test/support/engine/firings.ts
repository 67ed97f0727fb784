import { Client, Connection, ScheduleOverlapPolicy } from '@temporalio/client'
import { expect, vi } from 'vitest'
import { nameSchedule } from '../../../activities/schedules/schedules.ts'
import { nameFiring } from '../../../db/schedules/schedules.ts'
import { CLIENT_OPTIONS } from '../../../worker/temporal.ts'
import type { ExecutionBody } from '../client.ts'
import type { Target } from '../servers/target.ts'
import { edges } from './graphs.ts'
import type { Installation } from './installation.ts'
import { checkCalls, nameRecord, type Scenario, WITHIN_MS } from './scenarios.ts'

/** Firings of a schedule: some are in progress when the failure comes, some are just being started. */
export async function createFiringScenario(host: Installation, target: Target): Promise<Scenario> {
  const workflowId = await host.create({
    nodes: [
      {
        id: 'tick',
        type: 'SCHEDULE_TRIGGER',
        // Once a year, so that in practice only the test's backfills make it fire.
        config: { cron: '0 0 1 1 *', overlap: 'allowAll' },
      },
      {
        id: 'call',
        type: 'HTTP_REQUEST',
        config: { method: 'POST', url: `${target.url}/slow?ms=1500&key={{ $trigger.scheduledAt }}` },
      },
    ],
    edges: edges('tick -> call'),
  })
  await host.ask('PUT', `/api/workflows/${workflowId}`, { active: true })
  await vi.waitFor(
    async () =>
      expect(await host.ask('GET', `/api/workflows/${workflowId}/schedules`)).toMatchObject([
        { registered: true },
      ]),
    { timeout: 30_000 },
  )
  let year = 1990
  let slots: string[] = []

  let connection: Connection | undefined

  async function fire(count: number): Promise<void> {
    const { temporalAddress: address } = host.holder().addresses
    connection ??= await Connection.connect({ ...CLIENT_OPTIONS, address })
    const due = Array.from({ length: count }, () => `${year++}-01-01T00:00:00.000Z`)
    slots.push(...due)
    const spans = due.map((slot) => ({
      start: new Date(Date.parse(slot) - 1_000),
      end: new Date(Date.parse(slot) + 1_000),
      overlap: ScheduleOverlapPolicy.ALLOW_ALL,
    }))
    const { schedule } = new Client({ connection })
    await schedule.getHandle(nameSchedule('perdure', workflowId, 'tick')).backfill(spans)
  }

  async function check(slot: string, brokenAt: number): Promise<ExecutionBody> {
    const id = nameFiring(workflowId, 'tick', slot)
    await expect
      .poll(async () => (await host.get(`/api/executions/${id}`)).status, { timeout: WITHIN_MS })
      .toBe(200)
    const run = await host.ended(id, WITHIN_MS)
    expect({ status: run.status, why: run.errorMessage }).toEqual({ status: 'SUCCESS', why: null })
    expect(run.trigger).toBe('SCHEDULE')
    expect(run.outputData).toMatchObject({ body: { key: slot } })
    expect(run.nodeExecutions.map(nameRecord)).toEqual(['tick#', 'call#'])
    for (const node of run.nodeExecutions) checkCalls(target, id, node, brokenAt)
    return run
  }

  return {
    name: 'firings',
    workflowIds: [workflowId],
    middle: () => fire(3),
    late: () => fire(2),
    async check(brokenAt) {
      await connection?.close()
      connection = undefined
      const ended: ExecutionBody[] = []
      for (const slot of slots) ended.push(await check(slot, brokenAt))
      slots = []
      return ended
    },
  }
}
