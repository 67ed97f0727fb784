import { describe, expect, test } from 'vitest'
import { rebuildExecution } from '../../../activities/temporal/rebuild.ts'
import { examples } from '../../support/engine/graphs.ts'
import { keep } from '../../support/keep.ts'
import { runExample, shareRunning } from '../../support/running.ts'
import { startTarget } from '../../support/servers/target.ts'

const target = await keep(startTarget())
const running = await keep(shareRunning())

const names = Object.keys(examples(''))

describe.each(names)('the example "%s"', (name) => {
  test('ends as expected, and its rows rebuilt from history equal the rows written live', async () => {
    const example = examples(target.url)[name]!
    const live = await runExample(running, example)
    expect(live.status).toBe(example.status)
    const records = Object.fromEntries(live.nodeExecutions.map((node) => [node.nodeId, node.status]))
    expect(records).toEqual(example.records)
    expect(live.outputData !== null).toBe(example.status === 'SUCCESS')
    for (const node of live.nodeExecutions) {
      expect(node.durationMs).toBe(Date.parse(node.completedAt!) - Date.parse(node.startedAt))
      expect(Date.parse(node.startedAt)).toBeGreaterThanOrEqual(Date.parse(live.startedAt!) - 1)
      expect(Date.parse(node.completedAt!)).toBeLessThanOrEqual(Date.parse(live.completedAt!) + 1)
    }

    const { engine, store } = running
    const deps = { store, client: engine.client, sealer: engine.sealer }
    expect(await rebuildExecution(deps, live.id)).toBe(live.status)
    expect(await running.read(live.id)).toEqual(live)

    await store.db.deleteFrom('nodeExecutions').where('executionId', '=', live.id).execute()
    expect(await rebuildExecution(deps, live.id)).toBe(live.status)
    expect(await running.read(live.id)).toEqual(live)
  })
})
