import type { Client } from '@temporalio/client'
import { sql } from 'kysely'
import { pino } from 'pino'
import { describe, expect, test } from 'vitest'
import { createGroupWriter } from '../../../../activities/temporal/groupwriter.ts'
import { openNews, readHistories } from '../../../../activities/temporal/histories.ts'
import { fetchStart } from '../../../../activities/temporal/pages.ts'
import { createRefresher } from '../../../../activities/temporal/refresher.ts'
import { createFold } from '../../../../db/executions/projection/fold.ts'
import type { HistoryEvent, RunHistory } from '../../../../db/executions/projection/history.ts'
import { readProgress } from '../../../../db/executions/projection/progress.ts'
import { readPosition, saveProjection } from '../../../../db/executions/records/save.ts'
import { type ExecutionBody, nodeOf } from '../../../support/client.ts'
import { edges, examples } from '../../../support/engine/graphs.ts'
import { keep } from '../../../support/keep.ts'
import { runExample, startRunning } from '../../../support/running.ts'
import { startTarget } from '../../../support/servers/target.ts'
import { until } from '../../../support/until.ts'

/** Projections that go on from the stored rows, over chains of many short Temporal runs. */
const target = await keep(startTarget())
// Its sweeper would find the forgotten executions below, and project them on its own.
const forced = await keep(startRunning({ continueAfterEvents: 8, sweepEveryMs: 3_600_000 }))
const { store } = forced
const log = pino({ level: 'silent' })

/** The chain's histories, each event for itself. */
async function readChain(id: string): Promise<RunHistory[]> {
  const { client, sealer } = forced.engine
  const chain: RunHistory[] = []
  for await (const { runId, events } of readHistories(client, sealer, id, { untilClosed: false }))
    for (const event of events) chain.push({ runId, events: [event] })
  return chain
}

/** As the release before writes it, which does not say the place of a run in its chain. */
function asOlder({ runId, events }: RunHistory): RunHistory {
  const strip = (event: HistoryEvent): HistoryEvent => {
    if (event.kind !== 'started' || !event.input?.carried) return event
    const { chain, ...carried } = event.input.carried
    expect(chain).toBeGreaterThan(0)
    return { ...event, input: { ...event.input, carried } }
  }
  return { runId, events: events.map(strip) }
}

async function readRows(id: string) {
  const nodes =
    await sql`select id, node_id, iteration, status, started_at, completed_at, output::text, handle,
    error_message, retry_count, settled, position, loop::text, given_by, step, tool, agent::text
    from node_executions where execution_id = ${id} order by id`.execute(store.db)
  const run =
    await sql`select status, error_message, started_at, completed_at, run_position, run_id, last_event_id,
    record_count from executions where id = ${id}`.execute(store.db)
  return { nodes: nodes.rows, run: run.rows[0] }
}

/** Makes the execution's row as it is before anything is projected. */
async function forget(id: string, { db } = store): Promise<void> {
  await db.deleteFrom('nodeExecutions').where('executionId', '=', id).execute()
  await sql`update executions set status = 'RUNNING', run_id = null, run_position = 0, last_event_id = 0,
    record_count = null, started_at = null, completed_at = null where id = ${id}`.execute(db)
}

const save = (id: string, fold: ReturnType<typeof createFold>) =>
  saveProjection(store, id, fold.project(), { values: true })

