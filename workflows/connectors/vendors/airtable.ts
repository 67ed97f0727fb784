import type { Connector } from '../connector.ts'
import {
  choiceInput,
  flagInput,
  limitInput,
  listInput,
  nameInput,
  objectInput,
  recordInput,
  textInput,
} from '../schemas.ts'

const place = {
  base: nameInput('Base', 'The base: its id, which begins with app.', { 'x-options': 'bases' }),
  table: nameInput('Table', 'The table: its id, which begins with tbl, or its name.', {
    'x-options': 'tables',
  }),
}
const one = {
  record: nameInput('Record', 'The id of the record, which begins with rec.'),
}
const typecast = flagInput(
  'Convert values',
  'Airtable makes values fit their fields, and adds options that are missing.',
)
const values = recordInput('Fields', 'The values of the record, by the names of its fields.')
const records = listInput(
  objectInput({ fields: values }, ['fields']),
  'Records',
  'The records, each with its fields. At most 10 at once.',
  { minItems: 1, maxItems: 10 },
)

const skipEmpty = flagInput(
  'Skip empty values',
  'Fields whose value is null stay as they are, and are not emptied.',
)
const keys = listInput(
  nameInput('Field', 'The name of a field.'),
  'Keys',
  'The fields that say which record it is, at most 3.',
  { minItems: 1, maxItems: 3 },
)

const ROWS = '/v0/{{ $input.base }}/{{ $input.table }}'
const filled = (fields: string) =>
  `($input.skipEmpty ? $merge([{}, $sift(${fields}, function($v) { $v != null })]) : ${fields})`
