import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Running, startRunning } from '../running.ts'
import { startTarget } from '../target.ts'
import { fields, n8n, when } from './shapes.ts'

let host: Running
beforeAll(async () => {
  host = await startRunning()
})
afterAll(() => host.stop())

// biome-ignore lint/suspicious/noExplicitAny: answers are read field by field
type Body = any

const split = (field: string) =>
  ['splitOut@1', { fieldToSplitOut: field, options: {} }] as [string, object & Record<string, unknown>]
const all: [string, Record<string, unknown>] = [
  'aggregate',
  { aggregate: 'aggregateAllItemData', destinationFieldName: 'all' },
]
const start: [string] = ['manualTrigger']

/** Imports, runs, and gives what came out, with what was reported. */
async function play(workflow: object, data: Record<string, unknown>) {
  const name = `items ${crypto.randomUUID()}`
  const { id, report } = await host.ask<Body>('POST', '/api/workflows/import', {
    teamId: host.teamId,
    name,
    workflow,
  })
  const run = await host.ended(await host.execute(id, data))
  return { output: run.outputData, error: run.errorMessage, problems: report.problems, id }
}

async function same(workflow: object, data: Record<string, unknown>, output: unknown) {
  const played = await play(workflow, data)
  expect(played).toMatchObject({ error: null, problems: [] })
  expect(played.output).toEqual(output)
}

const list = { list: [{ n: 1 }, { n: 2 }, { n: 3 }] }

test('what runs for each item, and is collected again', () =>
  same(
    n8n(
      {
        Start: start,
        Split: split('list'),
        Double: fields({ n: '$json.n * 2', at: '$itemIndex' }),
        Tag: fields({ tag: "=#{{ $json.n }} of {{ $('Split').item.json.n }}" }, true),
        All: all,
      },
      'Start -> Split',
      'Split -> Double',
      'Double -> Tag',
      'Tag -> All',
    ),
    list,
    { all: [1, 2, 3].map((n, at) => ({ n: n * 2, at, tag: `#${n * 2} of ${n}` })) },
  ))

test('branches for each item that meet in a Merge', () =>
  same(
    n8n(
      {
        Start: start,
        Split: split('list'),
        'Big?': ['if@2', when('$json.n', 'gt', 1)],
        Big: fields({ big: '$json.n' }),
        Small: fields({ small: '$json.n' }),
        Merge: ['merge@3', {}],
        All: all,
      },
      'Start -> Split',
      'Split -> Big?',
      'Big?:0 -> Big',
      'Big?:1 -> Small',
      'Big -> Merge:0',
      'Small -> Merge:1',
      'Merge -> All',
    ),
    list,
    { all: [{ big: 2 }, { big: 3 }, { small: 1 }] },
  ))

test('a branch that drops items, and one beside it that ends', () =>
  same(
    n8n(
      {
        Start: start,
        Split: split('list'),
        'Odd?': ['if@2', when('$json.n % 2', 'equals', 1)],
        Kept: fields({ kept: '$json.n' }),
        Aside: fields({ aside: '$json.n' }),
        All: all,
      },
      'Start -> Split',
      'Split -> Odd?',
      'Odd?:0 -> Kept',
      'Odd?:0 -> Aside',
      'Kept -> All',
    ),
    list,
    { all: [{ kept: 1 }, { kept: 3 }] },
  ))

test('branches for each item that meet again', () =>
  same(
    n8n(
      {
        Start: start,
        Split: split('list'),
        'Big?': [
          'if',
          { conditions: { number: [{ value1: '={{ $json.n }}', operation: 'larger', value2: 1 }] } },
        ],
        Big: fields({ size: '"big"' }, true),
        Small: fields({ size: '"small"' }, true),
        Meet: ['noOp'],
        End: fields({ end: '$json.size + $json.n' }),
        All: all,
      },
      'Start -> Split',
      'Split -> Big?',
      'Big?:0 -> Big',
      'Big?:1 -> Small',
      'Big -> Meet',
      'Small -> Meet',
      'Meet -> End',
      'End -> All',
    ),
    list,
    { all: [{ end: 'small1' }, { end: 'big2' }, { end: 'big3' }] },
  ))

test('lists: filter, sort, limit, duplicates, renamed keys, sums', () =>
  same(
    n8n(
      {
        Start: start,
        Split: split('list'),
        Filter: ['filter@2', when('$json.n', 'gte', 2)],
        Unique: ['removeDuplicates', { compare: 'selectedFields', fieldsToCompare: 'n' }],
        Sort: ['sort', { sortFieldsUi: { sortField: [{ fieldName: 'n', order: 'descending' }] } }],
        Limit: ['limit', { maxItems: 2 }],
        Rename: ['renameKeys', { keys: { key: [{ currentKey: 'n', newKey: 'number' }] } }],
        Sum: [
          'summarize',
          {
            fieldsToSummarize: {
              values: [
                { aggregation: 'sum', field: 'number' },
                { aggregation: 'append', field: 'number' },
              ],
            },
          },
        ],
      },
      ...[
        'Start -> Split',
        'Split -> Filter',
        'Filter -> Unique',
        'Unique -> Sort',
        'Sort -> Limit',
        'Limit -> Rename',
        'Rename -> Sum',
      ],
    ),
    { list: [{ n: 5 }, { n: 1 }, { n: 2 }, { n: 9 }, { n: 5 }] },
    { sum_number: 14, appended_number: [9, 5] },
  ))

