import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { openDatabase } from '../../db/connection.ts'
import { countDays } from '../../db/executions/days.ts'
import { percentile } from './load.ts'
import type { Stand } from './stand.ts'

const ROWS = 1_000_000
const DAYS = 90
const PAGES = 100
const AIM_MS = 50
/** The listed team has four fifths of the rows, and half of those are of one of its twenty workflows. */
const TEAMS = 5
const WORKFLOWS = 20

type Page = { content: { id: string }[]; totalElements: number }

/**
 * Seeds a million executions, and lists those of a team
 * over HTTP: the first 100 pages for each filter by itself.
 */
export async function measureList(stand: Stand): Promise<void> {
  const client = new pg.Client({ connectionString: stand.databaseUrl })
  await client.connect()
  try {
    const workflowId = await seedRows(client, stand.databaseUrl, stand.teamId)
    const ago = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString()
    const filters: Record<string, Record<string, string>> = {
      none: {},
      'status=SUCCESS (90%)': { status: 'SUCCESS' },
      'status=FAILED (6%)': { status: 'FAILED' },
      'status=CANCELLED (3%)': { status: 'CANCELLED' },
      'status=RUNNING (0.5%)': { status: 'RUNNING' },
      'status=PENDING (0.5%)': { status: 'PENDING' },
      'workflowId (half)': { workflowId },
      'from: a day ago': { from: ago(1) },
      'from: half of all': { from: ago(DAYS / 2) },
      'from: all': { from: ago(2 * DAYS) },
      'to: half of all': { to: ago(DAYS / 2) },
      'to: all': { to: ago(0) },
      'from, to: a week': { from: ago(DAYS / 2), to: ago(DAYS / 2 - 7) },
      'from, to: two thirds': { from: ago((5 * DAYS) / 6), to: ago(DAYS / 6) },
    }
    const rows: Record<string, { rows: number; 'first page': number } & Record<string, unknown>> = {}
    for (const [name, filter] of Object.entries(filters)) {
      const small = await measurePages(stand, filter, 20)
      const large = await measurePages(stand, filter, 100)
      rows[name] = {
        rows: small.total,
        'first page': round(small.times[0]!),
        'p50, size 20': round(percentile(small.times, 0.5)),
        'p95, size 20': round(percentile(small.times, 0.95)),
        'p50, size 100': round(percentile(large.times, 0.5)),
        'p95, size 100': round(percentile(large.times, 0.95)),
        aim: `< ${AIM_MS}`,
        met: Math.max(percentile(small.times, 0.95), percentile(large.times, 0.95)) < AIM_MS ? 'yes' : 'no',
      }
    }
    console.log(
      `GET /api/executions/team/:teamId with ${ROWS} executions, ${TEAMS} teams, ${DAYS} days; pages 0 to ` +
        `${PAGES - 1}; times in ms. The days of a span that are over come from counters.`,
    )
    console.table(rows)
    for (const [name, filter] of Object.entries(filters)) {
      if (rows[name]!['first page'] < AIM_MS || !(filter.from || filter.to)) continue
      console.log(
        `How the total of "${name}" is counted:\n${await explainCount(client, stand.teamId, filter)}`,
      )
    }
  } finally {
    await client.end()
  }
}

/** Reads the pages one after another, as a person would, and checks that together they have all rows once. */
async function measurePages(stand: Stand, filter: Record<string, string>, size: number) {
  const times: number[] = []
  const seen = new Set<string>()
  let total = 0
  for (let page = 0; page < PAGES; page++) {
    const query = new URLSearchParams({ ...filter, page: String(page), size: String(size) })
    const since = performance.now()
    const response = await stand.ask<Page>('GET', `/api/executions/team/${stand.teamId}?${query}`)
    times.push(performance.now() - since)
    total = response.totalElements
    for (const { id } of response.content) seen.add(id)
  }
  if (seen.size !== Math.min(total, PAGES * size))
    throw new Error(`${seen.size} of ${total} rows were listed`)
  return { times, total }
}

async function explainCount(client: pg.Client, teamId: string, { from, to }: Record<string, string>) {
  const { rows } = await client.query<{ 'QUERY PLAN': string }>(
    `explain (analyze, costs off) select count(*) from executions
     where team_id = $1 and created_at >= $2 and created_at < $3`,
    [teamId, from ?? '-infinity', to ?? 'infinity'],
  )
  return rows.map((row) => `  ${row['QUERY PLAN']}`).join('\n')
}