describe.each(['waits', 'loops', 'calls', 'approvals', 'agents', 'asking agent'])(
  'the example "%s"',
  (name) => {
    const tags = ['loops', 'agents'].includes(name) ? ['long'] : []
    test('has the same rows wherever its projection was interrupted', { tags }, async () => {
      const { id } = await runExample(forced, examples(target.url)[name]!)
      const right = await readRows(id)
      const chain = await readChain(id)
      const runs = [...new Set(chain.map(({ runId }) => runId))]
      expect(runs.length).toBeGreaterThan(1)
      const older = chain.map(asOlder)
      const step = Math.max(1, Math.floor(chain.length / 40))
      for (let cut = 1; cut < chain.length; cut += step) {
        await forget(id)
        const parts = cut % 2 === 0 ? older : chain
        const before = createFold(id)
        for (const part of parts.slice(0, cut)) before.read(part)
        expect(await save(id, before)).not.toBeNull()
        const progress = await readProgress(store, id)
        const after = createFold(id, progress)
        const from = parts.findIndex(({ runId }) => runId === progress!.runId)
        for (const part of parts.slice(from)) after.read(part)
        expect(await save(id, after), `cut at ${cut}`).not.toBeNull()
        const rows = await readRows(id)
        expect(rows, `cut at ${cut}`).toEqual(right)
        expect(rows.run).toMatchObject({ recordCount: rows.nodes.length, runPosition: runs.length - 1 })
      }
    })
  },
)

test('the news after any event are all that came later, over all runs', { tags: 'long' }, async () => {
  const { id } = await runExample(forced, examples(target.url).loops!)
  const chain = await readChain(id)
  const { client, sealer } = forced.engine
  const fold = createFold(id)
  for (const [at, part] of chain.entries()) {
    fold.read(part)
    if (at % 7 !== 0 && part.events[0]!.kind !== 'closed') continue
    const news: RunHistory[] = []
    const found = await openNews({ client, sealer, executionId: id }, fold.position()!, at % 2 === 0)
    for await (const { runId, events } of found!)
      for (const event of events) news.push({ runId, events: [event] })
    expect(news).toEqual(chain.slice(at + 1))
  }
})

test('the end of a chain is news also where its number is that of the last event known, of an earlier run', {
  tags: 'long',
}, async () => {
  const { id } = await runExample(forced, examples(target.url).loops!)
  const right = await readRows(id)
  const chain = await readChain(id)
  const runs = [...new Set(chain.map(({ runId }) => runId))]
  const numberOf = (runId: string) =>
    Math.max(...chain.filter((part) => part.runId === runId).map(({ events }) => events[0]!.id))
  const last = numberOf(runs.at(-1)!)
  const earlier = runs.slice(0, -1).filter((runId) => numberOf(runId) >= last)
  expect(earlier.length).toBeGreaterThan(0)
  for (const runId of earlier) {
    await forget(id)
    const seen = { runId, lastEventId: last }
    const view = stopAt(forced.engine.client, seen)
    const { refresh } = createRefresher(
      { ...forced.engine, store, client: view.client, log },
      createGroupWriter(store),
    )
    expect(await refresh(id)).toBe('RUNNING')
    expect((await readRows(id)).run).toMatchObject({ status: 'RUNNING', ...seen })
    view.goOn()
    expect(await refresh(id, true)).toBe('SUCCESS')
    expect(await readRows(id)).toEqual(right)
  }
})

/** A client as Temporal was when an event was the newest one, until `goOn` is called. */
function stopAt(client: Client, { runId, lastEventId }: { runId: string; lastEventId: number }) {
  let stopped = true
  const { workflowService } = client
  type Request = Parameters<typeof workflowService.getWorkflowExecutionHistory>[0]
  const service = new Proxy(workflowService, {
    get(of, key) {
      if (key !== 'getWorkflowExecutionHistory' || !stopped) return Reflect.get(of, key)
      return async (request: Request) => {
        const asked = request.execution!.runId || runId
        const found = await workflowService.getWorkflowExecutionHistory({
          ...request,
          execution: { ...request.execution, runId: asked },
        })
        if (asked !== runId) return found
        const events = found.history!.events!.filter(({ eventId }) => Number(eventId) <= lastEventId)
        return { ...found, history: { events }, nextPageToken: new Uint8Array() }
      }
    },
  })
  return {
    client: new Proxy(client, {
      get: (of, key) => (key === 'workflowService' ? service : Reflect.get(of, key)),
    }),
    goOn: () => {
      stopped = false
    },
  }
}

