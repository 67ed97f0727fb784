import { expect, test } from 'vitest'
import { keep } from '../../support/keep.ts'
import { nodeOf, shareRunning } from '../../support/running.ts'

const running = await keep(shareRunning())

const ID = '9007199254740993'

test('SET says in its record when a text of digits becomes another number', async () => {
  const fields = [
    { name: 'id', type: 'number', value: '{{ $input.id }}' },
    { name: 'even', type: 'number', value: '-9007199254740994' },
    { name: 'small', type: 'number', value: '42' },
    { name: 'kept', type: 'any', value: '{{ $input.id }}' },
    { name: 'vast', type: 'number', value: '9'.repeat(400) },
  ]
  const run = await running.run(
    {
      nodes: [
        { id: 'start', type: 'MANUAL_TRIGGER' },
        { id: 'set', type: 'SET', config: { fields } },
      ],
      edges: [{ source: 'start', target: 'set' }],
    },
    { id: ID },
  )
  const node = nodeOf(run, 'set')
  expect(node.outputData).toEqual({
    id: 9_007_199_254_740_992,
    even: -9_007_199_254_740_994,
    small: 42,
    kept: ID,
    vast: null,
  })
  expect(node.warnings).toEqual([
    {
      path: 'config.fields',
      message: '1 number is too large for JavaScript to hold exactly, at the key "id": it was rounded',
    },
    { path: 'config.fields', message: 'The value of "vast" is too large for a number: it becomes null' },
  ])
})

test('conditions compare texts of digits as the numbers that they are', async () => {
  const near = '9007199254740992'
  const tests: [left: string, operation: string, right: unknown, holds: boolean][] = [
    [ID, 'equals', near, false],
    [ID, 'equals', ID, true],
    [` ${ID} `, 'equals', ID, true],
    [ID, 'notEquals', near, true],
    [ID, 'gt', near, true],
    [ID, 'lte', near, false],
    [ID, 'equals', 9_007_199_254_740_992, false],
    [ID, 'gt', 17, true],
    [`-${ID}`, 'lt', `-${near}`, true],
    ['17', 'equals', 17, true],
  ]
  const run = await running.run({
    nodes: [
      { id: 'start', type: 'MANUAL_TRIGGER' },
      ...tests.map(([left, operation, right], at) => ({
        id: `if${at}`,
        type: 'IF_ELSE',
        config: {
          conditions: {
            combinator: 'and',
            types: 'loose',
            conditions: [{ left, operator: { type: 'number', operation }, right }],
          },
        },
      })),
    ],
    edges: tests.map((_, at) => ({ source: 'start', target: `if${at}` })),
  })
  expect(tests.map((_, at) => nodeOf(run, `if${at}`).handle)).toEqual(
    tests.map(([, , , holds]) => String(holds)),
  )
})
