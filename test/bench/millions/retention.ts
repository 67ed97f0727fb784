import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { openDatabase } from '../../../db/connection.ts'
import { pruneExecutions } from '../../../db/executions/retention.ts'
import { percentile } from '../load.ts'
import type { Stand } from '../stand.ts'

const CALM_MS = 30_000
const KEPT_DAYS = 1

/**
 * Lets the huge team's retention remove nearly all of its executions, as the housekeeping does, and says how long the requests
 * of a small team take meanwhile, and before. `limitMs` ends it early.
 */
export async function measureRetention(
  stand: Stand,
  small: Stand,
  limitMs = Number.POSITIVE_INFINITY,
): Promise<void> {
  const client = new pg.Client({ connectionString: stand.databaseUrl })
  await client.connect()
  const { db, close } = openDatabase(stand.databaseUrl, { max: 2, name: 'bench' })
  try {
    const { content } = await small.ask<{ content: { id: string }[] }>(
      'GET',
      `/api/executions/team/${small.teamId}`,
    )
    const paths = [
      `/api/executions/team/${small.teamId}`,
      `/api/executions/${content[0]!.id}`,
      `/api/monitoring/teams/${small.teamId}/token-usage`,
    ]
    const calm = await askDuring(small, paths, pause(CALM_MS))
    await client.query(
      `update workflows set settings = jsonb_set(settings::jsonb, '{retention}', $2::jsonb)::json where team_id = $1`,
      [stand.teamId, JSON.stringify({ days: KEPT_DAYS, count: null })],
    )
    const stop = AbortSignal.timeout(Math.min(limitMs, 2 ** 31 - 1))
    const began = performance.now()
    let removed = 0
    const pruned = pruneExecutions({ db, keys: stand.keys }, stop).then((n) => {
      removed = n
    })
    const during = await askDuring(small, paths, pruned)
    const seconds = (performance.now() - began) / 1_000
    console.log(
      `Retention removed ${removed} executions in ${seconds.toFixed(0)} s; requests of another team, ms:`,
    )
    console.table({
      calm: describe(calm),
      during: describe(during),
      after: describe(await askDuring(small, paths, pause(CALM_MS))),
    })
  } finally {
    await close()
    await client.end()
  }
}

async function askDuring(small: Stand, paths: string[], work: Promise<unknown>): Promise<number[]> {
  const times: number[] = []
  let over = false
  const end = () => {
    over = true
  }
  const ended = work.finally(end)
  for (let n = 0; !over; n++) {
    const began = performance.now()
    await small.ask('GET', paths[n % paths.length]!)
    times.push(performance.now() - began)
  }
  await ended
  return times
}

function describe(times: number[]) {
  const at = (part: number) => Number(percentile(times, part).toFixed(1))
  return { requests: times.length, p50: at(0.5), p95: at(0.95), p99: at(0.99), longest: at(1) }
}