describe('a chain whose beginning Temporal has removed', () => {
  const call = { type: 'HTTP_REQUEST', config: { url: `${target.url}/ok` } }
  const start = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }
  const graph = {
    nodes: [
      { id: 'start', type: 'SUB_WORKFLOW_TRIGGER', config: {} },
      { id: 'a', ...call },
      { id: 'b', ...call },
      { id: 'c', ...call },
      { id: 'each', type: 'FOR_EACH', config: { items: [7] } },
      { id: 'hold', parentId: 'each', type: 'WAIT_FOR_EVENT', config: { name: 'go' } },
      { id: 'wait', type: 'WAIT', config: { durationMs: 4_000 } },
      { id: 'last', ...call },
    ],
    edges: edges('start -> a', 'a -> b', 'b -> c', 'c -> each', 'c -> wait', 'each -> last'),
    settings: { concurrency: { limit: 1 } },
  }

  /** Starts a parent whose child waits in its last Temporal run, removes all runs but that, and ends it. */
  async function removeBeginning(lose: typeof forget) {
    const host = await startRunning({ continueAfterEvents: 8 })
    const child = await host.create(graph)
    const sub = { id: 'sub', type: 'SUB_WORKFLOW', config: { workflowId: child } }
    const parent = await host.execute(
      await host.create({ nodes: [start, sub], edges: edges('start -> sub') }),
    )
    const found = () =>
      host.store.db.selectFrom('executions').select('id').where('parentId', '=', parent).executeTakeFirst()
    const id = (await until(found))!.id
    await host.until(id, ({ nodeExecutions }) => nodeExecutions.some(({ nodeId }) => nodeId === 'hold'))
    const { sealer } = host.engine
    const { client } = forced.engine
    const runs = async () => {
      const ids: string[] = []
      for await (const { runId } of readHistories(client, sealer, id, { untilClosed: false })) ids.push(runId)
      return [...new Set(ids)]
    }
    const queued = await host.execute(child)
    await host.engine.stop()
    const before = await runs()
    expect(before.length).toBeGreaterThan(2)
    await lose(id, host.store)
    for (const runId of before.slice(0, -1))
      await client.workflowService.deleteWorkflowExecution({
        namespace: 'default',
        workflowExecution: { workflowId: id, runId },
      })
    await until(async () => {
      const source = { client, sealer, executionId: id }
      const left = await Promise.all(before.slice(0, -1).map((runId) => fetchStart(source, runId)))
      return left.every((run) => run === undefined)
    })
    const engine = await host.addEngine()
    host.use(engine)
    try {
      await host.ask('POST', `/api/executions/${id}/events/go`, { came: true })
      const ended = await host.ended(id)
      expect((await host.ended(parent)).status).toBe('SUCCESS')
      await host.until(queued, ({ status }) => status === 'RUNNING')
      return { ended, row: await readPosition(host.store, id), runs: before.length }
    } finally {
      await host.ask('POST', `/api/executions/${queued}/cancel`)
      await host.ended(queued)
      await engine.stop()
      await host.stop()
    }
  }

  const outline = ({ nodeExecutions }: ExecutionBody) =>
    Object.fromEntries(nodeExecutions.map(({ nodeId, status }) => [nodeId, status]))
  const all = Object.fromEntries(graph.nodes.map(({ id }) => [id, 'SUCCESS']))

  test('ends in its row, with its parent and its gate', { tags: 'long' }, async () => {
    const { ended, row, runs } = await removeBeginning(async () => {})
    expect(ended.status).toBe('SUCCESS')
    expect(outline(ended)).toEqual(all)
    expect(row!.runPosition).toBeGreaterThanOrEqual(runs - 1)
  })

  test('ends even if its rows never knew the beginning', { tags: 'long' }, async () => {
    const { ended } = await removeBeginning(forget)
    expect(ended.status).toBe('SUCCESS')
    expect(outline(ended)).toEqual(all)
    expect(nodeOf(ended, 'hold').iteration).toBe('0')
  })
})
