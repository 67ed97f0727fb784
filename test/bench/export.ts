import { randomUUID } from 'node:crypto'
import pg from 'pg'
import type { Stand } from './stand.ts'

const EXECUTIONS = 100_000
const NODES = 10
const SAMPLE_MS = 100
const GROWTH_MB = 50

/** Exports a million node records over HTTP, and reports the speed and how much the service's memory grew. */
export async function measureExport(stand: Stand): Promise<void> {
  const client = new pg.Client({ connectionString: stand.databaseUrl })
  await client.connect()
  await seedRuns(client, stand.teamId).finally(() => client.end())
  const { token } = await stand.ask<{ token: string }>('POST', `/api/teams/${stand.teamId}/sdk-tokens`, {
    name: 'export',
    role: 'OPERATOR',
  })
  const rows: Record<string, unknown>[] = []
  for (const format of ['csv', 'json', 'csv']) {
    const memory = () => stand.readUsage().service!.memory
    const before = memory()
    let most = before
    const timer = setInterval(() => {
      most = Math.max(most, memory())
    }, SAMPLE_MS)
    const began = performance.now()
    const response = await fetch(`${stand.url}/api/executions/team/${stand.teamId}/export?format=${format}`, {
      headers: { authorization: `Bearer ${token}` },
    })
    let bytes = 0
    let first = 0
    let found = 0
    const mark = Buffer.from(format === 'csv' ? ',HTTP_REQUEST,' : '"HTTP_REQUEST"')
    let tail: Buffer = Buffer.alloc(0)
    for await (const chunk of response.body!) {
      first ||= performance.now() - began
      bytes += chunk.length
      const text = Buffer.concat([tail, chunk])
      let end = 0
      for (let at = text.indexOf(mark); at >= 0; at = text.indexOf(mark, end)) {
        found++
        end = at + mark.length
      }
      tail = text.subarray(Math.max(end, text.length - mark.length + 1))
    }
    clearInterval(timer)
    const seconds = (performance.now() - began) / 1_000
    if (found !== EXECUTIONS * NODES)
      throw new Error(`${found} node records were exported instead of ${EXECUTIONS * NODES}`)
    rows.push({
      format,
      MB: Math.round(bytes / 1e6),
      'first byte, ms': Math.round(first),
      seconds: Math.round(seconds),
      'rows/s': Math.round(found / seconds),
      'memory before, MB': before,
      'at most': most,
      [`grown under ${GROWTH_MB}`]: most - before < GROWTH_MB ? 'yes' : 'no',
    })
  }
  console.log(
    `GET /api/executions/team/:teamId/export of ${EXECUTIONS} executions with ${NODES} failed nodes each; two of these ` +
      'have an error message, one of them a different one in each execution',
  )
  console.table(rows)
}

async function seedRuns(client: pg.Client, teamId: string): Promise<void> {
  const workflowId = randomUUID()
  await client.query(
    `insert into workflows (id, team_id, name, version, settings) values ($1, $2, 'export', 1, '{}')`,
    [workflowId, teamId],
  )
  await client.query(
    `insert into workflow_versions (workflow_id, version, nodes, edges, node_count) values ($1, 1, '[]', '[]', 10)`,
    [workflowId],
  )
  const parts = 10
  for (let part = 0; part < parts; part++) {
    await client.query(
      `with made as (
         insert into executions (id, team_id, workflow_id, workflow_name, workflow_version, node_count, status, trigger,
           trigger_node_id, input_data, input_bytes, started_by_kind, created_at, started_at, completed_at, checked_at)
         select gen_random_uuid(), $1, $2, 'Mail ada@example.org', 1, ${NODES}, 'SUCCESS', 'API', 'start', '{}', 2, 'USER',
           at, at, at + interval '1 second', now() + interval '1 day'
         from generate_series($3::int, $4::int) i, lateral (select now() - make_interval(secs => 20 * i) as at) t
         returning id, started_at)
       insert into node_executions (id, execution_id, node_id, node_name, node_type, status, started_at, completed_at,
         error_message, position)
       select gen_random_uuid(), id, 'node' || n, 'Node ' || n, 'HTTP_REQUEST', 'FAILED', started_at + n * interval '1 ms',
         started_at + n * interval '1 ms' + interval '12 ms',
         case n when 1 then 'POST api.example.com responded with 503: try again later'
           when 2 then 'POST api.example.com responded with 422: {"to":"' || left(id::text, 8) || '@example.org","apiKey":"' || id
             || '","phone":"+49 30 1234567"} is no known receiver' end, n
       from made, generate_series(1, ${NODES}) n`,
      [teamId, workflowId, (part * EXECUTIONS) / parts + 1, ((part + 1) * EXECUTIONS) / parts],
    )
    console.error(`[bench] ${((part + 1) * EXECUTIONS * NODES) / parts} node records`)
  }
  await client.query('vacuum analyze')
}
