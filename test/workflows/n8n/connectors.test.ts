import { expect, test } from 'vitest'
import { convertWorkflow } from '../../../workflows/n8n/convert.ts'
import { atOnce } from '../../support/atonce.ts'
import { importDocument } from './importing.ts'

type Fields = Record<string, unknown>

/** A document with one node of that type behind a manual trigger, and what it became. */
function importNode(type: string, typeVersion: number, parameters: Fields, more: Fields = {}) {
  const node = { name: 'Do', type: `n8n-nodes-base.${type}`, typeVersion, parameters, ...more }
  const start = { name: 'Start', type: 'n8n-nodes-base.manualTrigger', typeVersion: 1, parameters: {} }
  const main = [[{ node: 'Do', type: 'main', index: 0 }]]
  const document = { nodes: [start, node], connections: { Start: { main } }, settings: {} }
  const { nodes, problems, report } = importDocument(document)!
  const { needs } = atOnce(convertWorkflow(document, () => undefined))!
  expect(problems).toEqual([])
  const all = nodes as { type: string; config: Fields; perItem?: true; allItems?: true }[]
  const made = all.find((one) => !one.type.endsWith('TRIGGER'))!
  return { ...made, report, needs, shaper: all[2]?.config.expression }
}

const base = { mode: 'url', value: 'https://airtable.com/appB12/tblT12/viw1' }
const table = { mode: 'list', value: 'tblT12' }
const place = { base: 'appB12', table: 'tblT12' }

test.each([
  [
    {
      operation: 'search',
      base,
      table,
      filterByFormula: '={A} = "{{ $json.a }}"',
      returnAll: false,
      limit: 1,
    },
    'listRecords',
    { ...place, filterByFormula: '={A} = "{{ $json.a }}"', limit: 1 },
  ],
  [{ base, table, id: '={{ $json.id }}' }, 'getRecord', { ...place, record: '={{ $json.id }}' }],
  [
    {
      ...{ operation: 'create', base, table, options: {} },
      columns: { mappingMode: 'defineBelow', value: { Name: '={{ $json.n }}', Done: true }, schema: [] },
    },
    'createRecord',
    { ...place, fields: { Name: '={{ $json.n }}', Done: true }, skipEmpty: true },
  ],
  [
    {
      ...{ operation: 'update', base, table, options: { typecast: true } },
      columns: { mappingMode: 'autoMapInputData', matchingColumns: ['id'], value: null },
    },
    'updateRecord',
    {
      ...place,
      fields: '={{ Object.fromEntries(Object.entries($json).filter(([key]) => !["id"].includes(key))) }}',
      typecast: true,
      skipEmpty: true,
      record: '={{ $json.id }}',
    },
  ],
  [
    {
      ...{ operation: 'upsert', base, table, options: {} },
      columns: { mappingMode: 'defineBelow', matchingColumns: ['Name'], value: { Name: 'Ada' } },
    },
    'upsertRecord',
    { ...place, fields: { Name: 'Ada' }, keys: ['Name'], skipEmpty: true },
  ],
  [{ operation: 'deleteRecord', base, table, id: 'rec1' }, 'deleteRecord', { ...place, record: 'rec1' }],
  [{ resource: 'base', operation: 'getSchema', base }, 'listTables', { base: 'appB12' }],
])('Airtable with %j becomes %s', (parameters, action, input) => {
  const { type, config, needs, perItem } = importNode('airtable', 2.1, parameters)
  expect(type).toBe('CONNECTOR')
  expect(config).toMatchObject({ connector: 'airtable', action })
  expect(config.input).toEqual(input)
  expect(perItem).toBe(true)
  expect(needs).toMatchObject([{ type: 'airtableTokenApi', as: 'AIRTABLE' }])
})

test('what the first version of Airtable does once for all items is done once', () => {
  const { allItems, config, report } = importNode('airtable', 1, {
    ...{ operation: 'list', application: 'appB', table: 'Cu stomers' },
    additionalOptions: { fields: ['A'], sort: { property: [{ field: 'A', direction: 'desc' }] } },
  })
  expect(allItems).toBe(true)
  expect(config.input).toEqual({
    ...{ base: 'appB', table: 'Cu stomers', fields: ['A'] },
    sort: [{ field: 'A', direction: 'desc' }],
  })
  expect(JSON.stringify(report.problems)).toContain('Airtable has switched off')
})

test.each([
  ['airtable', 2.1, { operation: 'search', options: { downloadFields: ['A'] } }, 'it downloads attachments'],
  ['airtable', 2.1, { operation: 'move' }, 'Perdure has no "move" of "record"'],
])('%s %s with %j stops by name', (type, version, parameters, why) => {
  const { type: made, report } = importNode(type, version, { base, table, ...parameters })
  expect(made).toBe('STOP_AND_ERROR')
  expect(report.problems.map(({ message }) => message).join()).toContain(why)
})