/**
 * Inserts teams, workflows and executions with SQL; the triggers keep the counters. Returns the id of the
 * workflow with most executions.
 */
async function seedRows(client: pg.Client, databaseUrl: string, teamId: string): Promise<string> {
  const began = performance.now()
  const teams = [teamId, ...Array.from({ length: TEAMS - 1 }, () => randomUUID())]
  const workflows = teams.flatMap((team) =>
    Array.from({ length: WORKFLOWS }, (_, i) => ({ id: randomUUID(), team, name: `workflow ${i}` })),
  )
  await client.query(`insert into teams (id, name) select id, 'Team ' || id from unnest($1::uuid[]) id`, [
    teams.slice(1),
  ])
  await client.query(
    `insert into workflows (id, team_id, name, version, settings)
     select id, team, name, 1, '{}' from json_to_recordset($1) as w(id uuid, team uuid, name text)`,
    [JSON.stringify(workflows)],
  )
  await client.query(
    `insert into workflow_versions (workflow_id, version, nodes, edges, node_count)
     select id, 1, '[]', '[]', 4 from unnest($1::uuid[]) id`,
    [workflows.map(({ id }) => id)],
  )
  const columns = (key: 'id' | 'team') => workflows.map((workflow) => workflow[key])
  for (let from = 0; from < ROWS; from += ROWS / 10) {
    await client.query(
      `insert into executions (id, team_id, workflow_id, workflow_name, workflow_version, node_count, status, trigger,
         trigger_node_id, input_data, input_bytes, started_by_kind, created_at, started_at, completed_at, checked_at)
       select gen_random_uuid(), ($3::uuid[])[w], ($4::uuid[])[w], 'workflow', 1, 4, s.status, 'API', 'start', '{"a":1}', 7,
         'USER', s.at, s.at, case when s.status in ('PENDING', 'RUNNING') then null else s.at + interval '1 second' end,
         now() + interval '1 day'
       from generate_series($1::int, $2::int) i,
       lateral (select hashint4(i) & 1023 as h, hashint4(i + 7919) & 65535 as g) r,
       lateral (select
         -- Four fifths in the first team, of these half in its first workflow.
         case when h < 819 then case when g % 2 = 0 then 1 else 1 + (g / 2) % ${WORKFLOWS} end
           else ${WORKFLOWS + 1} + g % ${WORKFLOWS * (TEAMS - 1)} end as w,
         case when h % 200 = 0 then 'RUNNING' when h % 200 = 1 then 'PENDING' when h % 100 < 10 and h % 10 < 6 and h % 200 > 1 and (h / 10) % 10 = 0 then 'FAILED'
           when h % 33 = 7 then 'CANCELLED' else 'SUCCESS' end as status,
         now() - make_interval(secs => (i::float8 / ${ROWS}) * ${DAYS * 86_400}) as at) s`,
      [from + 1, from + ROWS / 10, columns('team'), columns('id')],
    )
    console.error(`[bench] ${from + ROWS / 10} rows`)
  }
  // In operation the housekeeping does this once an hour.
  const { db, close } = openDatabase(databaseUrl, { max: 1, name: 'perdure bench' })
  const days = await countDays({ db, keys: { current: '', byId: new Map() } })
  await close()
  console.error(`[bench] counted ${days} days`)
  // In operation autovacuum does this within a minute or two.
  await client.query('vacuum analyze executions')
  await client.query('vacuum analyze execution_counts')
  await client.query('vacuum analyze execution_days')
  const { rows } = await client.query<{ n: string; counted: string; top: string }>(
    `select count(*) as n, (select sum(n) from execution_counts where team_id = $1) as counted,
       mode() within group (order by workflow_id) as top from executions where team_id = $1`,
    [teamId],
  )
  const [row] = rows
  if (row!.n !== row!.counted)
    throw new Error(`the counters say ${row!.counted}, but there are ${row!.n} rows`)
  console.error(`[bench] seeded in ${Math.round((performance.now() - began) / 1_000)} s`)
  return row!.top
}

const round = (value: number) => Math.round(value * 10) / 10
