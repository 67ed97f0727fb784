import { expect, test } from 'vitest'
import { changePlan } from '../../../db/people/teams.ts'
import { serviceScope } from '../../../db/scope.ts'
import { keep } from '../../support/keep.ts'
import { startService } from '../../support/service.ts'

const service = await keep(startService({ rateLimits: false }))
const { admin, teamId } = service
const ask = (method: string, path: string, json?: unknown, as = admin) =>
  service.call(method, `/api/tables${path}`, as, json)

let made = 0
type Columns = { name: string; type: string; required?: boolean; unique?: boolean; id?: string }[]

async function createTable(columns: Columns, name = `table ${++made}`) {
  const { status, body } = await ask('POST', '', { teamId, name, columns })
  expect([status, body]).toEqual([201, body])
  return body as { id: string; name: string; columns: { id: string; name: string }[]; rowCount: number }
}

async function addRows(id: string, rows: unknown[], keys?: string[]) {
  const { status, body } = await ask('POST', `/${id}/rows`, { rows, ...(keys ? { keys } : {}) })
  expect([status, body.message]).toEqual([200, undefined])
  return body
}

async function find(id: string, query: Record<string, unknown> = {}) {
  const pairs = Object.entries(query).map(
    ([key, value]) =>
      `${key}=${encodeURIComponent(typeof value === 'string' ? value : JSON.stringify(value))}`,
  )
  const answer = await ask('GET', `/${id}/rows?${pairs.join('&')}`)
  expect([answer.status, answer.body.message]).toEqual([200, undefined])
  return answer.body
}

const actsOf = async (id: string) => {
  const rows = await service.store.db
    .selectFrom('auditEntries')
    .select(['action', 'details'])
    .where('resourceId', '=', id)
    .orderBy('seq')
    .execute()
  return rows.map(({ action, details }) => [action, details])
}

const PEOPLE = [
  { name: 'email', type: 'text', required: true, unique: true },
  { name: 'age', type: 'number' },
  { name: 'member', type: 'boolean' },
  { name: 'since', type: 'date' },
  { name: 'more', type: 'json' },
]

test('a table is created, read, listed, changed and deleted, and each change is audited', async () => {
  const answer = await ask('POST', '', { teamId, name: ' people ', columns: PEOPLE })
  expect(answer.status).toBe(201)
  const table = answer.body
  expect(answer.headers.get('location')).toBe(`/api/tables/${table.id}`)
  expect(table).toMatchObject({ name: 'people', teamId, rowCount: 0, bytes: 0 })
  expect(table.columns[0]).toEqual({ id: 'c1', name: 'email', type: 'text', required: true, unique: true })
  expect((await ask('GET', `/${table.id}`)).body).toEqual(table)
  expect((await ask('GET', `?teamId=${teamId}`)).body.content).toContainEqual(table)
  expect((await ask('POST', '', { teamId, name: 'people', columns: PEOPLE })).status).toBe(409)
  await addRows(table.id, [{ email: 'ada@example.com', age: 36, more: { a: [1] } }])

  // A column under another name keeps its values, and a new one has none.
  const columns = [
    { ...table.columns[0], name: 'mail' },
    ...table.columns.slice(1, 4),
    { name: 'note', type: 'text' },
  ]
  const changed = await ask('PUT', `/${table.id}`, { columns })
  expect(
    changed.body.columns.map((column: { id: string; name: string }) => [column.id, column.name]),
  ).toEqual([
    ['c1', 'mail'],
    ['c2', 'age'],
    ['c3', 'member'],
    ['c4', 'since'],
    ['c6', 'note'],
  ])
  const [row] = (await find(table.id)).content
  expect(row).toMatchObject({ mail: 'ada@example.com', age: 36, note: null })
  expect(row).not.toHaveProperty('more')
  // What was deleted is not only out of sight.
  const stored = await service.store.db
    .selectFrom('dataRows')
    .select('cells')
    .where('tableId', '=', table.id)
    .executeTakeFirstOrThrow()
  expect(stored.cells).toEqual({ c1: 'ada@example.com', c2: 36 })

  expect((await ask('DELETE', `/${table.id}`)).body).toEqual({ message: 'Data table deleted' })
  for (const [method, json] of [['GET'], ['PUT', {}], ['DELETE']] as const)
    expect((await ask(method, `/${table.id}`, json)).status).toBe(404)
  expect((await actsOf(table.id)).map(([action]) => action)).toEqual([
    'TABLE_CREATED',
    'TABLE_ROWS_CHANGED',
    'TABLE_UPDATED',
    'TABLE_DELETED',
  ])
})

