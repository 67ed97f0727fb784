import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Payload } from '@temporalio/common'
import proto from '@temporalio/proto'
import { Worker } from '@temporalio/worker'
import { describe, expect, inject, test } from 'vitest'
import { FAILURE_CONVERTER, openPayload } from '../../activities/codec.ts'
import { nameSchedule } from '../../activities/schedules.ts'
import type { Keys } from '../../db/seal.ts'
import { NODES } from '../../workflows/nodes.ts'
import { type Example, examples } from '../graphs.ts'
import { type Running, runExample, startRunning } from '../running.ts'
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
  test('every example, and the firing of a schedule', { timeout: 120_000 }, async () => {
    const target = await startTarget()
    const running = await startRunning()
    mkdirSync(FOLDER, { recursive: true })
    const write = async (name: string, workflowId: string) => {
      const history = await running.engine.client.workflow.getHandle(workflowId).fetchHistory()
      openAll(running.store.keys, history)
      const plain = History.toObject(History.fromObject(history), {
        longs: String,
        enums: String,
        bytes: String,
      })
      writeFileSync(`${FOLDER}${name}.json`, `${JSON.stringify(plain, null, 1)}\n`)
    }
    const all = examples(target.url)
    for (const [name, example] of Object.entries(all))
      await write(name, (await runExample(running, example)).id)
    await write('fire', await runFiring(running, all.scheduled!))
    await running.stop()
    await target.stop()
  })
})

/** Makes a schedule fire once, and answers the id of the workflow that it started. */
async function runFiring(running: Running, example: Example): Promise<string> {
  const id = await running.create(example)
  await running.ask('PUT', `/api/workflows/${id}`, { active: true })
  const { client } = running.engine
  const schedule = client.schedule.getHandle(nameSchedule(running.taskQueue, id, 'start'))
  await schedule.trigger()
  const [action] = await waitFor(async () => (await schedule.describe()).info.recentActions)
  const { workflowId } = action!.action.workflow
  await client.workflow.getHandle(workflowId).result()
  await schedule.delete()
  return workflowId
}

async function waitFor<T>(look: () => Promise<T[]>): Promise<T[]> {
  for (;;) {
    const found = await look()
    if (found.length > 0) return found
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

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

  test('replay with the code of today', async () => {
    const workflowBundle = { codePath: inject('workflowBundle') }
    const histories = files().map((file) => ({ workflowId: file, history: History.fromObject(read(file)) }))
    const dataConverter = { failureConverterPath: FAILURE_CONVERTER }
    const faults: string[] = []
    for await (const result of Worker.runReplayHistories({ workflowBundle, dataConverter }, histories)) {
      if (result.error) faults.push(`${result.workflowId}: ${result.error.message}`)
    }
    expect(faults).toEqual([])
  })
})