test('merges of lists by position, by field, and of all with all', async () => {
  const merge = (parameters: Record<string, unknown>) =>
    n8n(
      { Start: start, Left: split('left'), Right: split('right'), Merge: ['merge@3', parameters], All: all },
      'Start -> Left',
      'Start -> Right',
      'Left -> Merge:0',
      'Right -> Merge:1',
      'Merge -> All',
    )
  const data = {
    left: [
      { id: 1, a: 'x' },
      { id: 2, a: 'y' },
    ],
    right: [
      { id: 2, b: 'q' },
      { id: 1, b: 'p' },
    ],
  }
  await same(merge({ mode: 'combine', combineBy: 'combineByPosition' }), data, {
    all: [
      { id: 2, a: 'x', b: 'q' },
      { id: 1, a: 'y', b: 'p' },
    ],
  })
  await same(merge({ mode: 'combine', fieldsToMatchString: 'id' }), data, {
    all: [
      { id: 1, a: 'x', b: 'p' },
      { id: 2, a: 'y', b: 'q' },
    ],
  })
  const crossed = await play(merge({ mode: 'combine', combineBy: 'combineAll' }), data)
  expect(crossed.output?.all).toHaveLength(4)
  await same(merge({ mode: 'chooseBranch', useDataOfInput: '2' }), data, { all: data.right })
})

test('a loop in a loop, and what is done for each item in it', () =>
  same(
    n8n(
      {
        Start: start,
        Split: split('list'),
        Loop: ['splitInBatches@3', {}],
        Parts: split('parts'),
        Part: fields({ p: "$json.p + 100 * $('Loop').first().json.n" }),
        Joined: all,
        All: all,
      },
      'Start -> Split',
      'Split -> Loop',
      'Loop:1 -> Parts',
      'Parts -> Part',
      'Part -> Joined',
      'Joined -> Loop',
      'Loop:0 -> All',
    ),
    { list: [{ n: 1, parts: [{ p: 1 }, { p: 2 }] }] },
    { all: [{ all: [{ p: 101 }, { p: 102 }] }] },
  ))

test('dates, hashes and fields beside what is there', () =>
  same(
    n8n(
      {
        Start: start,
        Later: [
          'dateTime@2',
          {
            operation: 'addToDate',
            magnitude: '={{ $json.at }}',
            duration: 2,
            timeUnit: 'days',
            outputFieldName: 'later',
            options: { includeInputFields: true },
          },
        ],
        Hash: ['crypto', { type: 'SHA256', value: '={{ $json.at }}', dataPropertyName: 'hash' }],
        Raw: [
          'set@3.4',
          {
            mode: 'raw',
            jsonOutput: '={ "year": {{ $json.at.slice(0, 4) }}, "say": "in {{ $json.at.slice(0, 4) }}" }',
            includeOtherFields: true,
          },
        ],
        Wrap: fields({
          'a.b': '$json.say',
          keep: '$json.hash.length',
          later: '$json.later.slice(0, 10)',
          year: '$json.year',
        }),
      },
      ...['Start -> Later', 'Later -> Hash', 'Hash -> Raw', 'Raw -> Wrap'],
    ),
    { at: '2026-01-30' },
    { a: { b: 'in 2026' }, keep: 64, later: '2026-02-01', year: '2026' },
  ))

test('fields are of the kind that they say, whatever their text is made of', () => {
  const kinds: [name: string, type: string, value: string][] = [
    ['five', 'number', '=5'],
    ['seventy', 'number', '={{ $json.n }}{{ $json.zero }}'],
    ['yes', 'boolean', '=true'],
    ['list', 'array', '=[1, {{ $json.n }}]'],
    ['object', 'object', '={"n": {{ $json.n }}, "of": {"n": {{ $json.n }}}}'],
    ['nothing', 'string', '={{ $json.nothing }}'],
    ['of', 'string', '={{ {of: {n: $json.n}} }}'],
    ['equals', 'string', '==1'],
    ['text', 'string', '={"n": {{ $json.n }}}'],
  ]
  const assignments = kinds.map(([name, type, value]) => ({ name, type, value }))
  const body = '={"n": {{ $json.object.of.n }}, "nothing": "{{ $json.nothing }}", "none": "{{ $json.none }}"}'
  return same(
    n8n(
      {
        Start: start,
        Set: ['set@3.4', { assignments: { assignments } }],
        Raw: ['set@3.4', { mode: 'raw', jsonOutput: body }],
        Both: fields({ set: "$('Set').item.json", raw: '$json' }),
      },
      ...['Start -> Set', 'Set -> Raw', 'Raw -> Both'],
    ),
    { n: 7, zero: 0, nothing: null },
    {
      set: {
        ...{ five: 5, seventy: 70, yes: true, list: [1, 7], object: { n: 7, of: { n: 7 } }, nothing: null },
        ...{ of: '{"of":{"n":7}}', equals: '=1', text: '{"n": 7}' },
      },
      raw: { n: 7, nothing: '', none: '' },
    },
  )
})