test('every fault of a table and of its rows is named at once', async () => {
  const columns = [
    { name: 'id', type: 'text' },
    { name: 'twice', type: 'text' },
    { name: 'twice', type: 'money' },
    { name: '1st', type: 'text' },
    { name: 'data', type: 'json', unique: true },
  ]
  const { status, body } = await ask('POST', '', { teamId, name: '', columns })
  expect([status, body.errors.map(({ path }: { path: string }) => path)]).toEqual([
    400,
    ['name', 'columns[0].name', 'columns[2].type', 'columns[3].name'],
  ])
  const right = columns.map((column, at) => ({
    ...column,
    type: at === 2 ? 'text' : column.type,
    name: `c${at % 3}`,
  }))
  const again = await ask('POST', '', { teamId, name: 'faults', columns: right })
  expect(again.body.errors.map(({ path }: { path: string }) => path)).toEqual([
    'columns[3].name',
    'columns[4].name',
    'columns[4].unique',
  ])

  const { id } = await createTable(PEOPLE)
  const wrong = await ask('POST', `/${id}/rows`, {
    rows: [
      { email: 'a', age: 'ten', member: 'yes', since: '2026-02-30' },
      { age: 1, strange: 1 },
      { email: 'b'.repeat(70_000) },
    ],
  })
  expect([wrong.status, wrong.body.errors.map(({ path }: { path: string }) => path)]).toEqual([
    400,
    ['rows[0].age', 'rows[0].member', 'rows[0].since', 'rows[1].strange', 'rows[1].email', 'rows[2]'],
  ])
  const filters = [
    { column: 'nothing', op: 'eq', value: 1 },
    { column: 'age', op: 'contains', value: '1' },
    { column: 'age', op: 'gt', value: 'x' },
    { column: 'more', op: 'eq', value: 1 },
    { column: 'id', op: 'gt', value: 1 },
    { column: 'age', op: 'in', value: [1, 'x'] },
  ]
  const refused = await ask('GET', `/${id}/rows?where=${encodeURIComponent(JSON.stringify(filters))}`)
  expect([refused.status, refused.body.errors.map(({ path }: { path: string }) => path)]).toEqual([
    400,
    [
      ...['where[0].column', 'where[1].op', 'where[2].value'],
      ...['where[3].op', 'where[4].op', 'where[5].value[1]'],
    ],
  ])
  for (const query of [
    'where=x',
    'where={}',
    'where=[1]',
    'sort=more',
    'sort=nothing',
    'match=none',
    'size=101',
  ])
    expect([query, (await ask('GET', `/${id}/rows?${query}`)).status]).toEqual([query, 400])
  expect((await find(id)).totalElements).toBe(0)
})

test('values come back as they were: digits, NUL, lone surrogates, dates and JSON', async () => {
  const { id } = await createTable([...PEOPLE, { name: 'digits', type: 'number' }])
  const values = [
    { email: 'a\0b', age: 0.1, more: { 'x\0': '\ud800' } },
    { email: '\ud800', since: '2026-03-01T12:00:00+02:00', member: false },
    { email: '\udfff', digits: '12345678901234567890.123' },
    { email: '\ufffd', digits: '+10.0', since: '2026-03-01' },
    { email: `${'long '.repeat(100)}a`, more: [] },
    { email: `${'long '.repeat(100)}b`, more: 0 },
  ]
  await addRows(id, values)
  const raw = await service.request(`/api/tables/${id}/rows`, {
    method: 'POST',
    as: admin,
    headers: { 'Content-Type': 'application/json' },
    body: '{"rows": [{"email": "c", "digits": 9007199254740993}]}',
  })
  expect(raw.status).toBe(200)
  const { content } = await find(id)
  const bare = { age: null, member: null, since: null, more: null, digits: null }
  expect(content).toMatchObject([
    { ...bare, ...values[0] },
    { ...bare, email: '\ud800', since: '2026-03-01T10:00:00.000Z', member: false },
    { ...bare, ...values[2] },
    { ...bare, email: '\ufffd', digits: 10, since: '2026-03-01T00:00:00.000Z' },
    { ...bare, ...values[4] },
    { ...bare, ...values[5] },
    { ...bare, email: 'c', digits: '9007199254740993' },
  ])
  const one = async (column: string, op: string, value: unknown) => {
    const found = await find(id, { where: [{ column, op, value }] })
    return found.content.map(({ email }: { email: string }) => email)
  }
  for (const { email } of values) expect(await one('email', 'eq', email)).toEqual([email])
  expect(await one('digits', 'eq', '9007199254740993')).toEqual(['c'])
  expect(await one('digits', 'eq', '9007199254740992')).toEqual([])
  expect(await one('digits', 'gt', '12345678901234567890.1229')).toEqual(['\udfff'])
  expect(await one('email', 'startsWith', 'long ')).toHaveLength(2)
  expect(await one('email', 'startsWith', `${'long '.repeat(100)}b`)).toHaveLength(1)
  expect(await one('email', 'contains', '\0')).toEqual(['a\0b'])
  expect(await one('since', 'lt', '2026-03-01T01:00:00Z')).toEqual(['\ufffd'])
  expect(await one('more', 'notEmpty', undefined)).toHaveLength(3)
})

