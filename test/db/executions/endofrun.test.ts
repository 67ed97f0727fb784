import { sql } from 'kysely'
import { v5 as uuidv5 } from 'uuid'
import { expect, test } from 'vitest'
import { rebuildExecution } from '../../../activities/temporal/rebuild.ts'
import { openEnvelope } from '../../../db/executions/records/outputs.ts'
import { addExecution } from '../../../db/executions/starts/add.ts'
import type { Start } from '../../../db/executions/starts/origins.ts'
import { forgetStarted } from '../../../db/executions/starts/runstart.ts'
import { readStartable } from '../../../db/executions/starts/startable.ts'
import type { ExecutionBody } from '../../support/client.ts'
import { edges } from '../../support/engine/graphs.ts'
import { keep } from '../../support/keep.ts'
import { nodeOf, shareRunning } from '../../support/running.ts'
import { startTarget } from '../../support/servers/target.ts'

const start = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }

const target = await keep(startTarget())
const host = await keep(shareRunning())
const hanging = await host.create({
  nodes: [start, { id: 'hang', type: 'HTTP_REQUEST', config: { method: 'POST', url: `${target.url}/hang` } }],
  edges: edges('start -> hang'),
})

const failing = {
  id: 'stop',
  type: 'STOP_AND_ERROR',
  name: 'Stop',
  config: { message: 'no more {{ $input.n }}' },
}

const hangs = (id: string) => target.until(() => target.calls.some(({ key }) => key?.startsWith(id)))
const cancel = (id: string) => host.ask('POST', `/api/executions/${id}/cancel`)

async function errorRuns(workflowId: string): Promise<{ id: string; status: string; triggerType: string }[]> {
  const path = `/api/executions?workflowId=${workflowId}`
  return (await host.ask<{ content: { id: string; status: string; triggerType: string }[] }>('GET', path))
    .content
}

async function errandsOf(id: string): Promise<string[]> {
  const { rows } = await sql<{ kind: string }>`
    select kind from outbox where subject_id = ${id} order by kind`.execute(host.store.db)
  return rows.map(({ kind }) => kind)
}

test('a failed execution starts its error workflow once; a failed error workflow starts none', async () => {
  const errors = await host.create({
    nodes: [{ id: 'failed', type: 'ERROR_TRIGGER', config: {} }, failing],
    edges: edges('failed -> stop'),
  })
  await host.ask('PUT', `/api/workflows/${errors}`, { settings: { errorWorkflowId: errors } })
  const id = await host.create({
    nodes: [start, failing],
    edges: edges('start -> stop'),
    settings: { errorWorkflowId: errors },
  })
  const failed = await host.ended(await host.execute(id, { n: 7 }))
  expect(failed.status).toBe('FAILED')
  await expect.poll(async () => (await errorRuns(errors)).length).toBe(1)
  const told = await host.ended(uuidv5('error', failed.id))
  expect(told).toMatchObject({ status: 'FAILED', trigger: 'ERROR', workflowId: errors })
  expect(told.inputData).toEqual({
    execution: {
      id: failed.id,
      workflowId: id,
      workflowName: expect.stringMatching(/^w /),
      workflowVersion: 1,
      status: 'FAILED',
      trigger: 'MANUAL',
      errorMessage: 'no more 7',
      retriedFrom: null,
      createdAt: failed.createdAt,
      startedAt: failed.startedAt,
      completedAt: failed.completedAt,
      failedNode: {
        nodeId: 'stop',
        nodeName: 'Stop',
        nodeType: 'STOP_AND_ERROR',
        iteration: null,
        errorMessage: 'no more 7',
        retryCount: 0,
      },
    },
    workflow: { id, name: expect.stringMatching(/^w /) },
  })
  // If the errand is carried out a second time, it finds the same execution.
  expect(await host.engine.carryOut({ kind: 'ERROR', subjectId: failed.id, key: '' })).toBe(true)
  expect(await errandsOf(failed.id)).toEqual([])
  expect(await errandsOf(told.id)).toEqual([])
  expect((await errorRuns(errors)).map((run) => run.id)).toEqual([told.id])
  // A cancelled execution does not start the error workflow.
  const cancelled = await host.create({
    nodes: [start, { id: 'wait', type: 'WAIT', config: { durationMs: 60_000 } }],
    edges: edges('start -> wait'),
    settings: { errorWorkflowId: errors },
  })
  const run = await host.execute(cancelled)
  await cancel(run)
  await host.ended(run)
  expect(await errandsOf(run)).not.toContain('ERROR')
})

