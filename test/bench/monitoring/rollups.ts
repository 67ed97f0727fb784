import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { openDatabase } from '../../../db/connection.ts'
import { foldModelCalls } from '../../../db/monitoring/usage/hours.ts'
import { percentile } from '../load.ts'
import type { Stand } from '../stand.ts'

const CALLS = 1_000_000
const PIECE = 250_000
const DAYS = 30
const WORKFLOWS = 50
const NODES = 4
const MODELS = 5
const CALLS_OF_ONE = 3
const READS = 100
const AIM_MS = 50

/**
 * Seeds as many calls to models of a team as the argument says, folds them, and reads over HTTP what they took: aims at
 * 95 of 100 reads under 50 ms, at 10,000,000 calls too.
 */
export async function measureRollups(stand: Stand, [size = String(CALLS)]: string[]): Promise<void> {
  const calls = Number(size)
  if (!Number.isSafeInteger(calls) || calls < 1) throw new Error('The size is a number of calls')
  const workflowId = await seedCalls(stand, calls)
  const { db, close } = openDatabase(stand.databaseUrl, { max: 2, name: 'bench' })
  const began = performance.now()
  const hours = await foldModelCalls({ db, keys: stand.keys }).finally(close)
  console.log(`${calls} calls, folded ${hours} hours in ${Math.round((performance.now() - began) / 1_000)} s`)
  await onDatabase(stand, (client) => client.query('vacuum analyze'))
  const ago = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString()
  const spans: Record<string, Record<string, string>> = {
    '30 days': {},
    'a week': { from: ago(8.3), to: ago(1.3) },
    '30 days of a workflow': { workflowId },
  }
  const rows: Record<string, Record<string, unknown>> = {}
  for (const path of ['', '/daily', '/by-model', '/by-workflow', '/by-node'])
    for (const [name, query] of Object.entries(spans)) {
      const times = await measureReads(
        stand,
        `/api/monitoring/teams/${stand.teamId}/token-usage${path}?${new URLSearchParams(query)}`,
      )
      const p95 = percentile(times, 0.95)
      rows[`token-usage${path}, ${name}`] = {
        p50: Math.round(percentile(times, 0.5)),
        p95: Math.round(p95),
        aim: `< ${AIM_MS}`,
        met: p95 < AIM_MS ? 'yes' : 'no',
      }
    }
  console.log(`${READS} reads each over HTTP, one after the other, in ms`)
  console.table(rows)
}

async function measureReads(stand: Stand, path: string): Promise<number[]> {
  const times: number[] = []
  for (let n = 0; n < READS; n++) {
    const began = performance.now()
    await stand.ask('GET', path)
    times.push(performance.now() - began)
  }
  return times
}

/** Adds the calls, those of each execution within a few minutes. Returns the id of one of their workflows. */
async function seedCalls(stand: Stand, calls: number): Promise<string> {
  const workflowIds = Array.from({ length: WORKFLOWS }, () => randomUUID())
  await onDatabase(stand, async (client) => {
    // Triggers would look for hours that are folded already.
    await client.query('set session_replication_role = replica')
    for (let first = 0; first < calls; first += PIECE)
      await client.query(
        `insert into model_calls (execution_id, activity_id, attempt, caller, call, team_id, workflow_id, node_id, iteration,
          provider, model, status, input_tokens, output_tokens, cached_tokens, reasoning_tokens, cost, latency_ms, created_at)
        select md5('run ' || n / $6)::uuid, 'node' || n % $5, 1, md5('caller ' || n)::uuid, 1, $1,
          ($2::uuid[])[1 + n / $6 % $3], 'node' || n % $5, '', 'OPENAI', 'model-' || n / 7 % $4, 'SUCCESS',
          100 + n % 1000, n % 300, 0, 0, 0.0000125 * (1 + n % 9), 500,
          now() - (n / $6 * $6)::float8 / $7 * interval '${DAYS} days' + n % $6 * interval '1 minute'
        from generate_series($8::int, $9::int - 1) n`,
        [
          ...[stand.teamId, workflowIds, WORKFLOWS, MODELS, NODES, CALLS_OF_ONE, calls],
          ...[first, Math.min(first + PIECE, calls)],
        ],
      )
    await client.query('vacuum analyze model_calls')
  })
  return workflowIds[0]!
}

async function onDatabase(stand: Stand, work: (client: pg.Client) => Promise<unknown>): Promise<void> {
  const client = new pg.Client({ connectionString: stand.databaseUrl })
  await client.connect()
  try {
    await work(client)
  } finally {
    await client.end()
  }
}
