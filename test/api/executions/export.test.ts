import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { setTimeout } from 'node:timers/promises'
import { parse } from 'csv-parse/sync'
import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { keep } from '../../support/keep.ts'
import { type Service, startService } from '../../support/service.ts'

const COLUMNS = [
  'execution_id',
  'workflow_id',
  'workflow_name',
  'status',
  'trigger',
  'started_at',
  'completed_at',
  'duration_ms',
  'node_id',
  'node_type',
  'node_name',
  'node_status',
  'node_started_at',
  'node_completed_at',
  'node_duration_ms',
  'node_error',
]

const service = await keep(startService({ rateLimits: false }))

type Team = Awaited<ReturnType<Service['otherTeam']>>

/**
 * Adds failed executions of a new workflow, each with `nodes` node records that have the given error. Returns
 * its id.
 */
async function addExecutions(
  team: { teamId: string },
  input: {
    executions: number
    nodes: number
    name?: string
    nodeName?: string
    error?: string | null
    ageDays?: number
  },
): Promise<string> {
  const { executions, nodes, name = 'Flow', nodeName = 'Fetch', error = null, ageDays = 0 } = input
  const { db } = service.store
  const workflowId = crypto.randomUUID()
  await db
    .insertInto('workflows')
    .values({ id: workflowId, teamId: team.teamId, name: workflowId, version: 1, settings: '{}' })
    .execute()
  await db
    .insertInto('workflowVersions')
    .values({ workflowId, version: 1, nodes: '[]', edges: '[]', nodeCount: nodes })
    .execute()
  await sql`
    with made as (
      insert into executions (id, team_id, workflow_id, workflow_name, workflow_version, node_count, status, trigger,
        trigger_node_id, input_data, input_bytes, started_by_kind, created_at, started_at, completed_at)
      select gen_random_uuid(), ${team.teamId}, ${workflowId}, ${name}, 1, ${nodes}, 'FAILED', 'API', 'start', '{}', 2,
        'USER', t, t + interval '5 ms', t + interval '1.5 s'
      from (select now() - ${ageDays} * interval '1 day' - i * interval '1 s' as t
        from generate_series(1, ${executions}) i) times
      returning id, started_at)
    insert into node_executions (id, execution_id, node_id, node_name, node_type, status, started_at, completed_at,
      error_message, position)
    select gen_random_uuid(), id, 'n' || n, ${nodeName}, 'HTTP_REQUEST', 'FAILED', started_at + n * interval '1 ms',
      started_at + n * interval '1 ms' + interval '12 ms', ${error}, n
    from made, generate_series(1, ${nodes}::int) n`.execute(db)
  return workflowId
}

const pathOf = (team: { teamId: string }, query = '') => `/api/executions/team/${team.teamId}/export${query}`

async function readCsv(team: Team, query = ''): Promise<Record<string, string>[]> {
  const answer = await service.request(pathOf(team, query), { as: team.cookie })
  expect(answer.status).toBe(200)
  return parse(await answer.text(), { columns: true })
}

const HELD = sql`datname = current_database() and state <> 'idle' and query like 'fetch % from export'`

/** For each connection that an export holds, when it last began to fetch. */
async function listFetches(): Promise<string[]> {
  const { rows } = await sql<{ began: string }>`
    select query_start::text as began from pg_stat_activity where ${HELD}`.execute(service.store.db)
  return rows.map(({ began }) => began)
}

async function countHeld(): Promise<number> {
  return (await listFetches()).length
}

test('CSV has the specified columns and one row for each node record', async () => {
  const team = await service.otherTeam()
  const workflowId = await addExecutions(team, { executions: 2, nodes: 3, error: 'it "broke",\r\nbadly' })
  const answer = await service.request(pathOf(team), { as: team.cookie })
  expect(answer.headers.get('content-type')).toBe('text/csv; charset=utf-8')
  expect(answer.headers.get('content-disposition')).toMatch(
    /^attachment; filename="executions-\d{4}-\d\d-\d\d\.csv"$/,
  )
  expect(answer.headers.get('x-ratelimit-remaining')).toMatch(/^\d+$/)
  const text = await answer.text()
  expect(text.startsWith(`${COLUMNS.join(',')}\r\n`)).toBe(true)
  const rows: Record<string, string>[] = parse(text, { columns: true })
  expect(rows.map(({ node_id }) => node_id)).toEqual(['n1', 'n2', 'n3', 'n1', 'n2', 'n3'])
  expect(new Set(rows.map(({ execution_id }) => execution_id)).size).toBe(2)
  expect(rows[0]!.started_at! > rows[3]!.started_at!).toBe(true)
  expect(rows[0]).toEqual({
    execution_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    workflow_id: workflowId,
    workflow_name: 'Flow',
    status: 'FAILED',
    trigger: 'API',
    started_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    completed_at: expect.stringMatching(/Z$/),
    duration_ms: '1495',
    node_id: 'n1',
    node_type: 'HTTP_REQUEST',
    node_name: 'Fetch',
    node_status: 'FAILED',
    node_started_at: expect.stringMatching(/Z$/),
    node_completed_at: expect.stringMatching(/Z$/),
    node_duration_ms: '12',
    node_error: 'it "broke",\r\nbadly',
  })
})

