import { expect, test } from 'vitest'
import { importDocument } from './importing.ts'

type Fields = Record<string, unknown>

/** What a node of a database has become, with what is said of it. */
function importNode(type: string, parameters: Fields, typeVersion: number) {
  const node = { name: 'Sql', type: `n8n-nodes-base.${type}`, typeVersion, parameters }
  const start = { name: 'Start', type: 'n8n-nodes-base.manualTrigger', typeVersion: 1, parameters: {} }
  const main = [[{ node: 'Sql', type: 'main', index: 0 }]]
  const document = { nodes: [start, node], connections: { Start: { main } }, settings: {} }
  const { nodes, problems, report } = importDocument(document)!
  expect(problems).toEqual([])
  const made = (nodes as { type: string; config: Fields }[]).find((one) => !one.type.endsWith('TRIGGER'))!
  return { ...made, said: report.problems.map(({ message }) => message).join('\n') }
}

const query = (sql: string, options: Fields = {}) => ({ operation: 'executeQuery', query: sql, options })
const table = { schema: 'public', table: { mode: 'name', value: 'people' } }

test.each<[string, Fields, string]>([
  ['postgres', query('={{ $json.sql }}'), 'an expression gives its whole statement'],
  ['postgres', query('=select * from {{ $json.table }}'), 'a name or a piece of SQL'],
  ['postgres', query('=select "{{ $json.column }}" from t'), 'a name or a piece of SQL'],
  ['postgres', query('select 1; select 2'), 'it has several statements'],
  ['mySql', query('delete from a; delete from b;'), 'it has several statements'],
  ['postgres', query('select * from $1:name', { queryReplacement: 'a' }), 'it writes "$1:name" into its SQL'],
  ['postgres', query("select '$1'", { queryReplacement: 'a' }), 'the place of a value within quotes'],
  ['postgres', query("=select 'it''s {{ 1 }}'"), 'a text with apostrophes'],
  ['postgres', query(' '), 'it has no statement'],
  ['postgres', { operation: 'select', ...table, table: '={{ $json.t }}' }, 'an expression names its table'],
  ['postgres', { operation: 'deleteTable', ...table, deleteCommand: '={{ $json.how }}' }, 'what it deletes'],
  ['postgres', { operation: 'guess', ...table }, 'Perdure has no "guess"'],
  ['mySql', { ...query('select 1'), options: { detailedOutput: true } }, 'it puts out the SQL'],
  ['supabase', { operation: 'update', tableId: 'people' }, 'it has no condition'],
  ['supabase', { operation: 'guess', tableId: 'people' }, 'Perdure has no "guess"'],
  ['supabase', { tableId: '={{ $json.t }}' }, 'an expression names its table'],
])('%s with %j stops by name', (type, parameters, why) => {
  const { type: made, said } = importNode(type, parameters, type === 'supabase' ? 1 : 2.4)
  expect([made, said]).toEqual(['STOP_AND_ERROR', expect.stringContaining(why)])
})

test('names are quoted, and values never stand in the SQL', () => {
  const where = { values: [{ column: 'a"b', condition: 'equal', value: '={{ $json.x }}' }] }
  const evil = { mode: 'name', value: 'x"; drop table y; --' }
  const { config } = importNode(
    'postgres',
    { operation: 'select', schema: 'public', table: evil, where },
    2.6,
  )
  expect(config).toMatchObject({
    query: 'SELECT * FROM "public"."x""; drop table y; --" WHERE "a""b" = $1 LIMIT 50',
    params: ['={{ $json.x }}'],
    readOnly: true,
  })
})

test('numbers of values grow where expressions come before them', () => {
  const sql = "=select {{ 'a' }} from t where a = $1 and b = '{{ $json.b }}' and c = $2"
  const { config } = importNode('postgres', query(sql, { queryReplacement: '={{ [1, 2] }}' }), 2.6)
  expect(config.query).toBe('select $1 from t where a = $3 and b = $2 and c = $4')
})

test('a credential is asked for, and without one the node fails', () => {
  const { type, said } = importNode('mySql', query('select 1'), 2.4)
  expect(type).toBe('DATABASE_QUERY')
  expect(said).toContain('Choose a credential of the type DATABASE')
})