const FIELDS = filled('$input.fields')
const write = { fields: `{{ ${FIELDS} }}`, typecast: '{{ $input.typecast }}' }
/** The records of which one value, or one of several values, is that of the input for each key. */
const MATCHES =
  '($given := $input.fields; $keys := $input.keys; $found := $filter($nodes.find, function($row) {' +
  '$count($filter($keys, function($key) {($lookup($given, $key)) in [$lookup($row.fields, $key)]})) = $count($keys)' +
  '}); $count($found) = 0 ? $error("No record has these values") : $found)'

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
      input: objectInput(
        {
          ...place,
          filterByFormula: textInput(
            'Formula',
            "Only the records for which it holds, such as {Status} = 'Open'.",
          ),
          view: textInput('View', 'Only the records of this view, in its order: its name or its id.'),
          fields: listInput(
            textInput('Field', 'The name of a field.'),
            'Fields',
            'Only these fields of the records.',
          ),
          sort: listInput(
            objectInput(
              {
                field: nameInput('Field', 'The field to sort by.'),
                direction: choiceInput(['asc', 'desc'], 'Direction', 'Ascending unless it is desc.'),
              },
              ['field'],
            ),
            'Sort',
            'What the records are sorted by.',
          ),
          limit: limitInput(),
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
      input: objectInput({ ...place, ...one }, ['base', 'table', 'record']),
      steps: [{ name: 'get', method: 'GET', path: `${ROWS}/{{ $input.record }}` }],
    },
    createRecord: {
      name: 'Create a record',
      summary: 'Adds a record to a table.',
      safety: 'ONCE',
      input: objectInput({ ...place, fields: values, typecast, skipEmpty }, ['base', 'table', 'fields']),
      steps: [{ name: 'create', method: 'POST', path: ROWS, body: write }],
    },
    createRecords: {
      name: 'Create records',
      summary: 'Adds up to 10 records to a table.',
      safety: 'ONCE',
      input: objectInput({ ...place, records, typecast }, ['base', 'table', 'records']),
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
      input: objectInput({ ...place, ...one, fields: values, typecast, skipEmpty }, [
        'base',
        'table',
        'record',
        'fields',
      ]),
      steps: [{ name: 'update', method: 'PATCH', path: `${ROWS}/{{ $input.record }}`, body: write }],
    },
    updateRecords: {
      name: 'Update records',
      summary: 'Changes the named fields of up to 10 records; the others stay.',
      safety: 'REPEATABLE',
      input: objectInput(
        {
          ...place,
          records: listInput(
            objectInput({ id: one.record, fields: values }, ['id', 'fields']),
            'Records',
            'The records, each with its id and its new values. At most 10 at once.',
            { minItems: 1, maxItems: 10 },
          ),
          typecast,
        },
        ['base', 'table', 'records'],
      ),
      steps: [
        {
          name: 'update',
          method: 'PATCH',
          path: ROWS,
          body: { records: '{{ $input.records }}', typecast: '{{ $input.typecast }}' },
        },
      ],
      result: '{{ $nodes.update.records }}',
    },
    updateMatching: {
      name: 'Update records that match',
      summary:
        'Finds the records that have the same values in the named fields, and changes their other fields.',
      safety: 'REPEATABLE',
      input: objectInput(
        {
          ...place,
          fields: values,
          keys,
          all: flagInput('All', 'Changes all records that match, at most 10, and not the first one alone.'),
          typecast,
          skipEmpty,
        },
        ['base', 'table', 'fields', 'keys'],
      ),
      steps: [
        {
          name: 'find',
          method: 'POST',
          path: `${ROWS}/listRecords`,
          body: { fields: '{{ $input.keys }}', pageSize: 100 },
          pages: { items: '$item.records', next: '$item.offset', into: { body: 'offset' } },
        },
        {
          name: 'update',
          method: 'PATCH',
          path: ROWS,
          body: {
            records:
              `{{ ($found := ${MATCHES}; $new := $merge([{}, $sift(${FIELDS}, function($v, $k) { $not($k in $input.keys) })]); ` +
              '$count($found) > 10 and $input.all ? $error("More than 10 records have these values") : ' +
              '[($input.all ? $found : $found[0]).{"id": id, "fields": $new}]) }}',
            typecast: '{{ $input.typecast }}',
          },
        },
      ],
      result: '{{ $nodes.update.records }}',
    },
    upsertRecord: {
      name: 'Create or update a record',
      summary: 'Changes the record that has the same values in the named fields, or adds one.',
      safety: 'REPEATABLE',
      input: objectInput({ ...place, fields: values, keys, typecast, skipEmpty }, [
        'base',
        'table',
        'fields',
        'keys',
      ]),
      steps: [
        {
          name: 'upsert',
          method: 'PATCH',
          path: ROWS,
          body: {
            performUpsert: '{{ {"fieldsToMergeOn": $input.keys} }}',
            records: `{{ [{"fields": ${FIELDS}}] }}`,
            typecast: '{{ $input.typecast }}',
          },
        },
      ],
      result: '{{ $nodes.upsert.records[0] }}',
    },
    updateOrCreateRecord: {
      name: 'Update a record, or create it',
      summary: 'Changes the record that has the id, or adds one if there is none.',
      safety: 'ONCE',
      input: objectInput(
        {
          ...place,
          record: textInput('Record', 'The id of the record; without it one is added.'),
          fields: values,
          typecast,
          skipEmpty,
        },
        ['base', 'table', 'fields'],
      ),
      steps: [
        {
          name: 'update',
          when: '$length($input.record) > 0',
          method: 'PATCH',
          path: `${ROWS}/{{ $input.record }}`,
          body: write,
          takes: [404, 422],
        },
        {
          name: 'create',
          when: '$not($exists($args.update)) or $args.update.status >= 400',
          method: 'POST',
          path: ROWS,
          body: write,
        },
      ],
      result: '{{ $exists($nodes.create) ? $nodes.create : $nodes.update }}',
    },
    deleteRecord: {
      name: 'Delete a record',
      summary: 'Deletes a record.',
      safety: 'REPEATABLE',
      input: objectInput({ ...place, ...one }, ['base', 'table', 'record']),
      steps: [{ name: 'delete', method: 'DELETE', path: `${ROWS}/{{ $input.record }}`, done: [404] }],
      result: '{{ {"id": $input.record, "deleted": true} }}',
    },
    listBases: {
      name: 'List bases',
      summary: 'Reads which bases there are for the account.',
      safety: 'REPEATABLE',
      input: objectInput({ limit: limitInput() }),
      steps: [
        {
          name: 'bases',
          method: 'GET',
          path: '/v0/meta/bases',
          pages: {
            items: '$item.bases',
            next: '$item.offset',
            into: { query: 'offset' },
            limit: '$input.limit',
          },
        },
      ],
    },
    listTables: {
      name: 'List tables',
      summary: 'Reads the tables of a base, with their fields and their views.',
      safety: 'REPEATABLE',
      input: objectInput({ base: place.base }, ['base']),
      steps: [{ name: 'tables', method: 'GET', path: '/v0/meta/bases/{{ $input.base }}/tables' }],
      result: '{{ $nodes.tables.tables }}',
    },
    listComments: {
      name: 'List comments',
      summary: 'Reads what people have said of a record, the newest first.',
      safety: 'REPEATABLE',
      input: objectInput({ ...place, ...one, limit: limitInput() }, ['base', 'table', 'record']),
      steps: [
        {
          name: 'comments',
          method: 'GET',
          path: `${ROWS}/{{ $input.record }}/comments`,
          pages: {
            items: '$item.comments',
            next: '$item.offset',
            into: { query: 'offset' },
            limit: '$input.limit',
          },
        },
      ],
    },
    createComment: {
      name: 'Comment on a record',
      summary: 'Adds a comment to a record.',
      safety: 'ONCE',
      input: objectInput({ ...place, ...one, text: nameInput('Text', 'What is said.') }, [
        'base',
        'table',
        'record',
        'text',
      ]),
      steps: [
        {
          name: 'comment',
          method: 'POST',
          path: `${ROWS}/{{ $input.record }}/comments`,
          body: { text: '{{ $input.text }}' },
        },
      ],
    },
  },
}
