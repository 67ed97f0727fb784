import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { createWriteStream, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Pool } from 'undici'
import { createDatabase } from '../../db/migrate.ts'
import { findFree } from '../../worker/local/ports.ts'
import { applyLoad, type Load, median, percentile } from './load.ts'
import type { Stand } from './stand.ts'
import { readUsage } from './usage.ts'
import { FOUR } from './variants.ts'

/** The newest version whose packages could all be had when this was written. Needs 2.6 GB in the cache. */
const VERSION = '2.41.1'
const CACHE = fileURLToPath(new URL(`../../.perdure/cache/n8n-${VERSION}`, import.meta.url))
const READY_MS = 180_000
const WARM_UP_SECONDS = 3
const IN_FLIGHT = 20
const INPUT = { amount: 120 }

/** The same graph as FOUR: Webhook -> Edit Fields -> If -> Edit Fields; the caller gets the last node's output. */
function drawGraph(): unknown {
  const assign = (name: string, value: string, type = 'number') => ({ id: name, name, value, type })
  const set = (name: string, x: number, assignments: unknown[]) => ({
    id: name,
    name,
    type: 'n8n-nodes-base.set',
    typeVersion: 3.4,
    position: [x, 0],
    parameters: { assignments: { assignments }, includeOtherFields: true, options: {} },
  })
  return {
    id: 'perdurebench0001',
    name: 'four',
    active: true,
    settings: { executionOrder: 'v1' },
    nodes: [
      {
        id: 'start',
        name: 'start',
        type: 'n8n-nodes-base.webhook',
        typeVersion: 2,
        position: [0, 0],
        webhookId: 'perdure-bench',
        parameters: { httpMethod: 'POST', path: 'four', responseMode: 'lastNode', options: {} },
      },
      set('order', 200, [
        assign('amount', '={{ $json.body.amount }}'),
        assign('tax', '={{ $json.body.amount * 0.2 }}'),
      ]),
      {
        id: 'large',
        name: 'large',
        type: 'n8n-nodes-base.if',
        typeVersion: 2.2,
        position: [400, 0],
        parameters: {
          conditions: {
            options: { caseSensitive: true, leftValue: '', typeValidation: 'strict', version: 2 },
            conditions: [
              {
                id: 'one',
                leftValue: '={{ $json.amount }}',
                rightValue: 100,
                operator: { type: 'number', operation: 'gte' },
              },
            ],
            combinator: 'and',
          },
          options: {},
        },
      },
      set('review', 600, [
        assign('decision', 'review', 'string'),
        assign('text', '=total: {{ $json.amount + $json.tax }}', 'string'),
      ]),
    ],
    connections: {
      start: { main: [[{ node: 'order', type: 'main', index: 0 }]] },
      order: { main: [[{ node: 'large', type: 'main', index: 0 }]] },
      large: { main: [[{ node: 'review', type: 'main', index: 0 }], []] },
    },
  }
}

/**
 * Compares the throughput of one graph here and in n8n, in turn: a webhook whose caller gets the last node's
 * output. n8n runs as its documentation starts it, one process with its database on the same PostgreSQL, and
 * keeps all executions, as it does by default.
 */
export async function compareWithN8n(stand: Stand, args: string[]): Promise<void> {
  const rounds = Number(args[0] ?? 5)
  const seconds = Number(args[1] ?? 4)
  const n8n = await startN8n(stand)
  const ours = await createWebhook(stand)
  try {
    const both = { perdure: ours, n8n }
    const results: Record<keyof typeof both, { alone: Load[]; loaded: Load[]; cpu: number[] }> = {
      perdure: { alone: [], loaded: [], cpu: [] },
      n8n: { alone: [], loaded: [], cpu: [] },
    }
    for (const { one } of Object.values(both)) await applyLoad(one, IN_FLIGHT, WARM_UP_SECONDS)
    for (let round = 1; round <= rounds; round++) {
      for (const [name, { one, readCpu }] of Object.entries(both)) {
        const of = results[name as keyof typeof both]
        of.alone.push(await applyLoad(one, 1, seconds / 2))
        const before = readCpu()
        const load = await applyLoad(one, IN_FLIGHT, seconds)
        of.loaded.push(load)
        of.cpu.push((readCpu() - before) / load.total)
      }
      console.error(`[bench] round ${round} of ${rounds}`)
    }
    const round = (value: number) => Math.round(value * 10) / 10
    console.table(
      Object.fromEntries(
        Object.entries(results).map(([name, { alone, loaded, cpu }]) => [
          name,
          {
            [`runs/s at ${IN_FLIGHT}`]: round(median(loaded.map(({ perSecond }) => perSecond))),
            [`p50 at ${IN_FLIGHT}`]: round(median(loaded.flatMap(({ latencies }) => latencies))),
            [`p99 at ${IN_FLIGHT}`]: round(
              percentile(
                loaded.flatMap(({ latencies }) => latencies),
                0.99,
              ),
            ),
            'p50 alone': round(median(alone.flatMap(({ latencies }) => latencies))),
            'CPU ms/run': round(median(cpu)),
          },
        ]),
      ),
    )
    const ratios = results.perdure.loaded.map(
      ({ perSecond }, i) => perSecond / results.n8n.loaded[i]!.perSecond,
    )
    console.log(
      `throughput perdure / n8n ${VERSION}: ${median(ratios).toFixed(2)} (aim: >= 3); the rounds: ${ratios.map((ratio) => ratio.toFixed(2)).join(' ')}`,
    )
  } finally {
    await ours.stop()
    await n8n.stop()
  }
}

type Measured = { one(): Promise<number>; readCpu(): number; stop(): Promise<void> }

