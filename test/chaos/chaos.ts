import { execFileSync } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { ENDED, type ExecutionBody } from '../support/client.ts'
import { type Installation, type Name, startInstallation } from '../support/engine/installation.ts'
import { startTarget, type Target } from '../support/servers/target.ts'
import { createKinds, type Kind } from './kinds.ts'

// Keeps starting executions while parts of the service are killed and frozen at random, then checks every one:
// `npm run chaos -- <minutes> <seed>`. The strikes of a seed are the same each time, what they hit is not.

type Started = { id: string; kind: Kind; n: number; cancelled: boolean }

const STARTS_MS = 250
const QUIET_MS = 6_000
const CANCEL_SHARE = 0.1
/** Longer than any execution takes, also one whose worker is lost more than once. */
const END_MS = 240_000

const [minutes = '5', seed = String(Date.now() % 100_000)] = process.argv.slice(2)
const random = createRandom(Number(seed))
const started: Started[] = []
const struck: Record<string, number> = {}
let striking = true

const target = await startTarget()
const host = await startInstallation({ RATE_LIMITS: 'off', LOG_LEVEL: 'warn' })
let failed = false
try {
  const kinds = await createKinds(host, target.url)
  const starting = keepStarting(kinds)
  const until = Date.now() + Number(minutes) * 60_000
  while (Date.now() < until) {
    await sleep(QUIET_MS * (0.5 + random()))
    await strike()
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
  const path = `/api/workflows/${kind.workflowId}/execute`
  const headers = { 'idempotency-key': `chaos-${n}` }
  const text = await repeat(() => host.post(path, { teamId: host.teamId, data: { n } }, headers), [202])
  const { executionId: id } = JSON.parse(text) as { executionId: string }
  const run: Started = { id, kind, n, cancelled: false }
  started.push(run)
  if (!cancels) return
  await sleep(500 + 1_500 * random())
  await repeat(() => host.post(`/api/executions/${id}/cancel`), [200, 409])
  run.cancelled = true
}

async function repeat(ask: () => Promise<Response>, wanted: number[]): Promise<string> {
  for (const giveUp = Date.now() + 120_000; ; await sleep(100)) {
    const response = await ask().catch(() => undefined)
    const text = await response?.text().catch(() => undefined)
    if (response && text !== undefined && wanted.includes(response.status)) return text
    const again = response === undefined || text === undefined || response.status === 503
    if (!again || Date.now() > giveUp) throw new Error(`${response?.status} ${text}`)
  }
}

async function strike(): Promise<void> {
  const names: Name[] = ['service', 'temporal', 'postgres']
  const name = names[Math.floor(random() * names.length)]!
  const how = random()
  if (how < 0.45) {
    note(`kill ${name}`)
    const was = host.kill(name)
    await host.recovered(name, was)
  } else if (how < 0.85) {
    const ms = Math.round(1_000 + 14_000 * random() ** 2)
    note(`freeze ${name}`, `${ms} ms`)
    host.kill(name, 'SIGSTOP')
    await sleep(ms)
    host.kill(name, 'SIGCONT')
  } else if (how < 0.95) {
    const ms = Math.round(1_000 + 9_000 * random())
    note('read-only', `${ms} ms`)
    await makeReadOnly(true)
    await sleep(ms)
    await makeReadOnly(false)
  } else {
    note('kill all')
    await host.killAll()
    await host.boot()
  }
}

/** As after a failover to a standby: sessions go on, and their writes are refused. */
async function makeReadOnly(on: boolean): Promise<void> {
  const client = new pg.Client({ connectionString: host.holder().addresses.databaseUrl })
  await client.connect()
  await client.query(`alter system set default_transaction_read_only = ${on ? 'on' : 'off'}`)
  await client.query('select pg_reload_conf()')
  await client.end()
}

function note(what: string, more = ''): void {
  struck[what] = (struck[what] ?? 0) + 1
  console.log(`${new Date().toISOString()}  ${what} ${more}  (${started.length} executions so far)`)
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
  const giveUp = Date.now() + END_MS
  const ended = new Map<string, ExecutionBody>()
  for (const { id } of started) ended.set(id, await untilEnded(host, id, giveUp))
  rebuildAll()
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
  console.table(struck)
  console.log(good && !failed ? 'no faults' : 'FAULTS, see above')
  return good && !failed
}

function rebuildAll(): void {
  const env = { ...process.env, DATA_DIR: host.dataDir, LOG_LEVEL: 'warn' }
  const args = ['--disable-warning=ExperimentalWarning', 'worker/cli.ts', 'rebuild', '--all']
  execFileSync(process.execPath, args, { env, stdio: 'inherit' })
}

async function untilEnded(from: Installation, id: string, giveUp: number): Promise<ExecutionBody> {
  for (;;) {
    const execution = await from.read(id)
    if (ENDED.includes(execution.status) || Date.now() > giveUp) return execution
    await sleep(200)
  }
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
