import { expect, test } from 'vitest'
import { edges } from '../../support/engine/graphs.ts'
import { keep } from '../../support/keep.ts'
import { nodeOf, shareRunning } from '../../support/running.ts'

const host = await keep(shareRunning())

let made = 0

async function createTable(columns: object[]) {
  const body = { teamId: host.teamId, name: `table ${++made}`, columns }
  return host.ask<{ id: string; name: string }>('POST', '/api/tables', body)
}

const ITEMS = [
  { name: 'key', type: 'text', required: true, unique: true },
  { name: 'count', type: 'number' },
]

/** Executes one node, and returns what became of it. */
async function work(config: object, data: object = {}, more: object = {}) {
  const run = await host.run(
    {
      nodes: [
        { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
        { id: 'work', type: 'DATA_TABLE', config, ...more },
      ],
      edges: edges('start -> work'),
    } as never,
    data as never,
  )
  const { status, errorMessage: error, outputData, retryCount } = nodeOf(run, 'work')
  // biome-ignore lint/suspicious/noExplicitAny: outputs are read field by field
  return { status, error, output: outputData as any, retryCount, id: run.id }
}

test('every operation outputs what it did', async () => {
  const { id: table, name } = await createTable(ITEMS)
  const inserted = await work(
    { table, operation: 'insert', rows: '{{ $input.rows }}' },
    { rows: [{ key: 'a', count: 1 }, { key: 'b' }] },
  )
  expect(inserted.output).toMatchObject({
    count: 2,
    rows: [
      { key: 'a', count: 1 },
      { key: 'b', count: null },
    ],
  })
  const upserted = await work({
    ...{ table: name, operation: 'upsert', keys: ['key'] },
    rows: [
      { key: 'b', count: 2 },
      { key: 'c', count: 12345678901 },
    ],
  })
  expect(upserted.output).toMatchObject({ count: 2, inserted: 1, updated: 1 })
  expect(upserted.output.rows[0].id).toBe(inserted.output.rows[1].id)
  const all = { where: [{ column: 'count', op: 'gte', value: '{{ $input.least }}' }] }
  const selected = await work(
    { table, operation: 'select', sort: '-count', limit: 2, ...all },
    { least: '1' },
  )
  expect(selected.output.rows.map(({ key }: { key: string }) => key)).toEqual(['c', 'b'])
  expect((await work({ table, operation: 'count', ...all }, { least: 2 })).output).toEqual({ count: 2 })
  expect((await work({ table, operation: 'exists', ...all }, { least: 1e12 })).output).toEqual({
    exists: false,
  })
  const updated = await work({ table, operation: 'update', ...all, values: { count: null } }, { least: 2 })
  expect(updated.output).toMatchObject({ count: 2, rows: [{ count: null }, { count: null }] })
  const deleted = await work({ table, operation: 'delete', where: [], limit: 2 })
  expect(deleted.output).toMatchObject({ count: 2, more: true, rows: [{ key: 'a' }, { key: 'b' }] })
  expect((await work({ table, operation: 'count' })).output).toEqual({ count: 1 })
})

test('with output the rows alone come out, all of them or none, or the item itself', async () => {
  const { id: table } = await createTable(ITEMS)
  const rows = [{ key: 'a', count: 1 }, { key: '' }, { key: 'c', count: 3 }]
  const added = await work({ table, operation: 'insert', rows, output: 'rows' })
  const list = (output: unknown) => (output as { value: { key: string }[] }).value.map(({ key }) => key)
  expect(list(added.output)).toEqual(['a', '', 'c'])
  const many = Array.from({ length: 150 }, (_, n) => ({ key: `k${n}` }))
  await work({ table, operation: 'insert', rows: '{{ $input.many }}' }, { many })
  expect(list((await work({ table, operation: 'select', output: 'rows' })).output)).toHaveLength(153)
  const where = [{ column: 'key', op: 'eq', value: 'c' }]
  const exists = (output: string, found = where) =>
    work({ table, operation: 'exists', where: found, output }, { n: 1 })
  expect((await exists('found')).output).toEqual({ n: 1 })
  expect((await exists('missing')).output).toEqual({ value: [] })
  const none = [{ column: 'key', op: 'eq', value: 'none' }]
  expect((await exists('missing', none)).output).toEqual({ n: 1 })
  const keys = async (op: string, value?: unknown) => {
    const found = [
      { column: value === undefined ? 'key' : 'count', op, ...(value === undefined ? {} : { value }) },
    ]
    const { output } = await work({ table, operation: 'select', where: found, output: 'rows' })
    return list(output).filter((key) => !key.startsWith('k'))
  }
  expect(await keys('blank')).toEqual([''])
  expect(await keys('notBlank')).toEqual(['a', 'c'])
  expect(await keys('in', [3, null])).toEqual(['', 'c'])
  expect(await keys('in', [3])).toEqual(['c'])
  for (const config of [
    { operation: 'exists', output: 'rows' },
    { operation: 'select', output: 'found' },
    { operation: 'count', output: 'rows' },
  ]) {
    const { status } = await host.call('POST', '/api/workflows', host.admin, {
      ...{ teamId: host.teamId, name: 'faulty output', edges: [] },
      nodes: [{ id: 'n', type: 'DATA_TABLE', config: { table, ...config } }],
    })
    expect(status).toBe(400)
  }
})

test('what does not fit is InvalidInput with every row and column, and nothing is written', async () => {
  const { id: table } = await createTable(ITEMS)
  const wrong = await work({
    ...{ table, operation: 'insert' },
    rows: [{ key: 'a' }, { key: 1, count: 'many' }, { strange: true }],
  })
  expect([wrong.status, wrong.error]).toEqual([
    'FAILED',
    'rows[1].key must be a text, not a number; rows[1].count must be a number, not this text; ' +
      'rows[2].strange is no column of the table; rows[2].key is required',
  ])
  const config = { table, operation: 'insert', rows: '{{ $input.rows }}' }
  const typed = await work(config, { rows: [1] }, { onError: 'CONTINUE' })
  expect([typed.error, typed.retryCount]).toEqual(['rows[0] must be an object, not a number', 0])
  expect((await work({ table, operation: 'count' })).output).toEqual({ count: 0 })
  expect((await work({ table: 'no such', operation: 'count' })).error).toBe(
    'table must be a data table of the team, unlike "no such"',
  )
  const other = await host.otherTeam()
  const body = { teamId: other.teamId, name: 'theirs', columns: ITEMS }
  const theirs = await host.ask<{ id: string }>('POST', '/api/tables', body, other.cookie)
  for (const named of [theirs.id, 'theirs'])
    expect((await work({ table: named, operation: 'count' })).error).toMatch(/^table must be a data table/)
})

test('a config has what its operation needs, and nothing else', async () => {
  const configs = [
    { operation: 'insert', where: [] },
    { table: '{{ $input.table }}', operation: 'update', where: [{ column: 'a', op: 'like', value: 1 }] },
  ]
  const nodes = configs.map((config, at) => ({ id: `n${at}`, type: 'DATA_TABLE', config }))
  const { status, body } = await host.call('POST', '/api/workflows', host.admin, {
    ...{ teamId: host.teamId, name: 'faults', edges: [] },
    nodes,
  })
  expect(status).toBe(400)
  expect(body.errors.map(({ path }: { path: string }) => path)).toEqual([
    'nodes[0].config.table',
    'nodes[1].config.table',
    expect.stringMatching(/^nodes\[1\].config.where/),
  ])
})

test('forty executions that write one key at once make one row', async () => {
  const { id: table } = await createTable(ITEMS)
  const workflow = await host.create({
    nodes: [
      { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
      {
        id: 'work',
        type: 'DATA_TABLE',
        config: {
          ...{ table, operation: 'upsert', keys: ['key'] },
          rows: [{ key: 'one', count: '{{ $input.n }}' }],
        },
      },
    ],
    edges: edges('start -> work'),
  } as never)
  const ids = await Promise.all(Array.from({ length: 40 }, (_, n) => host.execute(workflow, { n } as never)))
  const runs = await Promise.all(ids.map((id) => host.ended(id)))
  const outputs = runs.map((run) => nodeOf(run, 'work').outputData as { inserted: number })
  expect(runs.filter(({ status }) => status !== 'SUCCESS')).toEqual([])
  expect(outputs.reduce((sum, { inserted }) => sum + inserted, 0)).toBe(1)
  expect((await work({ table, operation: 'count' })).output).toEqual({ count: 1 })
})

test('a table that active workflows use is deleted only by an ADMIN who says so', async () => {
  const { id: table, name } = await createTable(ITEMS)
  const builder = await host.signUp('BUILDER')
  const workflows: string[] = []
  for (const named of [table.toUpperCase(), name])
    workflows.push(
      await host.create({
        nodes: [
          { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
          { id: 'work', type: 'DATA_TABLE', config: { table: named, operation: 'count' } },
        ],
        edges: edges('start -> work'),
      } as never),
    )
  for (const id of workflows) await host.ask('PUT', `/api/workflows/${id}`, { active: true })
  const remove = (query = '', as = builder.cookie) => host.call('DELETE', `/api/tables/${table}${query}`, as)
  const refused = await remove()
  expect(refused.status).toBe(409)
  expect(refused.body.message).toMatch(/^Active workflows use the data table "table \d+": ".+", ".+"\./)
  expect((await remove('?force=true')).status).toBe(403)
  await host.ask('PUT', `/api/workflows/${workflows[0]}`, { active: false })
  expect((await remove()).status).toBe(409)
  expect((await remove('?force=true', host.admin)).status).toBe(200)
  const run = await host.ended(await host.execute(workflows[1]!))
  expect(run.errorMessage).toMatch(/must be a data table of the team/)
})

test('an exported workflow names its tables, and an import finds those of the same name', async () => {
  const { id: table, name } = await createTable(ITEMS)
  const node = (named: string, id: string) => ({
    ...{ id, type: 'DATA_TABLE', name: id },
    config: { table: named, operation: 'count' },
  })
  const start = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }
  const workflow = await host.create({
    nodes: [start, node(table.toUpperCase(), 'a'), node('missing', 'b')],
    edges: edges('start -> a', 'start -> b'),
  } as never)
  type Document = { nodes: { config: { table?: string } }[] }
  const document = await host.ask<Document>('GET', `/api/workflows/${workflow}/export`)
  expect(document.nodes.map(({ config }) => config.table)).toEqual([undefined, name, 'missing'])
  const { status, body } = await host.call('POST', '/api/workflows/import', host.admin, {
    ...{ teamId: host.teamId, workflow: document, name: 'With tables' },
  })
  expect(status).toBe(201)
  expect(body.report.problems).toMatchObject([{ path: 'nodes[2].config.table', original: 'missing' }])
})