test('an answer that is read as a text stands in its field', async () => {
  const target = await startTarget()
  const url = `${target.url}/ok?key=text`
  const options = (more: object) => ({ response: { response: { responseFormat: 'text', ...more } } })
  await same(
    n8n(
      {
        Start: start,
        Old: ['httpRequest@1', { url, responseFormat: 'string' }],
        New: ['httpRequest@4.2', { url, options: options({ outputPropertyName: 'page' }) }],
        Full: ['httpRequest@4.2', { url, options: options({ fullResponse: true }) }],
        All: fields({
          old: "$('Old').item.json.data.slice(0, 5)",
          new: "$('New').item.json.page.slice(0, 5)",
          full: '$json.statusCode + $json.data.slice(0, 5)',
        }),
      },
      ...['Start -> Old', 'Old -> New', 'New -> Full', 'Full -> All'],
    ),
    {},
    { old: '{"ok"', new: '{"ok"', full: '200{"ok"' },
  )
  await target.stop()
})

test('an expression without counterpart says what it was', async () => {
  const workflow = n8n(
    { Start: start, Set: fields({ all: "={{ $('Start').all()[0].json.n }}" }) },
    'Start -> Set',
  )
  const { error, problems } = await play(workflow, { n: 1 })
  expect(error).toContain(`reads all items of "Start": $('Start').all()[0].json.n`)
  expect(problems).toHaveLength(1)
})

test('errors that are handled, and nodes that are switched off', async () => {
  const url = 'http://127.0.0.1:1/'
  const error = fields({ why: '$json.error.message.length > 3', again: "$('Off').item.json.n" })
  const handled = (onError: string) =>
    n8n(
      {
        Start: start,
        Off: ['httpRequest@4', { url }, { disabled: true }],
        Call: ['httpRequest@4', { url }, { onError }],
        After: error,
      },
      'Start -> Off',
      'Off -> Call',
      onError === 'continueErrorOutput' ? 'Call:1 -> After' : 'Call -> After',
    )
  await same(handled('continueErrorOutput'), { n: 4 }, { why: true, again: 4 })
  await same(handled('continueRegularOutput'), { n: 4 }, { why: true, again: 4 })
})

test('only the first of many where a node says so', () =>
  same(
    n8n(
      {
        Start: start,
        Split: split('list'),
        Once: [fields({})[0], fields({ n: '$json.n' })[1], { executeOnce: true }],
      },
      'Start -> Split',
      'Split -> Once',
    ),
    list,
    { n: 1 },
  ))

test('what cannot be taken over stops the run where it is due, and is reported with its original', async () => {
  const workflow = n8n(
    {
      Start: start,
      Gmail: [
        'gmail@2',
        { resource: 'message' },
        { credentials: { gmailOAuth2: { id: '7', name: 'Mail' } }, onError: 'continueRegularOutput' },
      ],
      Set: fields({ home: '$env.HOME' }),
      'Fine?': ['if@2', when('$json.x', 'equals', 1)],
      Both: fields({ both: '$json' }),
    },
    'Start -> Gmail',
    'Gmail -> Set',
    'Start -> Both',
    'Set -> Both',
    'Both -> Fine?',
    'Fine?:1 -> Both',
  )
  const { error, problems } = await play(
    { ...workflow, pinData: { Set: [{ json: {} }] }, settings: { errorWorkflow: 'x9' } },
    {},
  )
  expect(error).toContain('The n8n node "Gmail" (n8n-nodes-base.gmail) was not imported')
  const told = problems.map(({ node, kind, path }: Body) => `${node} ${kind} ${path}`)
  expect(told.sort()).toEqual(
    [
      'Gmail node type',
      'Gmail credential credentials.gmailOAuth2',
      'Set expression parameters.assignments.assignments[0].value',
      'Set pinned pinData.Set',
      'Fine? connection main[1]',
      'Both connection connections',
      'null setting settings.errorWorkflow',
    ].sort(),
  )
  const missing = problems.find(({ path }: Body) => path === 'type')
  expect(missing.original).toMatchObject({
    type: 'n8n-nodes-base.gmail',
    parameters: { resource: 'message' },
  })
})
