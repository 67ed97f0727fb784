import { expect, test } from 'vitest'
import { keep } from '../../support/keep.ts'
import { startRunning } from '../../support/running.ts'
import { startTarget } from '../../support/servers/target.ts'
import { createCondition, createDocument, editFields } from './documents.ts'

const host = await keep(startRunning())

// biome-ignore lint/suspicious/noExplicitAny: the tests read single fields of the answers
type Body = any

const split = (field: string) =>
  ['splitOut@1', { fieldToSplitOut: field, options: {} }] as [string, object & Record<string, unknown>]
const all: [string, Record<string, unknown>] = [
  'aggregate',
  { aggregate: 'aggregateAllItemData', destinationFieldName: 'all' },
]
const start: [string] = ['manualTrigger']

/** Imports the workflow and executes it with this data. */
async function importAndRun(workflow: object, data: Record<string, unknown>) {
  const name = `items ${crypto.randomUUID()}`
  const { id, report } = await host.ask<Body>('POST', '/api/workflows/import', {
    teamId: host.teamId,
    name,
    workflow,
  })
  const run = await host.ended(await host.execute(id, data))
  return { output: run.outputData, error: run.errorMessage, problems: report.problems, id }
}

async function expectOutput(workflow: object, data: Record<string, unknown>, output: unknown) {
  const played = await importAndRun(workflow, data)
  expect(played).toMatchObject({ error: null, problems: [] })
  expect(played.output).toEqual(output)
}

const list = { list: [{ n: 1 }, { n: 2 }, { n: 3 }] }