test('rows are found by all or any conditions, sorted with empty ones last, and paged', async () => {
  const { id } = await createTable(PEOPLE)
  const rows = Array.from({ length: 250 }, (_, at) => ({
    email: `p${String(at).padStart(3, '0')}`,
    ...(at % 10 === 0 ? {} : { age: (at * 7) % 100 }),
    member: at % 2 === 0,
  }))
  await addRows(id, rows)
  const mails = async (query: Record<string, unknown>) => {
    const page = await find(id, { size: '100', ...query })
    return { total: page.totalElements, mails: page.content.map(({ email }: { email: string }) => email) }
  }
  for (const sort of ['age', '-age', 'id', '-id', 'email', '-member']) {
    const seen: string[] = []
    for (const page of ['0', '1', '2', '3']) seen.push(...(await mails({ sort, page })).mails)
    expect([sort, new Set(seen).size, seen.length]).toEqual([sort, 250, 250])
    const ages = seen.map((mail) => rows.find(({ email }) => email === mail)!.age ?? null)
    if (sort === 'age' || sort === '-age') {
      expect(ages.slice(225)).toEqual(Array(25).fill(null))
      const filled = ages.slice(0, 225) as number[]
      expect(filled).toEqual(filled.toSorted((a, b) => (sort === 'age' ? a - b : b - a)))
    }
  }
  const where = [
    { column: 'age', op: 'lt', value: 5 },
    { column: 'email', op: 'in', value: ['p000', 'p001'] },
  ]
  const fits = ({ age }: { age?: number }) => age !== undefined && age < 5
  expect((await mails({ where })).total).toBe(rows.slice(0, 2).filter(fits).length)
  const any = rows.filter((row, at) => fits(row) || at < 2).map(({ email }) => email)
  expect(await mails({ where, match: 'any' })).toEqual({ total: any.length, mails: any })
  const counts = { eq: 1, ne: 249, gt: 248, gte: 249, lt: 1, lte: 2 }
  for (const [op, count] of Object.entries(counts))
    expect([op, (await mails({ where: [{ column: 'email', op, value: 'p001' }] })).total]).toEqual([
      op,
      count,
    ])
  expect((await mails({ where: [{ column: 'age', op: 'ne', value: 7 }] })).total).toBe(
    rows.filter(({ age }) => age !== 7).length,
  )
  expect((await mails({ where: [{ column: 'age', op: 'empty' }] })).total).toBe(25)
})