test('an error workflow that is deleted or has no ERROR_TRIGGER any more is not started', async () => {
  const errors = await host.create({
    nodes: [{ id: 'failed', type: 'ERROR_TRIGGER', config: {} }],
    edges: [],
  })
  const id = await host.create({
    nodes: [start, failing],
    edges: edges('start -> stop'),
    settings: { errorWorkflowId: errors },
  })
  const settled = async () => {
    const run = await host.ended(await host.execute(id))
    await expect.poll(() => errandsOf(run.id)).toEqual([])
    expect(await errorRuns(errors).catch(() => [])).toEqual([])
  }
  await host.ask('PUT', `/api/workflows/${errors}`, { nodes: [start], edges: [] })
  await settled()
  await host.ask('DELETE', `/api/workflows/${errors}`)
  await settled()
})

/** Accepts a child execution as a SUB_WORKFLOW node does. Returns its id. */
async function startChild(
  workflowId: string,
  executionId: string,
  more: { key?: string; detached?: boolean } = {},
) {
  const workflow = (await readStartable(host.store, workflowId, () => true))!
  const child: Start = {
    origin: 'PARENT',
    id: crypto.randomUUID(),
    node: workflow.graph.nodes[0]!,
    trigger: 'SUB_WORKFLOW',
    data: {},
    by: { kind: 'SYSTEM', id: null, name: 'parent' },
    parent: { key: 'sub#', executionId, depth: 1, ...more },
  }
  return (await addExecution(host.store, workflow, child)).executionId
}

const begin = (id: string) => host.engine.carryOut({ kind: 'START', subjectId: id, key: '' })

test('a cancelled execution ends the children that it waits for, and their children', async () => {
  const parent = await host.execute(hanging)
  await hangs(parent)
  const running = await startChild(hanging, parent)
  const below = await startChild(hanging, running)
  const detached = await startChild(hanging, parent, { detached: true })
  for (const id of [running, below, detached]) await begin(id)
  for (const id of [running, below, detached]) await hangs(id)
  const pending = await startChild(hanging, parent)
  await cancel(parent)
  const ended = await Promise.all([parent, running, below, pending].map((id) => host.ended(id)))
  expect(ended.map(({ status }) => status)).toEqual(Array(4).fill('CANCELLED'))
  expect(ended.map(({ errorMessage }) => errorMessage)).toEqual([
    'The execution was cancelled',
    ...Array(3).fill('The execution that waited for it has ended'),
  ])
  expect((await host.read(detached)).status).toBe('RUNNING')
  // No child that is waited for starts after its parent has ended.
  await expect(startChild(hanging, parent)).rejects.toMatchObject({ code: 'CONFLICT' })
  await expect(startChild(hanging, parent, { detached: true })).resolves.toEqual(expect.any(String))
  await cancel(detached)
})

test('a child that starts while its parent ends is cancelled with it, or not started', async () => {
  const raced = await Promise.all(
    Array.from({ length: 10 }, async () => {
      const parent = await host.execute(hanging)
      await hangs(parent)
      const [child] = await Promise.all([startChild(hanging, parent).catch(() => null), cancel(parent)])
      return { parent, child }
    }),
  )
  for (const { parent, child } of raced) {
    await host.ended(parent)
    if (child) expect((await host.ended(child)).status).toBe('CANCELLED')
  }
})

test('the end of a child signals its parent, but not the end of a detached child', async () => {
  const parent = await host.execute(hanging)
  await hangs(parent)
  const quick = await host.create({ nodes: [start], edges: [] })
  for (const more of [{ key: 'sub#3' }, { key: 'other#', detached: true }]) {
    const child = await startChild(quick, parent, more)
    await begin(child)
    await host.ended(child)
  }
  const signals = async () => {
    const { events } = await host.engine.client.workflow.getHandle(parent).fetchHistory()
    return (events ?? []).filter((event) => event.workflowExecutionSignaledEventAttributes).length
  }
  await expect.poll(signals).toBe(1)
  await expect.poll(() => errandsOf(parent)).toEqual([])
  await cancel(parent)
  await host.ended(parent)
  expect(await signals()).toBe(1)
})

