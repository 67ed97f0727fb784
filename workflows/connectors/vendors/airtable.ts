import type { Connector } from '../connector.ts'
import { choice, flag, limit, list, name, object, record, text } from '../schemas.ts'

const place = {
  base: name('Base', 'The base: its id, which begins with app.', { 'x-options': 'bases' }),
  table: name('Table', 'The table: its id, which begins with tbl, or its name.', { 'x-options': 'tables' }),
}
const one = {
  record: name('Record', 'The id of the record, which begins with rec.'),
}
const typecast = flag(
  'Convert values',
  'Airtable makes values fit their fields, and adds options that are missing.',
)
const values = record('Fields', 'The values of the record, by the names of its fields.')
const records = list(
  object({ fields: values }, ['fields']),
  'Records',
  'The records, each with its fields. At most 10 at once.',
  { minItems: 1, maxItems: 10 },
)

const ROWS = '/v0/{{ $input.base }}/{{ $input.table }}'

/** Airtable's Web API: airtable.com/developers/web/api. */
export const AIRTABLE: Connector = {
  name: 'airtable',
  title: 'Airtable',
  summary: 'Records in the tables of Airtable.',
  version: 1,
  server: 'https://api.airtable.com',
  signIn: ['AIRTABLE', 'OAUTH2'],
  setup:
    'A personal access token with the scopes data.records:read and data.records:write, and schema.bases:read to choose ' +
    'from lists.',
  options: {
    bases: {
      steps: [{ name: 'bases', method: 'GET', path: '/v0/meta/bases' }],
      list: '$nodes.bases.bases.{"value": id, "label": name}',
    },
    tables: {
      needs: ['base'],
      steps: [{ name: 'tables', method: 'GET', path: '/v0/meta/bases/{{ $input.base }}/tables' }],
      list: '$nodes.tables.tables.{"value": id, "label": name}',
    },
  },
  actions: {
    listRecords: {
      name: 'List records',
      summary: 'Reads the records of a table: all, those that fit a formula, or those of a view.',
      safety: 'REPEATABLE',
      input: object(
        {
          ...place,
          filterByFormula: text('Formula', "Only the records for which it holds, such as {Status} = 'Open'."),
          view: text('View', 'Only the records of this view, in its order: its name or its id.'),
          fields: list(text('Field', 'The name of a field.'), 'Fields', 'Only these fields of the records.'),
          sort: list(
            object(
              {
                field: name('Field', 'The field to sort by.'),
                direction: choice(['asc', 'desc'], 'Direction', 'Ascending unless it is desc.'),
              },
              ['field'],
            ),
            'Sort',
            'What the records are sorted by.',
          ),
          limit: limit(),
        },
        ['base', 'table'],
      ),
      steps: [
        {
          name: 'list',
          // Formulas may be longer than an address.
          method: 'POST',
          path: `${ROWS}/listRecords`,
          body: {
            filterByFormula: '{{ $input.filterByFormula }}',
            view: '{{ $input.view }}',
            fields: '{{ $input.fields }}',
            sort: '{{ $input.sort }}',
            pageSize: '{{ $input.limit < 100 ? $input.limit : 100 }}',
          },
          pages: {
            items: '$item.records',
            next: '$item.offset',
            into: { body: 'offset' },
            limit: '$input.limit',
          },
        },
      ],
    },
    getRecord: {
      name: 'Get a record',
      summary: 'Reads one record.',
      safety: 'REPEATABLE',
      input: object({ ...place, ...one }, ['base', 'table', 'record']),
      steps: [{ name: 'get', method: 'GET', path: `${ROWS}/{{ $input.record }}` }],
    },
    createRecord: {
      name: 'Create a record',
      summary: 'Adds a record to a table.',
      safety: 'ONCE',
      input: object({ ...place, fields: values, typecast }, ['base', 'table', 'fields']),
      steps: [
        {
          name: 'create',
          method: 'POST',
          path: ROWS,
          body: { fields: '{{ $input.fields }}', typecast: '{{ $input.typecast }}' },
        },
      ],
    },
    createRecords: {
      name: 'Create records',
      summary: 'Adds up to 10 records to a table.',
      safety: 'ONCE',
      input: object({ ...place, records, typecast }, ['base', 'table', 'records']),
      steps: [
        {
          name: 'create',
          method: 'POST',
          path: ROWS,
          body: { records: '{{ $input.records }}', typecast: '{{ $input.typecast }}' },
        },
      ],
      result: '{{ $nodes.create.records }}',
    },
    updateRecord: {
      name: 'Update a record',
      summary: 'Changes the named fields of a record; the others stay.',
      safety: 'REPEATABLE',
      input: object({ ...place, ...one, fields: values, typecast }, ['base', 'table', 'record', 'fields']),
      steps: [
        {
          name: 'update',
          method: 'PATCH',
          path: `${ROWS}/{{ $input.record }}`,
          body: { fields: '{{ $input.fields }}', typecast: '{{ $input.typecast }}' },
        },
      ],
    },
    upsertRecord: {
      name: 'Create or update a record',
      summary: 'Changes the record that has the same values in the named fields, or adds one.',
      safety: 'REPEATABLE',
      input: object(
        {
          ...place,
          fields: values,
          keys: list(
            name('Field', 'The name of a field.'),
            'Keys',
            'The fields that say which record it is, at most 3.',
            {
              minItems: 1,
              maxItems: 3,
            },
          ),
          typecast,
        },
        ['base', 'table', 'fields', 'keys'],
      ),
      steps: [
        {
          name: 'upsert',
          method: 'PATCH',
          path: ROWS,
          body: {
            performUpsert: '{{ {"fieldsToMergeOn": $input.keys} }}',
            records: '{{ [{"fields": $input.fields}] }}',
            typecast: '{{ $input.typecast }}',
          },
        },
      ],
      result: '{{ $nodes.upsert.records[0] }}',
    },
    deleteRecord: {
      name: 'Delete a record',
      summary: 'Deletes a record.',
      safety: 'REPEATABLE',
      input: object({ ...place, ...one }, ['base', 'table', 'record']),
      steps: [{ name: 'delete', method: 'DELETE', path: `${ROWS}/{{ $input.record }}` }],
    },
  },
}