test('nodes behind a list run for each item, and their items can be collected again', () =>
  expectOutput(
    createDocument(
      {
        Start: start,
        Split: split('list'),
        Double: editFields({ n: '$json.n * 2', at: '$itemIndex' }),
        Tag: editFields({ tag: "=#{{ $json.n }} of {{ $('Split').item.json.n }}" }, true),
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

test('each item takes its branch, and a Merge node collects the items of both', () =>
  expectOutput(
    createDocument(
      {
        Start: start,
        Split: split('list'),
        'Big?': ['if@2', createCondition('$json.n', 'gt', 1)],
        Big: editFields({ big: '$json.n' }),
        Small: editFields({ small: '$json.n' }),
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

test('items that take a branch without nodes are dropped, and a branch may end beside another one', () =>
  expectOutput(
    createDocument(
      {
        Start: start,
        Split: split('list'),
        'Odd?': ['if@2', createCondition('$json.n % 2', 'equals', 1)],
        Kept: editFields({ kept: '$json.n' }),
        Aside: editFields({ aside: '$json.n' }),
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

test('each item takes its branch, and the branches meet again without a Merge node', () =>
  expectOutput(
    createDocument(
      {
        Start: start,
        Split: split('list'),
        'Big?': [
          'if',
          { conditions: { number: [{ value1: '={{ $json.n }}', operation: 'larger', value2: 1 }] } },
        ],
        Big: editFields({ size: '"big"' }, true),
        Small: editFields({ size: '"small"' }, true),
        Meet: ['noOp'],
        End: editFields({ end: '$json.size + $json.n' }),
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

test('lists are filtered, deduplicated, sorted, limited, renamed and summed up', () =>
  expectOutput(
    createDocument(
      {
        Start: start,
        Split: split('list'),
        Filter: ['filter@2', createCondition('$json.n', 'gte', 2)],
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

test('lists are merged by position, by field and in all combinations, or one of them is chosen', async () => {
  const merge = (parameters: Record<string, unknown>) =>
    createDocument(
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
  await expectOutput(merge({ mode: 'combine', combineBy: 'combineByPosition' }), data, {
    all: [
      { id: 2, a: 'x', b: 'q' },
      { id: 1, a: 'y', b: 'p' },
    ],
  })
  await expectOutput(merge({ mode: 'combine', fieldsToMatchString: 'id' }), data, {
    all: [
      { id: 1, a: 'x', b: 'p' },
      { id: 2, a: 'y', b: 'q' },
    ],
  })
  const crossed = await importAndRun(merge({ mode: 'combine', combineBy: 'combineAll' }), data)
  expect(crossed.output?.all).toHaveLength(4)
  await expectOutput(merge({ mode: 'chooseBranch', useDataOfInput: '2' }), data, { all: data.right })
})

test('a loop may have nodes in it that run for each item of an inner list', () =>
  expectOutput(
    createDocument(
      {
        Start: start,
        Split: split('list'),
        Loop: ['splitInBatches@3', {}],
        Parts: split('parts'),
        Part: editFields({ p: "$json.p + 100 * $('Loop').first().json.n" }),
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

test('dates, hashes and JSON become fields beside those of the item', () =>
  expectOutput(
    createDocument(
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
        Wrap: editFields({
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

test('fields have the types that Edit Fields gives them, whether they are literals, expressions or both', () => {
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
  return expectOutput(
    createDocument(
      {
        Start: start,
        Set: ['set@3.4', { assignments: { assignments } }],
        Raw: ['set@3.4', { mode: 'raw', jsonOutput: body }],
        Both: editFields({ set: "$('Set').item.json", raw: '$json' }),
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

test('a response that is read as text becomes a field of the item', async () => {
  const target = await startTarget()
  const url = `${target.url}/ok?key=text`
  const options = (more: object) => ({ response: { response: { responseFormat: 'text', ...more } } })
  await expectOutput(
    createDocument(
      {
        Start: start,
        Old: ['httpRequest@1', { url, responseFormat: 'string' }],
        New: ['httpRequest@4.2', { url, options: options({ outputPropertyName: 'page' }) }],
        Full: ['httpRequest@4.2', { url, options: options({ fullResponse: true }) }],
        All: editFields({
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

test('an expression that cannot be translated fails the node with its source', async () => {
  const workflow = createDocument(
    { Start: start, Set: editFields({ all: "={{ $('Start').all()[0].json.n }}" }) },
    'Start -> Set',
  )
  const { error, problems } = await importAndRun(workflow, { n: 1 })
  expect(error).toContain(`reads all items of "Start": $('Start').all()[0].json.n`)
  expect(problems).toHaveLength(1)
})

test('a node continues after an error if n8n says so, and a disabled node passes its input on', async () => {
  const url = 'http://127.0.0.1:1/'
  const error = editFields({ why: '$json.error.message.length > 3', again: "$('Off').item.json.n" })
  const handled = (onError: string) =>
    createDocument(
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
  await expectOutput(handled('continueErrorOutput'), { n: 4 }, { why: true, again: 4 })
  await expectOutput(handled('continueRegularOutput'), { n: 4 }, { why: true, again: 4 })
})

test('a node that is to execute once runs for the first item only', () =>
  expectOutput(
    createDocument(
      {
        Start: start,
        Split: split('list'),
        Once: [editFields({})[0], editFields({ n: '$json.n' })[1], { executeOnce: true }],
      },
      'Start -> Split',
      'Split -> Once',
    ),
    list,
    { n: 1 },
  ))

test('a node without counterpart fails the execution, and everything that differs is reported', async () => {
  const workflow = createDocument(
    {
      Start: start,
      Gmail: [
        'gmail@2',
        { resource: 'message' },
        { credentials: { gmailOAuth2: { id: '7', name: 'Mail' } }, onError: 'continueRegularOutput' },
      ],
      Set: editFields({ home: '$env.HOME' }),
      'Fine?': ['if@2', createCondition('$json.x', 'equals', 1)],
      Both: editFields({ both: '$json' }),
    },
    'Start -> Gmail',
    'Gmail -> Set',
    'Start -> Both',
    'Set -> Both',
    'Both -> Fine?',
    'Fine?:1 -> Both',
  )
  const { error, problems } = await importAndRun(
    { ...workflow, pinData: { Set: [{ json: {} }] }, settings: { errorWorkflow: 'x9' } },
    {},
  )
  expect(error).toContain('The n8n node "Gmail" (n8n-nodes-base.gmail) was not imported')
  const reported = problems.map(({ node, kind, path }: Body) => `${node} ${kind} ${path}`)
  expect(reported.sort()).toEqual(
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
