import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import { expect, test, vi } from 'vitest'
import { openDatabase } from '../../../db/connection.ts'
import { keep } from '../../support/keep.ts'
import { nodeOf, shareRunning } from '../../support/running.ts'

const running = await keep(shareRunning())

type Variable = { id: string; teamId: string; key: string; value: unknown; updatedAt: string }

const send = (method: string, path: string, json?: unknown, as = running.admin) =>
  running.request(`/api/variables${path}`, { method, as, ...(json === undefined ? {} : { json }) })
const create = (key: string, value: unknown, more: object = {}) =>
  send('POST', '', { teamId: running.teamId, key, value, ...more })

async function make(key: string, value: unknown): Promise<Variable> {
  const answer = await create(key, value)
  expect(answer.status).toBe(201)
  return (await answer.json()) as Variable
}

async function faultsOf(answer: Response): Promise<string[]> {
  expect(answer.status).toBe(400)
  const { errors } = (await answer.json()) as { errors: { path: string }[] }
  return errors.map(({ path }) => path)
}

/** Executes a SET node with these values and returns its output. */
async function render(values: Record<string, unknown>, data = {}): Promise<Record<string, unknown> | null> {
  const run = await running.run(
    {
      nodes: [
        { id: 'start', type: 'MANUAL_TRIGGER' },
        { id: 'set', type: 'SET', config: { values } },
      ],
      edges: [{ source: 'start', target: 'set' }],
    },
    data,
  )
  expect(run.status, run.errorMessage ?? '').toBe('SUCCESS')
  return nodeOf(run, 'set').outputData
}

test('a variable is created, read, listed, changed and deleted, and each change is audited', async () => {
  const made = await create('region', { name: 'eu', zones: [1, null] }, { description: 'where', unknown: 1 })
  expect(made.status).toBe(201)
  const variable = (await made.json()) as Variable
  expect(variable).toEqual({
    id: expect.any(String),
    teamId: running.teamId,
    key: 'region',
    value: { name: 'eu', zones: [1, null] },
    description: 'where',
    createdAt: expect.stringMatching(/\.\d{3}Z$/),
    updatedAt: expect.stringMatching(/\.\d{3}Z$/),
  })
  expect(made.headers.get('location')).toBe(`/api/variables/${variable.id}`)
  const path = `/${variable.id}`
  expect(await (await send('GET', path)).json()).toEqual(variable)
  await make('area', null)
  const page = (await (await send('GET', `?teamId=${running.teamId}&size=1`)).json()) as {
    content: Variable[]
  }
  expect(page).toMatchObject({ totalElements: 2, totalPages: 2, number: 0, size: 1 })
  expect(page.content.map(({ key }) => key)).toEqual(['area'])

  const changed = await send('PUT', path, { value: 'us', description: null })
  expect(await changed.json()).toMatchObject({ key: 'region', value: 'us', description: null })
  const renamed = await send('PUT', path, { key: 'place' })
  expect(await renamed.json()).toMatchObject({ id: variable.id, key: 'place', value: 'us' })
  expect((await send('PUT', path, { key: 'area' })).status).toBe(409)
  expect((await create('place', 1)).status).toBe(409)
  const deleted = await send('DELETE', path)
  expect([deleted.status, await deleted.json()]).toEqual([200, { message: 'Variable deleted' }])
  for (const method of ['GET', 'PUT', 'DELETE']) {
    expect([method, (await send(method, path, method === 'PUT' ? {} : undefined)).status]).toEqual([
      method,
      404,
    ])
  }

  const entries = await running.store.db
    .selectFrom('auditEntries')
    .selectAll()
    .where('resourceId', '=', variable.id)
    .orderBy('seq')
    .execute()
  expect(entries.map((entry) => JSON.stringify(entry).match(/VARIABLE_\w+/)?.[0])).toEqual([
    'VARIABLE_CREATED',
    'VARIABLE_UPDATED',
    'VARIABLE_UPDATED',
    'VARIABLE_DELETED',
  ])
  expect(entries[1]!.details).toEqual({
    key: 'region',
    changed: ['value', 'description'],
    before: { value: { region: { name: 'eu', zones: [1, null] } }, description: 'where' },
    after: { value: { region: 'us' }, description: null },
  })
})

test('the audit has the values of variables before and after, but for secrets and what is too large', async () => {
  const secret = (await (await create('api_key', 'first-hidden-value')).json()) as Variable
  await send('PUT', `/${secret.id}`, { value: 'second-hidden-value' })
  await send('DELETE', `/${secret.id}`)
  const large = (await (await create('large', 'x'.repeat(10_000))).json()) as Variable
  await send('PUT', `/${large.id}`, { value: 1 })
  const entries = await running.store.db
    .selectFrom('auditEntries')
    .select(['resourceId', 'details'])
    .where('resourceId', 'in', [secret.id, large.id])
    .orderBy('seq')
    .execute()
  expect(entries).toHaveLength(5)
  expect(JSON.stringify(entries)).not.toContain('hidden-value')
  expect(entries.at(-1)!.details).toMatchObject({
    before: { value: { large: { omitted: true, bytes: 10_002 } } },
    after: { value: { large: 1 } },
  })
})