test('rows are added or changed by their keys, changed and deleted by conditions and by their id', async () => {
  const { id } = await createTable(PEOPLE)
  const first = await addRows(
    id,
    [
      { email: 'a', age: 1 },
      { email: 'b', age: 2, more: 1 },
    ],
    ['email'],
  )
  expect(first).toMatchObject({ inserted: 2, updated: 0 })
  const [a, b] = first.rows
  const second = await addRows(id, [{ email: 'c' }, { email: 'b', age: null, member: true }], ['email'])
  expect(second).toMatchObject({
    inserted: 1,
    updated: 1,
    rows: [{ email: 'c' }, { id: b.id, age: null, more: 1 }],
  })
  // A client may send back what it has read.
  const back = await ask('PATCH', `/${id}/rows/${a.id}`, { values: { ...a, age: 5 } })
  expect(back.body).toMatchObject({ id: a.id, email: 'a', age: 5 })
  expect((await ask('GET', `/${id}/rows/${a.id}`)).body).toEqual(back.body)
  const all = await ask('PATCH', `/${id}/rows`, { where: [], values: { member: false } })
  expect(all.body).toEqual({ updated: 3 })
  const keys = await ask('POST', `/${id}/rows`, {
    rows: [{ age: 1 }, { email: 'x' }, { email: 'x' }],
    keys: ['email'],
  })
  expect([keys.status, keys.body.errors.map(({ path }: { path: string }) => path)]).toEqual([
    400,
    ['rows[0].email', 'rows[2]'],
  ])
  expect((await ask('DELETE', `/${id}/rows/${a.id}`)).body).toEqual({ message: 'Row deleted' })
  for (const [method, json] of [['GET'], ['PATCH', { values: {} }], ['DELETE']] as const)
    expect((await ask(method, `/${id}/rows/${a.id}`, json)).status).toBe(404)
  expect((await ask('DELETE', `/${id}/rows`)).status).toBe(400)
  const where = encodeURIComponent(JSON.stringify([{ column: 'email', op: 'eq', value: 'c' }]))
  expect((await ask('DELETE', `/${id}/rows?where=${where}`)).body).toEqual({ deleted: 1, more: false })
  expect((await ask('DELETE', `/${id}/rows?where=[]`)).body).toEqual({ deleted: 1, more: false })
  const { body } = await ask('GET', `/${id}`)
  expect([body.rowCount, body.bytes]).toEqual([0, 0])
  const entries = (await actsOf(id)).filter(([action]) => action === 'TABLE_ROWS_CHANGED')
  expect(entries).toHaveLength(7)
  expect(JSON.stringify(entries)).not.toContain('email')
})

test('unique columns hold: in one request, against other rows, and when many write at once', async () => {
  const { id } = await createTable([...PEOPLE, { name: 'number', type: 'number', unique: true }])
  await addRows(id, [
    { email: 'a', number: 1 },
    { email: 'b', number: 2 },
  ])
  const taken = await ask('POST', `/${id}/rows`, {
    rows: [
      { email: 'c', number: '1.0' },
      { email: 'a' },
      { email: 'd', number: 1e3 },
      { email: 'd', number: '1000' },
    ],
  })
  expect(taken.status).toBe(409)
  expect(taken.body.message).toContain('rows[1].email is the value of another row')
  expect(taken.body.message).toContain('rows[0].number is the value of another row')
  expect(taken.body.message).toContain('rows[3].email repeats rows[2]')
  expect(taken.body.message).toContain('rows[3].number repeats rows[2]')
  expect((await ask('PATCH', `/${id}/rows`, { where: [], values: { email: 'z' } })).status).toBe(409)
  const b = (await find(id, { where: [{ column: 'email', op: 'eq', value: 'b' }] })).content[0]
  expect((await ask('PATCH', `/${id}/rows/${b.id}`, { values: { email: 'a' } })).status).toBe(409)
  expect((await ask('PATCH', `/${id}/rows/${b.id}`, { values: { email: 'b', age: 3 } })).status).toBe(200)

  const upserts = Array.from({ length: 24 }, (_, at) =>
    ask('POST', `/${id}/rows`, { rows: [{ email: `k${at % 3}`, age: at }], keys: ['email'] }),
  )
  const inserts = Array.from({ length: 12 }, () => ask('POST', `/${id}/rows`, { rows: [{ email: 'only' }] }))
  const statuses = (await Promise.all([...upserts, ...inserts])).map(({ status }) => status)
  expect(statuses.slice(0, 24)).toEqual(Array(24).fill(200))
  expect(statuses.slice(24).sort()).toEqual([200, ...Array(11).fill(409)])
  expect((await find(id)).totalElements).toBe(6)
})

