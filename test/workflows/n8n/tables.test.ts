import { expect, test } from 'vitest'
import { importDocument } from './importing.ts'

type Fields = Record<string, unknown>

const TABLE = { __rl: true, mode: 'list', value: 'k3J9', cachedResultName: 'customers' }
const where = (...conditions: Fields[]) => ({ filters: { conditions } })
const writes = (value: Fields | null, more: Fields = {}) => ({
  columns: { mappingMode: 'defineBelow', value, ...more },
})
const byMail = where({ keyName: 'email', condition: 'eq', keyValue: '={{ $json.email }}' })

/** What a Data Table node of n8n has become. */
function importTable(parameters: Fields, more: Fields = {}) {
  const node = {
    ...{ name: 'Keep', type: 'n8n-nodes-base.dataTable', typeVersion: 1.1 },
    parameters: { dataTableId: TABLE, ...parameters },
    ...more,
  }
  const start = { name: 'Start', type: 'n8n-nodes-base.manualTrigger', typeVersion: 1, parameters: {} }
  const main = [[{ node: 'Keep', type: 'main', index: 0 }]]
  const { nodes, problems, report } = importDocument({
    ...{ nodes: [start, node], connections: { Start: { main } }, settings: {} },
  })!
  expect(problems).toEqual([])
  const made = (nodes as { type: string; config: Fields }[]).find((one) => !one.type.endsWith('TRIGGER'))!
  return { ...made, said: report.problems.map(({ message }) => message).join('\n') }
}

const get = (condition: Fields, more: Fields = {}) =>
  importTable({ operation: 'get', ...where({ keyName: 'email', ...condition }), ...more })

test.each<[string, Fields, string]>([
  ['of a table itself', { resource: 'table', operation: 'create' }, 'with a table itself'],
  ['of another kind', { operation: 'guess' }, 'no "guess" for rows'],
  ['without a table', { dataTableId: { mode: 'list', value: '' }, operation: 'get' }, 'names no table'],
  ['by an expression', { dataTableId: { mode: 'id', value: '={{ $json.t }}' } }, 'says which table it is'],
  ['a dry run', { operation: 'deleteRows', ...byMail, options: { dryRun: true } }, 'it is a dry run'],
  ['deletes everything', { operation: 'deleteRows' }, 'it has no condition'],
  ['updates everything', { operation: 'update', ...writes({ a: 1 }) }, 'it has no condition'],
  ['updates nothing', { operation: 'update', ...byMail, ...writes({}) }, 'no values to write'],
  ['inserts nothing', { operation: 'insert', ...writes(null) }, 'no values to write'],
  ['writes an id', { operation: 'insert', ...writes({ id: 7 }) }, 'it writes "id"'],
  ['all or not', { operation: 'get', returnAll: '={{ $json.all }}' }, 'whether it reads all rows'],
  [
    'sorts by a change',
    { operation: 'get', orderBy: true, orderByColumn: 'updatedAt' },
    'sorts by "updatedAt"',
  ],
  [
    'sorts by chance',
    { operation: 'get', orderBy: true, orderByColumn: '={{ 1 }}' },
    'how it sorts the rows',
  ],
  [
    'upserts by another',
    { operation: 'upsert', ...byMail, ...writes({ name: 'Ada' }) },
    'something else than',
  ],
  [...(['upserts by either', { operation: 'upsert' }, 'something else than'] as const)],
])('what it does not do stops by name: %s', (what, parameters, why) => {
  const either = where(
    { keyName: 'a', condition: 'eq', keyValue: '1' },
    { keyName: 'b', condition: 'eq', keyValue: '2' },
  )
  const given =
    what === 'upserts by either' ? { ...parameters, ...either, ...writes({ a: '1', b: '2' }) } : parameters
  const { type, said } = importTable(given)
  expect([type, said]).toEqual(['STOP_AND_ERROR', expect.stringContaining(why)])
})

