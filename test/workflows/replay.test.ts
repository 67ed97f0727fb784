import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Payload } from '@temporalio/common'
import proto from '@temporalio/proto'
import { Worker } from '@temporalio/worker'
import { describe, expect, test } from 'vitest'
import { FAILURE_CONVERTER, openPayload } from '../../activities/codec.ts'
import type { Keys } from '../../db/seal.ts'
import { bundleWorkflows } from '../../worker/engine.ts'
import { NODES } from '../../workflows/nodes.ts'
import { examples } from '../graphs.ts'
import { runExample, startRunning } from '../running.ts'
import { startTarget } from '../target.ts'

const { History } = proto.temporal.api.history.v1
const FOLDER = fileURLToPath(new URL('./histories/', import.meta.url))

type Tree = { [key: string]: unknown }

function isPayload(value: unknown): value is Payload {
  return typeof value === 'object' && value !== null && 'metadata' in value && 'data' in value
}

/** Opens every sealed payload of a history, wherever it stands. */
function openAll(keys: Keys, tree: unknown): void {
  if (typeof tree !== 'object' || tree === null) return
  for (const [key, value] of Object.entries(tree as Tree)) {
    if (isPayload(value)) (tree as Tree)[key] = openPayload(keys, value)
    else openAll(keys, value)
  }
}

/** `npm run histories`: runs every example and writes its history, opened, over the recorded ones. */
describe.runIf(process.env.RECORD_HISTORIES)('recording', () => {
  test('every example', { timeout: 120_000 }, async () => {
    const target = await startTarget()
    const running = await startRunning()
    mkdirSync(FOLDER, { recursive: true })
    for (const [name, example] of Object.entries(examples(target.url))) {
      const { id } = await runExample(running, example)
      const history = await running.engine.client.workflow.getHandle(id).fetchHistory()
      openAll(running.store.keys, history)
      writeFileSync(
        `${FOLDER}${name}.json`,
        `${JSON.stringify(History.toObject(History.fromObject(history), { longs: String, enums: String, bytes: String }), null, 1)}\n`,
      )
    }
    await running.stop()
    await target.stop()
  })
})

describe('recorded histories', () => {
  const files = () => readdirSync(FOLDER).filter((name) => name.endsWith('.json'))
  const read = (file: string) => JSON.parse(readFileSync(`${FOLDER}${file}`, 'utf8'))

  test('cover every node type', () => {
    const all = files().map((file) => readFileSync(`${FOLDER}${file}`, 'utf8'))
    const plans = all.map((text) => {
      const { input } = JSON.parse(text).events[0].workflowExecutionStartedEventAttributes
      return Buffer.from(input.payloads[0].data, 'base64').toString()
    })
    const missing = Object.keys(NODES).filter(
      (type) => !plans.some((plan) => plan.includes(`"type":"${type}"`)),
    )
    expect(missing).toEqual([])
  })

  test('replay with the code of today', { timeout: 60_000 }, async () => {
    const workflowBundle = await bundleWorkflows()
    const histories = files().map((file) => ({ workflowId: file, history: History.fromObject(read(file)) }))
    const dataConverter = { failureConverterPath: FAILURE_CONVERTER }
    const faults: string[] = []
    for await (const result of Worker.runReplayHistories({ workflowBundle, dataConverter }, histories)) {
      if (result.error) faults.push(`${result.workflowId}: ${result.error.message}`)
    }
    expect(faults).toEqual([])
  })
})