test('values that are not kept are there for the run, and stored nowhere when it has ended', async () => {
  const big = 'x'.repeat(50_000)
  const graph = {
    nodes: [
      start,
      { id: 'set', type: 'SET', config: { values: { text: '{{ $input.secret & $input.secret }}' } } },
      {
        id: 'call',
        type: 'HTTP_REQUEST',
        config: { method: 'POST', url: `${target.url}/ok?key={{ $length($nodes.set.text) }}` },
      },
    ],
    edges: edges('start -> set', 'set -> call'),
  }
  const values = async (id: string) => {
    const { rows } = await sql<{ all: string }>`
      select concat(e.input_data::text, (select string_agg(output::text, '') from node_executions
        where execution_id = e.id), (select string_agg(hash, '') from blobs where execution_id = e.id)) as all
      from executions e where id = ${id}`.execute(host.store.db)
    return rows[0]!.all
  }
  const neither = { ...graph, settings: { saveData: { inputs: false, outputs: false } } }
  const statusOf = (run: ExecutionBody) => run.nodeExecutions.map(({ status }) => status)
  const run = await host.run(neither, { secret: big })
  expect(run).toMatchObject({ status: 'SUCCESS', inputData: {} })
  expect(statusOf(run)).toEqual(['SUCCESS', 'SUCCESS', 'SUCCESS'])
  for (const node of run.nodeExecutions) expect(node.outputData).toBeNull()
  expect(target.calls.filter(({ key }) => key?.startsWith(run.id))).toHaveLength(1)
  expect(await values(run.id)).toBe('{}')
  const { client, sealer } = host.engine
  await rebuildExecution({ store: host.store, client, sealer }, run.id)
  expect(await values(run.id)).toBe('{}')

  const inputs = await host.run({ ...graph, settings: { saveData: { inputs: false } } }, { secret: 'psst' })
  expect(inputs.inputData).toEqual({})
  expect(nodeOf(inputs, 'start').outputData).toBeNull()
  expect(nodeOf(inputs, 'set').outputData).toEqual({ text: 'psstpsst' })
  const outputs = await host.run({ ...graph, settings: { saveData: { outputs: false } } }, { secret: 'psst' })
  expect(outputs.inputData).toEqual({ secret: 'psst' })
  expect(nodeOf(outputs, 'set').outputData).toBeNull()
  // A child's outputs are kept for its parent until the parent has ended.
  const parent = await host.execute(hanging)
  await hangs(parent)
  const child = await startChild(await host.create(neither), parent)
  await sql`update executions set input_data = ${JSON.stringify({ secret: big })}::json,
    input_bytes = 60000 where id = ${child}`.execute(host.store.db)
  forgetStarted(host.store, child)
  await begin(child)
  await host.ended(child)
  const stored = await host.store.db
    .selectFrom('nodeExecutions')
    .select('output')
    .where('executionId', '=', child)
    .where('nodeId', '=', 'set')
    .executeTakeFirstOrThrow()
  expect(await openEnvelope(host.store, child, stored.output as never)).toEqual({ text: big + big })
  await cancel(parent)
  await host.ended(parent)
  expect(await values(child)).toBe('{}')

  // They are also kept for the webhook's caller who waits for them.
  const hook = await host.create({
    ...neither,
    nodes: [
      { id: 'in', type: 'WEBHOOK_TRIGGER', config: { path: 'in', responseMode: 'lastNode' } },
      { id: 'set', type: 'SET', config: { values: { text: '{{ $input.body.secret }}' } } },
    ],
    edges: edges('in -> set'),
  })
  await host.ask('PUT', `/api/workflows/${hook}`, { active: true })
  const json = { secret: 'psst' }
  const answer = await host.request(`/hooks/${hook}/in`, { method: 'POST', json })
  expect([answer.status, await answer.json()]).toEqual([200, { text: 'psst' }])
  const called = answer.headers.get('location')!.split('/').at(-1)!
  await expect.poll(() => values(called)).toBe('{}')
})

test('if outputs are not kept, event data, comments and forms are removed, but not who decided', async () => {
  const id = await host.create({
    nodes: [
      start,
      { id: 'ask', type: 'APPROVAL', config: { message: 'Pay?' } },
      { id: 'paid', type: 'WAIT_FOR_EVENT', config: { name: 'paid' } },
    ],
    edges: edges('start -> ask', 'ask:approved -> paid'),
    settings: { saveData: { outputs: false } },
  })
  const run = await host.execute(id)
  const list = `/api/approvals?teamId=${host.teamId}&executionId=${run}`
  const open = () => host.ask<{ content: { id: string }[] }>('GET', list).then(({ content }) => content)
  await expect.poll(open).toHaveLength(1)
  const [approval] = await open()
  const said = { decision: 'approved', comment: 'psst', form: { iban: 'psst' } }
  await host.ask('POST', `/api/approvals/${approval!.id}`, said)
  await host.until(run, ({ nodeExecutions }) => nodeExecutions.some(({ nodeId }) => nodeId === 'paid'))
  await host.ask('POST', `/api/executions/${run}/events/paid`, { data: { card: 'psst' } })
  expect((await host.ended(run)).status).toBe('SUCCESS')
  const { decisions } = await host.ask<{ decisions: object[] }>('GET', `/api/approvals/${approval!.id}`)
  const by = { id: host.user.id }
  expect(decisions).toMatchObject([{ decision: 'approved', by, comment: null, form: null }])
  const { rows } = await sql`select data, decisions from pauses where execution_id = ${run}`.execute(
    host.store.db,
  )
  expect(rows).toHaveLength(2)
  expect(JSON.stringify(rows)).not.toContain('psst')
})