test.each<[Fields, string]>([
  [{ condition: 'ilike', keyValue: 'a' }, 'without regard to capitals'],
  [{ condition: 'like', keyValue: 'a%b' }, 'a pattern that has a % within'],
  [{ condition: 'like', keyValue: '%b' }, 'texts that end in one'],
  [{ condition: '={{ $json.how }}' }, 'says how it compares'],
  [{ condition: 'sounds' }, 'compares by "sounds"'],
  [{ keyName: 'createdAt', condition: 'gt', keyValue: '2026-01-01' }, 'it compares "createdAt"'],
  [{ keyName: 'id', condition: 'eq', keyValue: '7' }, 'by its id in n8n, "7"'],
  [{ keyName: 'id', condition: 'gt', keyValue: '={{ 7 }}' }, 'compares ids by "gt"'],
  [{ keyName: '' }, 'names no column'],
])('a condition that cannot be stops by name: %j', (condition, why) => {
  const { type, said } = get(condition)
  expect([type, said]).toEqual(['STOP_AND_ERROR', expect.stringContaining(why)])
})

test.each<[Fields, Fields]>([
  [{ keyValue: 'a' }, { op: 'eq', value: 'a' }],
  [
    { condition: 'neq', keyValue: 'a' },
    { op: 'ne', value: 'a' },
  ],
  [
    { condition: 'gte', keyValue: '={{ $json.n }}' },
    { op: 'gte', value: '={{ $json.n }}' },
  ],
  [
    { condition: 'eq', keyValue: '=a {{ $json.n }}' },
    { op: 'eq', value: '=a {{ $json.n }}' },
  ],
  [
    { condition: 'like', keyValue: 'a' },
    { op: 'contains', value: 'a' },
  ],
  [
    { condition: 'like', keyValue: '%a%' },
    { op: 'contains', value: 'a' },
  ],
  [
    { condition: 'like', keyValue: 'a%' },
    { op: 'startsWith', value: 'a' },
  ],
  [
    { condition: 'like', keyValue: '%' },
    { op: 'contains', value: '' },
  ],
  [{ condition: 'isEmpty' }, { op: 'blank' }],
  [{ condition: 'isNotEmpty' }, { op: 'notBlank' }],
  [{ condition: 'isTrue' }, { op: 'eq', value: true }],
  [{ condition: 'isFalse' }, { op: 'eq', value: false }],
])('the condition %j has its words here', (condition, expected) => {
  expect(get(condition).config).toMatchObject({ where: [{ column: 'email', ...expected }], match: 'any' })
})

test('a table is named by its name, and what differs is said', () => {
  const named = (dataTableId: unknown) => importTable({ operation: 'get', dataTableId }).config.table
  expect(named(TABLE)).toBe('customers')
  expect(named({ mode: 'id', value: 'k3J9', cachedResultName: 'customers' })).toBe('customers')
  expect(named({ mode: 'name', value: 'orders', cachedResultName: 'customers' })).toBe('orders')
  expect(named({ mode: 'id', value: 'k3J9' })).toBe('k3J9')
  expect(named('k3J9')).toBe('k3J9')
  const { said } = importTable(
    { operation: 'insert', ...writes({ a: 1 }) },
    { onError: 'continueRegularOutput' },
  )
  for (const word of ['is a UUID here', 'one after the other', 'in words of Perdure'])
    expect(said).toContain(word)
})

test('limits and orders', () => {
  const of = (more: Fields) => importTable({ operation: 'get', ...more }).config
  expect(of({})).toEqual({ table: 'customers', operation: 'select', limit: 50, output: 'rows' })
  expect(of({ returnAll: true })).toEqual({ table: 'customers', operation: 'select', output: 'rows' })
  expect(of({ limit: 20_000 }).limit).toBeUndefined()
  expect(of({ limit: '={{ $json.most }}' }).limit).toBe('={{ $json.most }}')
  expect(of({ orderBy: true }).sort).toBe('-id')
  expect(of({ orderBy: true, orderByColumn: 'email', orderByDirection: 'ASC' }).sort).toBe('email')
  expect(of({ orderByColumn: 'email' }).sort).toBeUndefined()
})