test('columns change only as the rows allow it', async () => {
  const { id, columns } = await createTable([
    { name: 'a', type: 'text' },
    { name: 'b', type: 'number' },
  ])
  await addRows(id, [{ a: 'x', b: 1 }, { a: 'x' }])
  const [a, b] = columns
  const put = async (...given: object[]) => {
    const { status, body } = await ask('PUT', `/${id}`, { columns: given })
    return [status, body.errors?.map(({ path }: { path: string }) => path)]
  }
  expect(
    await put({ ...a, unique: true }, { ...b, required: true }, { name: 'c', type: 'text', required: true }),
  ).toEqual([400, ['columns[0].unique', 'columns[1].required', 'columns[2].required']])
  expect(await put({ ...a, type: 'number' }, { ...b, id: 'c9' })).toEqual([
    400,
    ['columns[0].type', 'columns[1].id'],
  ])
  expect(await put({ ...b, name: 'a', unique: true }, { ...a, name: 'b', required: true })).toEqual([
    200,
    undefined,
  ])
  expect((await find(id)).content).toMatchObject([
    { a: 1, b: 'x' },
    { a: null, b: 'x' },
  ])
  // The place of a deleted column is given to another, without what was there.
  for (let round = 0; round < 25; round++)
    expect(await put({ ...a }, { name: `n${round}`, type: 'number' })).toEqual([200, undefined])
  expect((await find(id, { where: [{ column: 'n24', op: 'notEmpty' }] })).totalElements).toBe(0)
  const many = Array.from({ length: 21 }, (_, at) => ({ name: `t${at}`, type: 'text' }))
  expect(await put(...many)).toEqual([400, ['columns']])
})

test('a plan bounds tables, rows and bytes', async () => {
  const other = await service.otherTeam()
  const operator = serviceScope(
    service.store,
    { kind: 'SYSTEM', id: null, name: 'test' },
    [[other.teamId, 'ADMIN']],
    {
      instanceAdmin: true,
    },
  )
  await changePlan(operator, other.teamId, 'FREE')
  const create = (name: string) =>
    ask('POST', '', { teamId: other.teamId, name, columns: [{ name: 'a', type: 'text' }] }, other.cookie)
  const tables = []
  for (let at = 0; at < 5; at++) tables.push((await create(`t${at}`)).body.id)
  const sixth = await create('t5')
  expect([sixth.status, sixth.body.message]).toEqual([
    409,
    'A team can have 5 data tables: delete one of them',
  ])
  await service.store.db.updateTable('dataTableUsage').set({ rowCount: 49_999 }).execute()
  await service.store.db
    .insertInto('dataTableUsage')
    .values({ teamId: other.teamId, rowCount: 49_999, bytes: 0 })
    .execute()
  const add = (table: string, rows: unknown[]) => ask('POST', `/${table}/rows`, { rows }, other.cookie)
  const answers = await Promise.all([add(tables[0], [{ a: 'x' }]), add(tables[1], [{ a: 'x' }])])
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 409])
  const refused = answers.find(({ status }) => status === 409)!
  expect(refused.body.message).toBe(
    'A team with the plan FREE can have 50,000 rows in its data tables: delete some',
  )
  await service.store.db
    .updateTable('dataTableUsage')
    .set({ rowCount: 1, bytes: 49_999_990 })
    .where('teamId', '=', other.teamId)
    .execute()
  expect((await add(tables[2], [{ a: 'x'.repeat(100) }])).body.message).toContain('50,000,000 bytes')
})

test('another team has no way in: 403 for its people, 404 for a row under another table', async () => {
  const { id } = await createTable(PEOPLE)
  const [row] = (await addRows(id, [{ email: 'a' }])).rows
  const other = await service.otherTeam()
  for (const [method, path, json] of [
    ['GET', `/${id}`],
    ['PUT', `/${id}`, { name: 'mine' }],
    ['DELETE', `/${id}`],
    ['GET', `/${id}/rows`],
    ['POST', `/${id}/rows`, { rows: [{ email: 'x' }] }],
    ['DELETE', `/${id}/rows?where=[]`],
  ] as const)
    expect([method, path, (await ask(method, path, json, other.cookie)).status]).toEqual([method, path, 403])
  const second = await createTable(PEOPLE)
  expect((await ask('GET', `/${second.id}/rows/${row.id}`)).status).toBe(404)
  expect((await ask('DELETE', `/${second.id}/rows/${row.id}`)).status).toBe(404)
})
