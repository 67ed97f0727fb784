import { setTimeout as sleep } from 'node:timers/promises'
import { ENDED, type ExecutionBody } from '../support/client.ts'
import { startInstallation } from '../support/engine/installation.ts'
import { startTarget, type Target } from '../support/servers/target.ts'
import { readEnds, rebuildAll, repeatAsk } from './ends.ts'
import { createKinds, type Kind } from './kinds.ts'
import { createStrikes } from './strikes.ts'

// Keeps starting executions while parts of the service are killed and frozen at random, then checks every one:
// `npm run chaos -- <minutes> <seed>`; `-- models` with models, agents and chats instead, `-- batches` with a batch evaluation. The strikes of a seed are the same each time, what they hit is not.

type Started = { id: string; kind: Kind; n: number; cancelled: boolean }

const STARTS_MS = 250
const QUIET_MS = 6_000
const CANCEL_SHARE = 0.1

if (process.argv[2] === 'models') await import('./models/models.ts')
if (process.argv[2] === 'batches') await import('./batches.ts')

const [minutes = '5', seed = String(Date.now() % 100_000)] = process.argv.slice(2)
const random = createRandom(Number(seed))
const started: Started[] = []
let striking = true

const target = await startTarget()
const host = await startInstallation({ RATE_LIMITS: 'off', LOG_LEVEL: 'warn' })
const strikes = createStrikes(host, {
  next: random,
  describe: () => `${started.length} executions so far`,
})
let failed = false
try {
  const kinds = await createKinds(host, target.url)
  const starting = keepStarting(kinds)
  const until = Date.now() + Number(minutes) * 60_000
  while (Date.now() < until) {
    await sleep(QUIET_MS * (0.5 + random()))
    await strikes.strike()
  }
  striking = false
  await starting
  failed = !(await checkAll())
} finally {
  striking = false
  await host.stop()
  await target.stop()
}
process.exit(failed ? 1 : 0)

/** Like a careful client: each start has a key, and is repeated while there is no answer. */
async function keepStarting(kinds: Kind[]): Promise<void> {
  const open = new Set<Promise<void>>()
  for (let n = 1; striking; n++) {
    const kind = kinds[Math.floor(random() * kinds.length)]!
    const one = startOne(kind, n, kind.mayCancel && random() < CANCEL_SHARE)
      .catch((error) => {
        fault(`start ${n} of ${kind.name}: ${error}`)
      })
      .finally(() => open.delete(one))
    open.add(one)
    await sleep(STARTS_MS)
  }
  await Promise.all(open)
}

async function startOne(kind: Kind, n: number, cancels: boolean): Promise<void> {
  // The start of one whose caller waits is written with its end, if that comes soon.
  const wait = n % 2 === 0 ? '' : `?waitMs=${n % 3 === 0 ? 50 : 2_000}`
  const path = `/api/workflows/${kind.workflowId}/execute${wait}`
  const headers = { 'idempotency-key': `chaos-${n}` }
  const text = await repeatAsk(
    () => host.post(path, { teamId: host.teamId, data: { n } }, headers),
    [200, 202],
  )
  const { executionId: id } = JSON.parse(text) as { executionId: string }
  const run: Started = { id, kind, n, cancelled: false }
  started.push(run)
  if (!cancels) return
  await sleep(500 + 1_500 * random())
  await repeatAsk(() => host.post(`/api/executions/${id}/cancel`), [200, 409])
  run.cancelled = true
}

function fault(message: string): false {
  failed = true
  console.log(`FAULT  ${message}`)
  return false
}

/** Waits for the end of every execution and compares it with what its kind promises; prints what it found. */
async function checkAll(): Promise<boolean> {
  let good = true
  let repeated = 0
  const ended = await readEnds(
    host,
    started.map(({ id }) => id),
  )
  rebuildAll(host)
  for (const run of started) {
    const execution = ended.get(run.id)!
    const rebuilt = await host.read(run.id)
    if (JSON.stringify(rebuilt) !== JSON.stringify(execution))
      good = fault(`${run.kind.name} ${run.id}: its record differs after a rebuild from its history`)
    const problems = findProblems(run, execution, target)
    for (const problem of problems) good = fault(`${run.kind.name} ${run.id}: ${problem}`)
    repeated += countRepeated(run.id, target)
  }
  const calls = target.calls.length
  console.log(
    `seed ${seed}: ${started.length} executions, ${calls} calls, ${repeated} of them made again; strikes:`,
  )
  console.table(strikes.counts)
  console.log(good && !failed ? 'no faults' : 'FAULTS, see above')
  return good && !failed
}

function findProblems({ id, kind, n, cancelled }: Started, run: ExecutionBody, { calls }: Target): string[] {
  const problems: string[] = []
  if (!ENDED.includes(run.status)) return [`still ${run.status}`]
  const wanted = cancelled && run.status === 'CANCELLED' ? 'CANCELLED' : kind.status
  if (run.status !== wanted) problems.push(`${run.status} (${run.errorMessage}) instead of ${wanted}`)
  if (run.status === 'SUCCESS') {
    const [got, want] = [run.outputData, kind.output(n)].map((value) => JSON.stringify(value))
    if (got !== want) problems.push(`output ${got} instead of ${want}`)
    if (run.nodeExecutionsTotal !== kind.records)
      problems.push(`${run.nodeExecutionsTotal} records instead of ${kind.records}`)
  }
  for (const node of run.nodeExecutions) {
    if (!ENDED.includes(node.status)) problems.push(`its node ${node.nodeId} is ${node.status}`)
    const key = `${id}:${node.nodeId}${node.iteration === null ? '' : `#${node.iteration}`}`
    const made = calls.filter((call) => call.key === key).length
    if (made > node.retryCount + 1) problems.push(`${key}: ${made} calls, ${node.retryCount} retries`)
  }
  return problems
}

function countRepeated(id: string, { calls }: Target): number {
  const keys = calls.filter(({ key }) => key?.startsWith(`${id}:`)).map(({ key }) => key)
  return keys.length - new Set(keys).size
}

/** mulberry32: small, and the same everywhere. */
function createRandom(from: number): () => number {
  let state = from
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
