import { sql } from 'kysely'
import { pino } from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { createOutsides } from '../../../../activities/egress/outside.ts'
import { runPlaybook } from '../../../../activities/monitoring/playbooks/playbooks.ts'
import { fanOutNotice } from '../../../../db/monitoring/notices/fanout.ts'
import { claimRuns } from '../../../../db/monitoring/playbooks/runs.ts'
import { startNotices } from '../../../../worker/service/monitoring/notices.ts'
import { keep } from '../../../support/keep.ts'
import { makeNotices } from '../../../support/monitoring/notices.ts'
import { LOCAL } from '../../../support/servers/loopback.ts'
import { startHookReceiver } from '../../../support/servers/webhook.ts'
import { startService } from '../../../support/service.ts'
import { until } from '../../../support/until.ts'

const service = await keep(startService({ rateLimits: false }))
const receiver = await keep(startHookReceiver())
const { store } = service
const { notify, add, read, path } = makeNotices(service)
const log = pino({ level: 'silent' })
const carrier = {
  store,
  outside: createOutsides(LOCAL),
  mailer: undefined,
  publicUrl: 'https://p.example.com',
  log,
}

function work() {
  const end = startNotices(carrier, { everyMs: 25 })
  onTestFinished(end)
  return end
}

const GRAPH = {
  nodes: [
    { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
    { id: 'pass', type: 'NO_OP', config: {} },
  ],
  edges: [{ source: 'start', target: 'pass' }],
}

async function workflow(teamId: string, as: string, name: string, more: object = {}): Promise<string> {
  const json = { teamId, name, ...GRAPH, ...more }
  const { body } = await service.call('POST', '/api/workflows', as, json)
  await service.call('PUT', `/api/workflows/${body.id}`, as, { active: true })
  return body.id
}

const runsOf = (teamId: string, id: string, as: string) => read(teamId, `playbooks/${id}/runs`, as)

const ended = (teamId: string, id: string, as: string, count = 1) =>
  until(() => runsOf(teamId, id, as), {
    holds: ({ content }) =>
      content.length === count &&
      content.every(({ endedAt }: { endedAt: string | null }) => endedAt !== null),
  })

const isActive = async (id: string, as: string) =>
  (await service.call('GET', `/api/workflows/${id}`, as)).body.active

const executions = (workflowId: string) =>
  store.db
    .selectFrom('executions')
    .select(['id', 'trigger', 'inputData', 'status', 'startedByKind'])
    .where('workflowId', '=', workflowId)
    .execute()

const untilFannedOut = async () => {
  while (await fanOutNotice(store));
}

test('an alert starts a playbook: its steps are done in order, each with its outcome', async () => {
  const { teamId, cookie } = await service.otherTeam()
  const failing = await workflow(teamId, cookie, 'Fails')
  const mending = await workflow(teamId, cookie, 'Mends')
  const channel = await add(
    teamId,
    'channels',
    { name: 'Hook', type: 'WEBHOOK', config: { url: receiver.url } },
    cookie,
  )
  const gone = await workflow(teamId, cookie, 'Gone')
  const { id } = await add(
    teamId,
    'playbooks',
    {
      name: 'Stop and mend',
      on: { alertTypes: ['ANOMALY'], minSeverity: 'HIGH' },
      steps: [
        { type: 'NOTIFY', channelId: channel.id },
        { type: 'START_WORKFLOW', workflowId: gone },
        { type: 'DEACTIVATE_WORKFLOW' },
        { type: 'START_WORKFLOW', workflowId: mending, input: { why: 'alert' } },
      ],
    },
    cookie,
  )
  await service.call('DELETE', `/api/workflows/${gone}`, cookie)
  work()
  const subjectId = await notify(teamId, { workflowId: failing })
  const { content } = await ended(teamId, id, cookie)
  expect(content[0]).toMatchObject({ status: 'FAILED', workflowId: failing, title: 'Tokens have tripled' })
  const [run] = await executions(mending)
  expect(
    content[0].steps.map(({ outcome }: { outcome: { status: string; message: string } }) => outcome),
  ).toMatchObject([
    { status: 'DONE', message: 'Sent to "Hook"; see its deliveries' },
    { status: 'FAILED', message: 'The team has no such workflow any more' },
    { status: 'DONE', message: 'Deactivated "Fails"' },
    { status: 'DONE', message: 'Started "Mends"', executionId: run!.id },
  ])
  expect(await isActive(failing, cookie)).toBe(false)
  expect(run).toMatchObject({ trigger: 'PLAYBOOK', startedByKind: 'SYSTEM' })
  expect(run!.inputData).toMatchObject({
    why: 'alert',
    notice: { subjectId, workflowId: failing, severity: 'HIGH' },
  })
  expect((await service.call('GET', `/api/executions/${run!.id}`, cookie)).body.trigger).toBe('PLAYBOOK')
  const { body } = await service.call('GET', `/api/audit/team/${teamId}?action=WORKFLOW_DEACTIVATED`, cookie)
  expect(body.content).toMatchObject([
    { resourceId: failing, userName: 'playbook Stop and mend', actor: { kind: 'SYSTEM' } },
  ])
  const { content: sent } = await until(() => read(teamId, 'deliveries', cookie), {
    holds: ({ content }) => content[0]?.status === 'DELIVERED',
  })
  expect(sent).toMatchObject([{ channelId: channel.id, playbookId: id }])
})

test('a playbook runs once for a workflow and an hour, and the log says what it left out', async () => {
  const { teamId, cookie } = await service.otherTeam()
  const [one, two] = [await workflow(teamId, cookie, 'One'), await workflow(teamId, cookie, 'Two')]
  const steps = [{ type: 'START_WORKFLOW', workflowId: one }]
  const { id } = await add(teamId, 'playbooks', { name: 'Once', steps }, cookie)
  for (const workflowId of [one, one, two, null, null]) await notify(teamId, { workflowId })
  const hour = new Date().getUTCHours()
  work()
  work()
  const { content } = await ended(teamId, id, cookie, 5)
  if (new Date().getUTCHours() !== hour) return
  const skipped = content.filter(({ status }: { status: string }) => status === 'SKIPPED')
  expect(skipped.map(({ reason }: { reason: string }) => reason).sort()).toEqual([
    'The playbook has run for the team as a whole in this hour already',
    'The playbook has run for this workflow in this hour already',
  ])
  expect(await executions(one)).toHaveLength(3)
})

test('a playbook waits only for what it says', async () => {
  const { teamId, cookie } = await service.otherTeam()
  const one = await workflow(teamId, cookie, 'One')
  const two = await workflow(teamId, cookie, 'Two')
  const steps = [{ type: 'START_WORKFLOW', workflowId: one }]
  const make = async (name: string, on: object) =>
    (await add(teamId, 'playbooks', { name, on, steps }, cookie)).id
  const ids = [
    await make('drift', { alertTypes: ['DRIFT'] }),
    await make('critical', { minSeverity: 'CRITICAL' }),
    await make('two', { workflowIds: [two] }),
    await make('evaluations', { alertTypes: [], evaluations: true }),
  ]
  await notify(teamId, { workflowId: one })
  await notify(teamId, { workflowId: two, severity: 'CRITICAL' })
  await notify(teamId, { workflowId: one, kind: 'EVALUATION', alertType: null, severity: 'LOW' })
  await untilFannedOut()
  const about = await Promise.all(
    ids.map(async (id) =>
      (await runsOf(teamId, id, cookie)).content.map(({ workflowId }: { workflowId: string }) => workflowId),
    ),
  )
  expect(about).toEqual([[], [two], [two], [one]])
  // Evaluations go to no channel of the config.
  expect((await read(teamId, 'deliveries', cookie)).content).toEqual([])
})

test('a run that was disabled or deleted stops, and a killed one goes on without doing a step twice', async () => {
  const { teamId, cookie } = await service.otherTeam()
  const mending = await workflow(teamId, cookie, 'Mends')
  const failing = await workflow(teamId, cookie, 'Fails')
  const steps = [
    { type: 'DEACTIVATE_WORKFLOW', workflowId: failing },
    { type: 'START_WORKFLOW', workflowId: mending },
  ]
  const [off, deleted, killed] = [
    await add(teamId, 'playbooks', { name: 'Off', steps }, cookie),
    await add(teamId, 'playbooks', { name: 'Deleted', steps }, cookie),
    await add(teamId, 'playbooks', { name: 'Killed', steps }, cookie),
  ]
  await notify(teamId)
  await untilFannedOut()
  await service.call('PUT', path(teamId, `playbooks/${off.id}`), cookie, { enabled: false })
  await service.call('DELETE', path(teamId, `playbooks/${deleted.id}`), cookie)
  expect((await runsOf(teamId, off.id, cookie)).content[0]).toMatchObject({
    status: 'STOPPED',
    reason: 'The playbook was disabled',
  })
  expect((await service.call('GET', path(teamId, `playbooks/${deleted.id}/runs`), cookie)).status).toBe(404)

  const run = (await claimRuns(store, 10, 60_000)).find((one) => one.teamId === teamId)
  expect(run).toMatchObject({ playbookId: killed.id })
  await runPlaybook({ store, log }, run!, new AbortController().signal)
  expect(await isActive(failing, cookie)).toBe(false)
  // It has done all, and was killed before it could note any of it. Somebody activates the workflow again.
  await service.call('PUT', `/api/workflows/${failing}`, cookie, { active: true })
  await sql`update playbook_runs set status = 'PENDING', outcomes = '[]', ended_at = null, due_at = now()
    where id = ${run!.id}`.execute(store.db)
  work()
  const { content } = await ended(teamId, killed.id, cookie)
  expect(content[0].status).toBe('COMPLETED')
  expect(await isActive(failing, cookie)).toBe(true)
  expect(await executions(mending)).toHaveLength(1)
})

test('a run that a playbook has started starts no error workflow when it fails', async () => {
  const { teamId, cookie } = await service.otherTeam()
  const nodes = [
    { id: 'start', type: 'ERROR_TRIGGER', config: {} },
    { id: 'pass', type: 'NO_OP', config: {} },
  ]
  const errorWorkflowId = await workflow(teamId, cookie, 'Errors', { nodes })
  const mending = await workflow(teamId, cookie, 'Mends', { settings: { errorWorkflowId } })
  const steps = [{ type: 'START_WORKFLOW', workflowId: mending }]
  const { id } = await add(teamId, 'playbooks', { name: 'Mend', steps }, cookie)
  await notify(teamId)
  work()
  await ended(teamId, id, cookie)
  const [run] = await executions(mending)
  await sql`update executions set status = 'RUNNING' where id = ${run!.id}`.execute(store.db)
  await sql`update executions set status = 'FAILED', completed_at = now() where id = ${run!.id}`.execute(
    store.db,
  )
  const errands = await store.db
    .selectFrom('outbox')
    .select('kind')
    .where('subjectId', '=', run!.id)
    .where('kind', '=', 'ERROR')
    .execute()
  expect(errands).toEqual([])
})
