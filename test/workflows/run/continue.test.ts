import { describe, expect, test } from 'vitest'
import { readHistories } from '../../../activities/temporal/histories.ts'
import type { RunHistory } from '../../../db/executions/projection/history.ts'
import { examples } from '../../support/engine/graphs.ts'
import { keep } from '../../support/keep.ts'
import { runExample, startRunning } from '../../support/running.ts'
import { startTarget } from '../../support/servers/target.ts'

const target = await keep(startTarget())
const forced = await keep(startRunning({ continueAfterEvents: 8 }))
const plain = await keep(startRunning())

/** A value without what differs from one execution to the next: times, and how long checks took. */
const strip = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value)
      .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '')
      .replaceAll(/"durationMs":\d+/g, '"durationMs":0'),
  )

const NAMES = Object.entries(Object.keys(examples('')))

describe.concurrent.each(NAMES)('example %s, "%s", continued as new every few events,', (at, name) => {
  test('ends as it does without continuing as new', {
    tags: Number(at) % 6 === 0 ? [] : 'long',
  }, async () => {
    const example = examples(target.url)[name]!
    const [split, whole] = [await runExample(forced, example), await runExample(plain, example)]
    expect(split.status).toBe(example.status)
    const outline = (run: typeof split) =>
      run.nodeExecutions
        .map(({ nodeId, status, retryCount }) => ({ nodeId, status, retryCount }))
        .sort((a, b) => (a.nodeId < b.nodeId ? -1 : 1))
    expect(outline(split)).toEqual(outline(whole))
    if (!JSON.stringify(split.outputData).includes('headers'))
      expect(strip(split.outputData)).toEqual(strip(whole.outputData))
    expect(split.errorMessage).toBe(whole.errorMessage)
  })
})

test('an execution over several Temporal runs keeps its first start and all of its records', {
  tags: 'long',
}, async () => {
  const nodes = Array.from({ length: 6 }, (_, at) => ({
    id: `call${at}`,
    type: 'HTTP_REQUEST',
    config: { url: `${target.url}/ok` },
  }))
  const run = await forced.run({
    nodes: [{ id: 'start', type: 'MANUAL_TRIGGER', config: {} }, ...nodes],
    edges: nodes.map((node, at) => ({ source: at === 0 ? 'start' : `call${at - 1}`, target: node.id })),
  })
  expect(run.status).toBe('SUCCESS')
  const chain: RunHistory[] = []
  for await (const history of readHistories(forced.engine.client, forced.engine.sealer, run.id, {
    untilClosed: false,
  })) {
    chain.push(history)
  }
  expect(chain.length).toBeGreaterThan(2)
  expect(run.nodeExecutions.map((node) => node.nodeId)).toEqual(['start', ...nodes.map((node) => node.id)])
  expect(Date.parse(run.startedAt!)).toBe(chain[0]!.events[0]!.time)
})