test('JSON is an array of executions with their node records', async () => {
  const team = await service.otherTeam()
  const workflowId = await addExecutions(team, { executions: 2, nodes: 2, error: null })
  await addExecutions(team, { executions: 1, nodes: 0, ageDays: 1 })
  const answer = await service.request(pathOf(team, '?format=json'), { as: team.cookie })
  expect(answer.headers.get('content-type')).toBe('application/json')
  expect(answer.headers.get('content-disposition')).toMatch(/\.json"$/)
  const executions = (await answer.json()) as Record<string, unknown>[]
  expect(executions).toHaveLength(3)
  expect(executions[2]!.nodeExecutions).toEqual([])
  expect(executions[0]).toEqual({
    executionId: expect.any(String),
    workflowId,
    workflowName: 'Flow',
    status: 'FAILED',
    trigger: 'API',
    startedAt: expect.stringMatching(/Z$/),
    completedAt: expect.stringMatching(/Z$/),
    durationMs: 1495,
    usage: null,
    nodeExecutions: ['n1', 'n2'].map((nodeId) => ({
      nodeId,
      nodeType: 'HTTP_REQUEST',
      nodeName: 'Fetch',
      iteration: null,
      step: null,
      tool: null,
      status: 'FAILED',
      startedAt: expect.stringMatching(/Z$/),
      completedAt: expect.stringMatching(/Z$/),
      durationMs: 12,
      error: null,
    })),
  })
  const none = await service.otherTeam()
  const empty = await service.request(pathOf(none, '?format=json'), { as: none.cookie })
  expect(await empty.json()).toEqual([])
  expect(await readCsv(none)).toEqual([])
})

test('JSON says which iteration of a loop a record belongs to, and the columns of CSV stay the same', async () => {
  const team = await service.otherTeam()
  const workflowId = await addExecutions(team, { executions: 1, nodes: 1 })
  const { db } = service.store
  const { id } = await db
    .selectFrom('executions')
    .select('id')
    .where('workflowId', '=', workflowId)
    .executeTakeFirstOrThrow()
  const record = { executionId: id, nodeId: 'n2', nodeName: 'Inner', nodeType: 'SET', status: 'SUCCESS' }
  await db
    .insertInto('nodeExecutions')
    .values(
      ['0', '3.0'].map((iteration, position) => ({
        ...record,
        id: crypto.randomUUID(),
        iteration,
        startedAt: new Date(Date.now() + 1_000 + position),
        position,
      })),
    )
    .execute()
  const answer = await service.request(pathOf(team, '?format=json'), { as: team.cookie })
  const [execution] = (await answer.json()) as { nodeExecutions: { nodeId: string; iteration: unknown }[] }[]
  expect(execution!.nodeExecutions.map(({ nodeId, iteration }) => [nodeId, iteration])).toEqual([
    ['n1', null],
    ['n2', '0'],
    ['n2', '3.0'],
  ])
  const rows = await readCsv(team)
  expect(Object.keys(rows[0]!)).toEqual(COLUMNS)
})

test('an execution without node records has one row, and `days` limits the export', async () => {
  const team = await service.otherTeam()
  await addExecutions(team, { executions: 1, nodes: 0 })
  await addExecutions(team, { executions: 1, nodes: 1, ageDays: 29 })
  await addExecutions(team, { executions: 1, nodes: 1, ageDays: 31 })
  await addExecutions(await service.otherTeam(), { executions: 1, nodes: 1 })
  const rows = await readCsv(team)
  expect(rows.map(({ node_id }) => node_id)).toEqual(['', 'n1'])
  expect(rows[0]!.status).toBe('FAILED')
  expect(await readCsv(team, '?days=1')).toHaveLength(1)
  expect(await readCsv(team, '?days=365')).toHaveLength(3)
})

test('a bad query is refused with all its problems at once', async () => {
  const ask = async (query: string) => {
    const answer = await service.request(pathOf(service, query), { as: service.admin })
    return { status: answer.status, type: answer.headers.get('content-disposition') }
  }
  for (const query of ['?days=0', '?days=366', '?days=x', '?days=1.5', '?format=xml', '?format=', '?bom=1']) {
    expect({ query, ...(await ask(query)) }).toEqual({ query, status: 400, type: null })
  }
  const answer = await service.request(pathOf(service, '?days=0&format=xml'), { as: service.admin })
  expect(((await answer.json()) as { errors: unknown[] }).errors).toHaveLength(2)
})

test('an export contains no personal data or secrets, wherever they are in the executions', async () => {
  const team = await service.otherTeam()
  const leaks = [
    'ada@example.org',
    '+49 30 1234567',
    '4111 1111 1111 1111',
    'DE89 3704 0044 0532 0130 00',
    '123-45-6789',
    '93.184.216.34',
    'hunter2',
    'sdk_0123456789abcdefABCDEF',
    's3cr3t-in-json',
  ]
  const [mail, phone, card, iban, ssn, ip, password, token, json] = leaks
  await addExecutions(team, {
    executions: 1,
    nodes: 1,
    name: `Mail ${mail}`,
    nodeName: `Call ${phone}`,
    error: `${card}; ${iban}, ${ssn} at ${ip}: password=${password} ${token}`,
  })
  await addExecutions(team, { executions: 1, nodes: 1, error: JSON.stringify({ client: { apiKey: json } }) })
  for (const format of ['csv', 'json']) {
    const answer = await service.request(pathOf(team, `?format=${format}`), { as: team.cookie })
    const text = await answer.text()
    for (const leak of leaks) expect(text).not.toContain(leak)
    expect(text).toContain('Mail [EMAIL]')
    expect(text).toContain('Call [PHONE]')
    expect(text).toContain('[CREDIT_CARD]; [IBAN], [SSN] at [IP_ADDRESS]: password=[redacted] [redacted]')
  }
})

test('no CSV cell begins like a formula', async () => {
  const team = await service.otherTeam()
  for (const [i, start] of ['=', '+', '-', '@', '\t=', '\r', ' =', '＝', "'="].entries()) {
    await addExecutions(team, {
      executions: 1,
      nodes: 1,
      ageDays: i,
      name: `${start}cmd|' /C calc'!A0`,
      nodeName: `${start}1`,
      error: `${start}HYPERLINK("http://a.example")`,
    })
  }
  const rows = await readCsv(team)
  expect(rows).toHaveLength(9)
  for (const row of rows) {
    for (const cell of Object.values(row)) expect(cell).not.toMatch(/^[=+\-@\t\r\n＝＋－＠]/)
    expect(row.node_name!.startsWith("'")).toBe(true)
  }
  const [first] = rows
  expect(first!.node_error).toBe(`'=HYPERLINK("http://a.example")`)
})

test('a byte order mark is written only on request', async () => {
  const team = await service.otherTeam()
  const read = async (query: string) => {
    const answer = await service.request(pathOf(team, query), { as: team.cookie })
    return Buffer.from(await answer.arrayBuffer()).subarray(0, 3)
  }
  expect((await read('?bom=true')).toString('hex')).toBe('efbbbf')
  expect((await read('')).toString()).toBe('exe')
  expect((await read('?bom=true&format=json')).toString()[0]).toBe('[')
})

test('each export has an audit entry; HEAD and refused requests have none', async () => {
  const team = await service.otherTeam()
  const operator = await service.signUp('OPERATOR', team.teamId)
  const viewer = await service.token('VIEWER', team.cookie, team.teamId)
  const entries = () =>
    service.store.db
      .selectFrom('auditEntries')
      .select(['action', 'actorId', 'resourceType', 'details'])
      .where('teamId', '=', team.teamId)
      .where('action', '=', 'EXECUTIONS_EXPORTED')
      .execute()
  expect((await service.request(pathOf(team), { as: viewer })).status).toBe(403)
  expect((await service.request(pathOf(team), { as: service.admin })).status).toBe(403)
  const head = await service.request(pathOf(team), { method: 'HEAD', as: operator.cookie })
  expect(head.status).toBe(200)
  expect(head.headers.get('content-disposition')).toMatch(/\.csv"$/)
  expect((await service.request(pathOf(team), { method: 'HEAD', as: viewer })).status).toBe(403)
  expect(await entries()).toEqual([])
  await readCsv({ ...team, cookie: operator.cookie }, '?days=7')
  expect(await entries()).toEqual([
    {
      action: 'EXECUTIONS_EXPORTED',
      actorId: operator.id,
      resourceType: 'EXECUTION',
      details: { format: 'csv', days: 7, since: expect.stringMatching(/Z$/) },
    },
  ])
})

test('an export shows the state of one moment, and is not compressed', async () => {
  const team = await service.otherTeam()
  await addExecutions(team, { executions: 30, nodes: 100, error: 'x' })
  const answer = await service.app.request(pathOf(team, '?format=json'), {
    headers: { cookie: team.cookie, 'accept-encoding': 'gzip' },
  })
  expect(answer.headers.get('content-encoding')).toBeNull()
  await service.store.db.deleteFrom('executions').where('teamId', '=', team.teamId).execute()
  const executions = (await answer.json()) as { executionId: string; nodeExecutions: unknown[] }[]
  expect(executions.map(({ nodeExecutions }) => nodeExecutions.length)).toEqual(Array(30).fill(100))
  expect(new Set(executions.map(({ executionId }) => executionId)).size).toBe(30)
})

test('an export fetches nothing for a client that does not read, and ends if it disconnects', async () => {
  const team = await service.otherTeam()
  await addExecutions(team, { executions: 200, nodes: 200, error: 'e'.repeat(1_000) })
  const message = await ask(await service.listen(), team)
  await once(message, 'readable')
  // Only what fits into the sockets' buffers is fetched of these 50 MB. All of it would take a second or two.
  const isStill = async () => {
    const [before] = await listFetches()
    await setTimeout(150)
    const [after] = await listFetches()
    return before !== undefined && before === after
  }
  await expect.poll(isStill, { timeout: 5_000 }).toBe(true)
  message.destroy()
  await expect.poll(countHeld).toBe(0)
})

test('a client that disconnects while rows are fetched leaves no export behind', async () => {
  const team = await service.otherTeam()
  await addExecutions(team, { executions: 200, nodes: 200, error: 'e'.repeat(1_000) })
  const url = await service.listen()
  for (const bytes of [1, 300_000, 2_000_000]) {
    const message = await ask(url, team)
    let read = 0
    for await (const chunk of message) {
      read += (chunk as Buffer).length
      if (read >= bytes) break
    }
    await expect.poll(countHeld).toBe(0)
  }
})

test('a client that continues to read after a while gets the rest', async () => {
  const team = await service.otherTeam()
  await addExecutions(team, { executions: 100, nodes: 200, error: 'e'.repeat(500) })
  const message = await ask(await service.listen(), team)
  await once(message, 'readable')
  await expect.poll(countHeld).toBe(1)
  expect(parse(Buffer.concat(await message.toArray()), { columns: true })).toHaveLength(20_000)
  expect(message.complete).toBe(true)
  expect(await countHeld()).toBe(0)
})

test('an error in the middle of an export cuts the connection', async () => {
  const team = await service.otherTeam()
  await addExecutions(team, { executions: 200, nodes: 200, error: 'e'.repeat(1_000) })
  const url = await service.listen()
  for (const format of ['csv', 'json']) {
    const message = await ask(url, team, `?format=${format}`)
    await once(message, 'readable')
    await expect.poll(countHeld).toBe(1)
    await sql`select pg_terminate_backend(pid) from pg_stat_activity where ${HELD}`.execute(service.store.db)
    let bytes = 0
    const reading = (async () => {
      for await (const chunk of message) bytes += (chunk as Buffer).length
    })()
    await expect(reading).rejects.toThrow('aborted')
    expect(message.complete).toBe(false)
    expect(bytes).toBeLessThan(40_000_000)
    await expect.poll(countHeld).toBe(0)
  }
})

test('exports over the limit of concurrent exports wait for their turn', async () => {
  const teams = await Promise.all([1, 2, 3, 4].map(() => service.otherTeam()))
  await Promise.all(teams.map((team) => addExecutions(team, { executions: 10, nodes: 120, error: 'x' })))
  const asked = [...teams, ...teams].map((team) => readCsv(team))
  for (const rows of await Promise.all(asked)) expect(rows).toHaveLength(1_200)
})

function ask(url: string, team: Team, query = ''): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    get(`${url}${pathOf(team, query)}`, { headers: { cookie: team.cookie } }, resolve).on('error', reject)
  })
}
