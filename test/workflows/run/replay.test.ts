import { createHash } from 'node:crypto'
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Payload } from '@temporalio/common'
import proto from '@temporalio/proto'
import { Worker } from '@temporalio/worker'
import { describe, expect, inject, test } from 'vitest'
import { nameSchedule } from '../../../activities/schedules/schedules.ts'
import {
  FAILURE_CONVERTER,
  isSealed,
  openPayload,
  type SealPlace,
} from '../../../activities/temporal/codec.ts'
import type { Sealer } from '../../../activities/temporal/sealer.ts'
import { NODES } from '../../../workflows/nodes/nodes.ts'
import { type Example, edges, examples } from '../../support/engine/graphs.ts'
import { type Running, runExample, startRunning } from '../../support/running.ts'
import { startTarget } from '../../support/servers/target.ts'
import { until } from '../../support/until.ts'

const { History } = proto.temporal.api.history.v1
const FOLDER = fileURLToPath(new URL('./histories/', import.meta.url))

/** The SHA-256 of every recorded history: one that is gone or was changed proves nothing about its release. */
const SUMS = `${FOLDER}SHA256SUMS`
const hash = (text: string) => createHash('sha256').update(text).digest('hex')

type Tree = { [key: string]: unknown }

function isPayload(value: unknown): value is Payload {
  return typeof value === 'object' && value !== null && 'metadata' in value && 'data' in value
}

/** Opens every sealed payload of a history, at any depth. Temporal's SDK adds some that are not. */
async function openAll(sealer: Sealer, place: SealPlace, tree: unknown): Promise<void> {
  if (typeof tree !== 'object' || tree === null) return
  for (const [key, value] of Object.entries(tree as Tree)) {
    if (!isPayload(value)) await openAll(sealer, place, value)
    else if (isSealed(value)) (tree as Tree)[key] = await openPayload(sealer, place, value)
  }
}

type Recorded = { file: string; text: string }

const readRecorded = (): Recorded[] =>
  readdirSync(FOLDER)
    .filter((file) => file.endsWith('.json'))
    .map((file) => ({ file, text: readFileSync(`${FOLDER}${file}`, 'utf8') }))

/** The node types that a recorded plan has. */
function readTypes({ text }: Recorded): string[] {
  const { input } = JSON.parse(text).events[0].workflowExecutionStartedEventAttributes
  const plan = Buffer.from(input.payloads[0].data, 'base64').toString()
  return [...plan.matchAll(/"type":"([A-Z_]+)"/g)].map(([, type]) => type!)
}

/** Replays recorded histories with today's code, and returns what went wrong. */
async function replay(recorded: Recorded[]): Promise<string[]> {
  const workflowBundle = { codePath: inject('workflowBundle') }
  const dataConverter = { failureConverterPath: FAILURE_CONVERTER }
  const histories = recorded.map(({ file, text }) => ({
    workflowId: file,
    history: History.fromObject(JSON.parse(text)),
  }))
  const faults: string[] = []
  for await (const result of Worker.runReplayHistories({ workflowBundle, dataConverter }, histories)) {
    if (result.error) faults.push(`${result.workflowId}: ${result.error.message}`)
  }
  return faults
}

/** Writes a history beside those that are recorded under the same name, and never over one. Returns its file. */
function keepHistory(folder: string, name: string, text: string): string {
  let file = `${name}.json`
  for (let count = 2; existsSync(`${folder}${file}`); count++) file = `${name}.${count}.json`
  writeFileSync(`${folder}${file}`, text, { flag: 'wx' })
  appendFileSync(`${folder}SHA256SUMS`, `${hash(text)}  ${file}\n`)
  return file
}

/**
 * `npm run histories`: executes the examples that are not recorded, or have a node type that no recorded history has,
 * and adds their histories, unsealed. What is recorded stays: code must go on replaying what older code has begun.
 * `EXAMPLES=chain,loops npm run histories` records these once more, for example after a change with `patched`, and
 * `EXAMPLES=all` all of them: a release does so before it goes out, so that all later ones are held against it.
 */
