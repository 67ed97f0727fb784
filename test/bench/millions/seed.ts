import pg from 'pg'
import { openDatabase } from '../../../db/connection.ts'
import { countDays } from '../../../db/executions/days.ts'
import { foldExecutionHours } from '../../../db/monitoring/foldhours.ts'
import { foldModelCalls } from '../../../db/monitoring/usage/hours.ts'
import { fillChain } from '../../support/audit/fill.ts'
import type { Stand } from '../stand.ts'
import { seedMore } from './more.ts'

/** At scale 1: executions. Each has ten node records and ten calls to models. */
const EXECUTIONS = 1_000_000
const EACH = 10
const ENTRIES = 1_000_000
const DAYS = 30
const PIECE = 20_000

/** Of each 1,024 executions the huge team has this many; the others share the rest. */
const HUGE = 840
const OTHERS = 19
/** The huge team's workflows, and those of each of the others. */
const WORKFLOWS = 105
const FEW = 5

/** `small` is the stand as a small team's ADMIN sees it. */
export type Seeded = { executions: number; small: Stand }

/**
 * Seeds a team with most of a million executions (times `scale`), and 19 small ones with the rest, over 30 days; their node
 * records, calls to models and audit entries; then folds them as the housekeeping does. The ids are UUIDs of version 7, in
 * the order of time, and the same numbers give the same rows.
 */
export async function seedMillions(stand: Stand, scale: number): Promise<Seeded> {
  const executions = Math.round(EXECUTIONS * scale)
  const client = new pg.Client({ connectionString: stand.databaseUrl })
  await client.connect()
  // Appends are made by the service, and some of the rows' triggers look for sums that are folded already.
  const { db, close } = openDatabase(stand.databaseUrl, { max: 3, name: 'bench' })
  const store = { db, keys: stand.keys }
  try {
    const others: Stand[] = []
    for (let n = 1; n <= OTHERS; n++) others.push(await stand.addTeam(`Team ${n}`))
    const [small] = others
    await seedWorkflows(client, [stand, ...others])
    await rewindChain(client, stand.teamId)
    const chain = fillChain(
      store,
      stand.teamId,
      Math.round(ENTRIES * scale),
      describeEntries(ENTRIES * scale),
    )
    await client.query("set synchronous_commit = off; set work_mem = '64MB'")
    const end = new Date(Date.now() - 60_000).toISOString()
    for (let from = 1; from <= executions; from += PIECE) {
      await seedPiece(client, { from, to: Math.min(from + PIECE - 1, executions), of: executions, end })
      if (from % 100_000 === 1) say(`${from - 1} executions`)
    }
    await seedCounts(client)
    await seedMore(client)
    await chain
    say('vacuums')
    await client.query('vacuum (analyze, parallel 0)')
    say('folds')
    await countDays(store)
    await foldExecutionHours(store)
    await foldModelCalls(store)
    await client.query('vacuum analyze')
    return { executions, small: small! }
  } finally {
    await close()
    await client.end()
  }
}

/** A chain that begins now could have no entries of the days before: it gets back to where it has none. */
async function rewindChain(client: pg.Client, teamId: string): Promise<void> {
  await client.query('set session_replication_role = replica')
  await client.query(
    `with first as (select prev from audit_entries where team_id = $1 and seq = 1),
     head as (update audit_heads set seq = 0, hash = (select prev from first) where team_id = $1),
     signed as (delete from audit_checkpoints where team_id = $1)
     delete from audit_entries where team_id = $1`,
    [teamId],
  )
}

const say = (line: string) => console.error(`[bench] ${line}`)

const ACTIONS = [
  'WORKFLOW_UPDATED',
  'WORKFLOW_UPDATED',
  'WORKFLOW_UPDATED',
  'EXECUTION_STARTED',
  'CREDENTIAL_UPDATED',
]
const PEOPLE = Array.from({ length: 20 }, () => crypto.randomUUID())

/** Entries of thirty days by twenty people: one of a thousand was denied, and one of ten thousand is a rare act. */
function describeEntries(entries: number) {
  const begin = Date.now() - DAYS * 86_400_000
  return {
    at: (seq: number) => new Date(begin + (seq / (entries + 1)) * DAYS * 86_400_000),
    vary: (_: unknown, seq: number) => ({
      action: seq % 10_000 === 7 ? 'TEAM_PLAN_CHANGED' : ACTIONS[seq % ACTIONS.length]!,
      userId: PEOPLE[seq % PEOPLE.length]!,
      outcome: seq % 1_000 === 5 ? 'DENIED' : 'SUCCESS',
    }),
  } as Parameters<typeof fillChain>[3]
}

/** The graph is that of a workflow that the service has saved. */
async function seedWorkflows(client: pg.Client, teams: Pick<Stand, 'teamId'>[]): Promise<void> {
  await client.query(
    `create table bench_workflows as
     select row_number() over (order by t, w) - 1 as place, t, w, gen_random_uuid() as id, team
     from unnest($1::uuid[]) with ordinality as u (team, t),
       generate_series(1, case when t = 1 then $2::int else $3 end) w`,
    [teams.map(({ teamId }) => teamId), WORKFLOWS, FEW],
  )
  await client.query(`
    alter table bench_workflows add primary key (place);
    insert into workflows (id, team_id, name, version, settings, description)
      select b.id, b.team, 'Workflow ' || b.w, 1, v.settings, 'Takes orders' from bench_workflows b,
        (select settings from workflows limit 1) v;
    insert into workflow_versions (workflow_id, version, nodes, edges, node_count, notes)
      select b.id, 1, v.nodes, v.edges, v.node_count, '[]' from bench_workflows b,
        (select v.* from workflow_versions v limit 1) v`)
}