test('all problems are reported at once, and limits hold', async () => {
  expect(await faultsOf(await send('POST', '', { key: '1a', description: 5 }))).toEqual([
    'teamId',
    'key',
    'value',
    'description',
  ])
  for (const key of ['', 'a-b', 'a.b', 'ä', 'x'.repeat(101)]) {
    expect(await faultsOf(await create(key, 1)), key).toEqual(['key'])
  }
  expect(await faultsOf(await create('big', 'x'.repeat(32_767)))).toEqual(['value'])
  const { id } = await make('big', 'x'.repeat(32_766))
  expect(await faultsOf(await send('PUT', `/${id}`, { value: 'ä'.repeat(16_384) }))).toEqual(['value'])
  for (const value of [false, 0, '', [], 'nul \0 and \ud800']) {
    const answer = await send('PUT', `/${id}`, { value })
    expect(((await answer.json()) as Variable).value).toEqual(value)
  }
  // Two are created at the same time where there is room for one.
  await sql`insert into variables (id, team_id, key, value)
    select gen_random_uuid(), ${running.teamId}, 'fill_' || n, '1' from generate_series(1, 999 - (
      select count(*)::int from variables where team_id = ${running.teamId})) n`.execute(running.store.db)
  const both = await Promise.all([create('last_1', 1), create('last_2', 1)])
  expect(both.map(({ status }) => status).sort()).toEqual([201, 409])
  await sql`delete from variables where key like 'fill_%' or key like 'last_%'`.execute(running.store.db)
})

test("another team cannot access a team's variables, but may use the same keys", async () => {
  const { id } = await make('ours', 1)
  const other = await running.otherTeam()
  for (const method of ['GET', 'PUT', 'DELETE']) {
    const json = method === 'PUT' ? { value: 2 } : undefined
    expect([method, (await send(method, `/${id}`, json, other.cookie)).status]).toEqual([method, 403])
  }
  const theirs = await send('POST', '', { teamId: other.teamId, key: 'ours', value: 'theirs' }, other.cookie)
  expect(theirs.status).toBe(201)
  expect(await render({ ours: '{{ $vars.ours }}' })).toEqual({ ours: 1 })
})

test('expressions read the current value; a missing variable has no value', async () => {
  const { id } = await make('rate', { vat: 19, __proto: 1 })
  await make('__proto__', 'own')
  const values = {
    vat: '{{ $vars.rate.vat + 1 }}',
    text: 'at {{ $vars.rate.vat }}%',
    quoted: '{{ $vars.`rate`.vat }}',
    computed: '{{ $lookup($vars, $input.key).vat }}',
    none: '{{ $vars.none.deep }}',
    proto: '{{ $vars.__proto__ }}',
    constructor: '{{ $vars.constructor }}',
  }
  expect(await render(values, { key: 'rate' })).toEqual({
    vat: 20,
    text: 'at 19%',
    quoted: 19,
    computed: 19,
    none: null,
    proto: 'own',
    constructor: null,
  })
  await send('PUT', `/${id}`, { value: { vat: 7 } })
  // Variables are cached for each workflow, and this one has not read them yet.
  expect(await render({ vat: '{{ $vars.rate.vat }}' })).toEqual({ vat: 7 })
})

test('losing PostgreSQL while a node reads variables does not count as its failure', async () => {
  const key = `steady_${randomUUID().slice(0, 8)}`
  await make(key, 'yes')
  const id = await running.create({
    nodes: [
      { id: 'start', type: 'MANUAL_TRIGGER' },
      { id: 'set', type: 'SET', config: { values: { steady: `{{ $vars.${key} }}` } } },
    ],
    edges: [{ source: 'start', target: 'set' }],
  })
  const side = openDatabase(running.database.url, { max: 2, name: 'side' })
  const blocked = sql<{ pid: number }>`select pid from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock' and query like '%variables%'`
  let executionId = ''
  await side.db.transaction().execute(async (tx) => {
    await sql`lock table variables in access exclusive mode`.execute(tx)
    executionId = await running.execute(id)
    let found: { pid: number }[] = []
    const giveUp = Date.now() + 10_000
    while (found.length === 0 && Date.now() < giveUp) found = (await blocked.execute(side.db)).rows
    // On a busy machine, another execution may be reading variables too.
    expect(found).not.toEqual([])
    for (const { pid } of found) await sql`select pg_terminate_backend(${pid})`.execute(side.db)
  })
  await side.close()
  // The API shares the connections that were cut, so it may respond with 503 once.
  const run = await vi.waitFor(() => running.ended(executionId), { timeout: 30_000 })
  expect(run.status, run.errorMessage ?? '').toBe('SUCCESS')
  expect(nodeOf(run, 'set')).toMatchObject({ outputData: { steady: 'yes' }, retryCount: 0 })
})