describe.runIf(process.env.RECORD_HISTORIES)('recording', () => {
  test('examples with something new, and the firing of a schedule', async () => {
    mkdirSync(FOLDER, { recursive: true })
    const recorded = readRecorded()
    expect(await replay(recorded), 'mend the code first, with `patched`').toEqual([])
    const covered = new Set(recorded.flatMap(readTypes))
    const names = recorded.map(({ file }) => file.split('.')[0]!)
    const list = process.env.RECORD_HISTORIES!.split(',')
    const isAsked = (name: string) => list.includes(name) || list.includes('all')
    const target = await startTarget()
    const running = await startRunning()
    const write = async (name: string, workflowId: string, host = running) => {
      const { client, sealer } = host.engine
      const history = await client.workflow.getHandle(workflowId).fetchHistory()
      await openAll(sealer, { namespace: client.options.namespace, workflowId }, history)
      const plain = History.toObject(History.fromObject(history), {
        longs: String,
        enums: String,
        bytes: String,
      })
      console.log(`recorded ${keepHistory(FOLDER, name, `${JSON.stringify(plain, null, 1)}\n`)}`)
    }
    const all = examples(target.url)
    for (const [name, example] of Object.entries(all)) {
      const types = example.nodes.map(({ type }) => type)
      const isKnown = names.includes(name) && types.every((type) => covered.has(type))
      if (isKnown && !isAsked(name)) continue
      await write(name, (await runExample(running, example)).id)
      for (const type of types) covered.add(type)
    }
    if (!names.includes('fire') || isAsked('fire'))
      await write('fire', await runFiring(running, all.scheduled!))
    if (!names.includes('turnedAway') || isAsked('turnedAway')) {
      const busy = await startRunning({ expressions: { processes: 2, timeoutMs: 500 } })
      await write('turnedAway', await runTurnedAway(busy), busy)
      await busy.stop()
    }
    await running.stop()
    await target.stop()
  })
})

describe('recorded histories', () => {
  test("replay with today's code", async () => {
    expect(await replay(readRecorded())).toEqual([])
  })

  test('are all there, as they were recorded', () => {
    const sums = readRecorded().map(({ file, text }) => `${hash(text)}  ${file}`)
    const kept = readFileSync(SUMS, 'utf8').trim().split('\n')
    expect(kept.length).toBeGreaterThan(20)
    expect(sums.sort(), 'recorded histories are kept as they are, for ever').toEqual(kept.sort())
  })

  test('are never written over, whatever the folder holds', () => {
    const folder = `${mkdtempSync(join(tmpdir(), 'perdure-histories-'))}/`
    try {
      // A release's was taken away by hand: its number is free, the next one is not.
      writeFileSync(`${folder}chain.json`, 'first')
      writeFileSync(`${folder}chain.3.json`, 'third')
      const files = ['a', 'b'].map((text) => keepHistory(folder, 'chain', text))
      expect(files).toEqual(['chain.2.json', 'chain.4.json'])
      expect(readFileSync(`${folder}chain.json`, 'utf8')).toBe('first')
      expect(readFileSync(`${folder}chain.3.json`, 'utf8')).toBe('third')
      expect(readFileSync(`${folder}SHA256SUMS`, 'utf8')).toBe(
        `${hash('a')}  chain.2.json\n${hash('b')}  chain.4.json\n`,
      )
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  test('cover every node type', () => {
    const covered = new Set(readRecorded().flatMap(readTypes))
    const missing = Object.keys(NODES).filter((type) => !covered.has(type))
    expect(missing, 'add these to test/support/engine/graphs.ts, then `npm run histories`').toEqual([])
  })
})

/** Executes three runs side by side that need the only process of their team; the last one was turned away. */
async function runTurnedAway(busy: Running): Promise<string> {
  const heavy = { x: '{{ ($f := function() { $f() }; $f()) }}' }
  const id = await busy.create({
    nodes: [
      { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
      { id: 'light', type: 'SET', config: { values: { n: 1 } } },
      { id: 'heavy', type: 'SET', config: { values: heavy }, onError: 'CONTINUE' },
      { id: 'last', type: 'SET', config: { values: { n: 2 } } },
    ],
    edges: edges('start -> light', 'light -> heavy', 'heavy -> last'),
  })
  const runs = await Promise.all([1, 2, 3].map(() => busy.execute(id)))
  const ended = await Promise.all(runs.map((run) => busy.ended(run, 60_000)))
  return ended.sort((a, b) => Date.parse(a.completedAt!) - Date.parse(b.completedAt!)).at(-1)!.id
}

/** Makes a schedule fire once and returns the id of the Temporal workflow that it started. */
async function runFiring(running: Running, example: Example): Promise<string> {
  const id = await running.create(example)
  await running.ask('PUT', `/api/workflows/${id}`, { active: true })
  const { client } = running.engine
  const schedule = client.schedule.getHandle(nameSchedule(running.taskQueue, id, 'start'))
  await schedule.trigger()
  const [action] = await until(async () => (await schedule.describe()).info.recentActions, {
    holds: (actions) => actions.length > 0,
  })
  const { workflowId } = action!.action.workflow
  await client.workflow.getHandle(workflowId).result()
  await schedule.delete()
  return workflowId
}