/** A UUID of version 7: of a time, a kind of row and a number. */
const id = (at: string, kind: number, number: string) =>
  `(lpad(to_hex((extract(epoch from ${at}) * 1000)::bigint), 12, '0') || '7' || '${kind.toString(16).padStart(3, '0')}' || '8'
    || lpad(to_hex((${number})::bigint), 15, '0'))::uuid`

async function seedPiece(
  client: pg.Client,
  { from, to, of, end }: { from: number; to: number; of: number; end: string },
): Promise<void> {
  await client.query('drop table if exists bench_part')
  await client.query(
    `create temp table bench_part as
     select i, b.id as workflow, b.team, b.w, at, h, ${id('at', 1, 'i')} as id,
       case when i > $4::int - 500 and h % 5 = 0 then 'RUNNING' when h % 100 < 6 then 'FAILED' when h % 100 < 9 then 'CANCELLED'
         else 'SUCCESS' end as status
     from (select i, (hashint4(i) & 1023) as g, (hashint4(i + 7919) & 65535) as h,
         $3::timestamptz - (1 - i::float8 / $4) * interval '${DAYS} days' as at from generate_series($1::int, $2::int) i) r
       -- Of the huge team a third is in its first workflow; the more workflows, the less is in each.
       join bench_workflows b on b.place = case when g >= ${HUGE} then ${WORKFLOWS} + h % ${OTHERS * FEW}
         when h % 3 = 0 then 0 else (h / 3) % ${WORKFLOWS} * ((h / 3) % 97) / 97 end`,
    [from, to, end, of],
  )
  await client.query(`
    insert into executions (id, team_id, workflow_id, workflow_name, workflow_version, node_count, status, trigger,
      trigger_node_id, input_data, input_bytes, error_message, started_by_kind, created_at, started_at, completed_at,
      checked_at, record_count)
    select id, team, workflow, 'Workflow ' || w, 1, 4, status,
      case when h % 20 < 10 then 'WEBHOOK' when h % 20 < 16 then 'SCHEDULE' else 'API' end, 'start',
      json_build_object('order', 'A-' || lpad(i::text, 8, '0'), 'customer', 'customer' || h % 5000 || '@example.com',
        'note', repeat(md5(h::text), 4)), 220,
      case when status = 'FAILED' then 'POST api.example.com responded with ' || 500 + h % 4 || ': try again later' end,
      'USER', at, at + interval '20 ms', case when status <> 'RUNNING' then at + h % 9000 * interval '1 ms' end,
      now() + interval '10 days', ${EACH}
    from bench_part order by i`)
  await client.query(`
    insert into node_executions (id, execution_id, node_id, node_name, node_type, status, started_at, completed_at, output,
      error_message, retry_count, settled, position)
    select ${id('at', 2, `i::bigint * ${EACH} + n`)}, id, 'node' || n, 'Node ' || n,
      case when n < 4 then 'HTTP_REQUEST' when n < 8 then 'AI_MODEL' else 'SET' end,
      case when n = ${EACH} and status <> 'SUCCESS' then status else 'SUCCESS' end, at + n * interval '2 ms',
      at + n * interval '2 ms' + h % 9000 / ${EACH} * interval '1 ms',
      json_build_object('number', i, 'text', repeat(md5((i + n)::text), case when n % 4 = 0 then 8 else 2 end)),
      case when n = ${EACH} and status = 'FAILED' then 'POST api.example.com responded with 503' end,
      case when h % 50 = 0 and n = 3 then 1 else 0 end, true, n
    from bench_part, generate_series(1, ${EACH}) n order by i, n`)
  await client.query(`
    insert into model_calls (execution_id, activity_id, attempt, caller, call, team_id, workflow_id, node_id, iteration,
      provider, model, status, input_tokens, output_tokens, cached_tokens, reasoning_tokens, cost, latency_ms, created_at)
    select id, 'node' || 4 + n % 4, 1, ${id('at', 3, 'i')}, n, team, workflow, 'node' || 4 + n % 4, '', 'OPENAI',
      'model-' || (h + n) % 5, case when h % 100 = 3 and n = 1 then 'REFUSED' else 'SUCCESS' end, 100 + h % 1000, h % 300, 0, 0,
      0.0000125 * (1 + h % 9), 500 + h % 700, at + n * interval '2 ms'
    from bench_part, generate_series(1, ${EACH}) n order by i, n`)
}

/** What triggers would have counted. */
async function seedCounts(client: pg.Client): Promise<void> {
  await client.query(`insert into execution_counts (team_id, workflow_id, status, slot, n)
    select team_id, workflow_id, status, 0, count(*) from executions group by 1, 2, 3
    on conflict (team_id, workflow_id, status, slot) do update set n = execution_counts.n + excluded.n`)
}