/** CPU time in ms that a load has cost: the programs that serve it, without this client. */
const sumCpu = (usage: { cpu: number }[]) => usage.reduce((sum, { cpu }) => sum + cpu, 0)

async function createWebhook(stand: Stand): Promise<Measured> {
  const [start, order, ...nodes] = FOUR.nodes
  const answering = { ...start, config: { path: 'four', method: 'POST', responseMode: 'lastNode' } }
  const values = { amount: '{{ $input.body.amount }}', tax: '{{ $input.body.amount * 0.2 }}' }
  const graph = { nodes: [answering, { ...order, config: { values } }, ...nodes], edges: FOUR.edges }
  const { teamId } = stand
  const workflow = await stand.ask<{ id: string }>('POST', '/api/workflows', {
    teamId,
    name: 'four',
    ...graph,
  })
  await stand.ask('PUT', `/api/workflows/${workflow.id}`, { active: true })
  const pool = new Pool(stand.url, { connections: 64 })
  return {
    one: createCaller(pool, `/hooks/${workflow.id}/four`),
    readCpu: () => sumCpu(Object.values(stand.readUsage())),
    stop: () => pool.destroy(),
  }
}

/** A call of a webhook; resolves with its duration in ms. Throws if the answer is not the last node's output. */
function createCaller(pool: Pool, path: string): () => Promise<number> {
  const body = JSON.stringify(INPUT)
  const headers = { 'content-type': 'application/json' }
  return async () => {
    const since = performance.now()
    const response = await pool.request({ method: 'POST', path, headers, body })
    const text = await response.body.text()
    if (response.statusCode !== 200 || !text.includes('total: 144'))
      throw new Error(`POST ${path} responded with ${response.statusCode}: ${text}`)
    return performance.now() - since
  }
}

async function startN8n(stand: Stand): Promise<Measured> {
  install()
  const folder = mkdtempSync(join(tmpdir(), 'perdure-n8n-'))
  const database = new URL(stand.databaseUrl)
  database.pathname = '/n8n'
  await createDatabase(database.href)
  const port = await findFree()
  const env = {
    PATH: process.env.PATH,
    HOME: folder,
    N8N_USER_FOLDER: folder,
    N8N_PORT: String(port),
    N8N_LISTEN_ADDRESS: '127.0.0.1',
    N8N_RUNNERS_BROKER_PORT: String(await findFree()),
    DB_TYPE: 'postgresdb',
    DB_POSTGRESDB_HOST: database.hostname,
    DB_POSTGRESDB_PORT: database.port,
    DB_POSTGRESDB_DATABASE: 'n8n',
    DB_POSTGRESDB_USER: decodeURIComponent(database.username),
    DB_POSTGRESDB_PASSWORD: decodeURIComponent(database.password),
    // Nothing is to be sent anywhere.
    N8N_DIAGNOSTICS_ENABLED: 'false',
    N8N_VERSION_NOTIFICATIONS_ENABLED: 'false',
    N8N_TEMPLATES_ENABLED: 'false',
    N8N_PERSONALIZATION_ENABLED: 'false',
    N8N_COMMUNITY_PACKAGES_ENABLED: 'false',
    N8N_LICENSE_AUTO_RENEW_ENABLED: 'false',
  }
  const program = join(CACHE, 'node_modules/n8n/bin/n8n')
  const command = (...args: string[]) =>
    execFileSync(process.execPath, [program, ...args], { env, stdio: ['ignore', 'ignore', 'inherit'] })
  const file = join(folder, 'four.json')
  writeFileSync(file, JSON.stringify([drawGraph()]))
  command('import:workflow', `--input=${file}`)
  command('publish:workflow', '--id=perdurebench0001')
  const child = spawn(process.execPath, [program, 'start'], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  const log = createWriteStream(join(tmpdir(), 'perdure-bench-n8n.log'))
  child.stdout.pipe(log)
  child.stderr.pipe(log)
  const pool = new Pool(`http://127.0.0.1:${port}`, { connections: 64 })
  const one = createCaller(pool, '/webhook/four')
  const stop = async () => {
    await pool.destroy()
    await end(child)
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    await untilAnswers(child, one)
  } catch (error) {
    await stop()
    throw error
  }
  const { postgres } = stand.readUsage()
  if (!postgres) throw new Error('the bench has no PostgreSQL')
  return {
    one,
    readCpu: () => sumCpu([readUsage(child.pid!, { children: true }), stand.readUsage().postgres!]),
    stop,
  }
}

/** Installs n8n into the cache, without the scripts of its packages: none of them is needed on PostgreSQL. */
function install(): void {
  if (existsSync(join(CACHE, 'node_modules/n8n/bin/n8n'))) return
  console.error(`[bench] Installing n8n ${VERSION}, which takes some minutes`)
  mkdirSync(CACHE, { recursive: true })
  writeFileSync(join(CACHE, 'package.json'), '{ "private": true }')
  const args = ['install', '--ignore-scripts', '--no-audit', '--no-fund', `n8n@${VERSION}`]
  execFileSync('npm', args, { cwd: CACHE, stdio: ['ignore', 'ignore', 'inherit'] })
}

async function untilAnswers(child: ChildProcess, one: () => Promise<number>): Promise<void> {
  const deadline = Date.now() + READY_MS
  for (;;) {
    try {
      await one()
      return
    } catch (error) {
      if (child.exitCode !== null) throw new Error(`n8n ended with code ${child.exitCode}`)
      if (Date.now() > deadline) throw error
      await new Promise((resolve) => setTimeout(resolve, 500))
    }
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return
  const ended = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGTERM')
  const timer = setTimeout(() => child.kill('SIGKILL'), 10_000)
  await ended
  clearTimeout(timer)
}
