import * as v from 'valibot'
import { expect, test } from 'vitest'
import { NODES, type NodeTypeName } from '../../../workflows/nodes/nodes.ts'
import { describeIssues } from '../../../workflows/problem.ts'

const messageOf = (type: NodeTypeName, config: unknown) => {
  const { issues } = v.safeParse(NODES[type].config as v.GenericSchema, config)
  return (
    issues &&
    describeIssues(issues, '')
      .map(({ path, message }) => `${path}: ${message}`)
      .join('; ')
  )
}

test('a computed field takes a template or a valid value, and says what is wrong with any other', () => {
  const cases: [NodeTypeName, Record<string, unknown>, string | undefined][] = [
    ['WAIT', { durationMs: '{{ $input.ms }}' }, undefined],
    ['WAIT', { durationMs: 0 }, undefined],
    ['WAIT', { durationMs: 'soon' }, 'durationMs: must be a number of milliseconds, not a string'],
    ['WAIT', { durationMs: -1 }, 'durationMs: must not be negative'],
    ['WAIT', { durationMs: 1.5 }, 'durationMs: must be a whole number of milliseconds, not 1.5'],
    ['WAIT', { durationMs: 367 * 86_400_000 }, 'durationMs: must be at most 366 days, not 31708800000'],
    ['WAIT', { until: '2026-01-01T00:00:00Z' }, undefined],
    ['WAIT', { until: 'in {{ $input.n }} days' }, undefined],
    ['WAIT', { until: 'tomorrow' }, 'until: must be an ISO 8601 time'],
    ['FILTER', { items: [1, '{{ 2 }}'], condition: true }, undefined],
    [
      'FILTER',
      { items: 'none', condition: true },
      'items: must be an array or an expression in {{ }}, not a string',
    ],
    [
      'FILTER',
      { items: {}, condition: true },
      'items: must be an array or an expression in {{ }}, not an object',
    ],
    [
      'HTTP_REQUEST',
      { url: 'http://a', timeoutMs: true },
      'timeoutMs: must be a number of milliseconds, not a boolean',
    ],
    ['HTTP_REQUEST', { url: 'http://a', timeoutMs: '{{ 5 }}' }, undefined],
    ['IF_ELSE', { condition: 5 }, 'condition: must be an expression or a boolean, not a number'],
    [
      'SWITCH',
      { cases: [{ handle: 'a b', condition: true }] },
      'cases[0].handle: must be 1 to 100 letters, digits, _ or -',
    ],
    ['SET', { values: [] }, 'values: must be an object, not an array'],
    [
      'DEDUPLICATE',
      { items: [], by: ['a', 5] },
      'by[1]: must be a field of the items, or an expression in {{ }}, not a number',
    ],
    ['DEDUPLICATE', { items: [], by: 5 }, 'by: must be a field or an array of fields, not a number'],
    ['SORT', { items: [], by: ['a', {}] }, 'by[1]: must be a field or {key, order}, not an object'],
  ]
  for (const [type, config, message] of cases) {
    expect(messageOf(type, config), `${type} ${JSON.stringify(config)}`).toBe(message)
  }
  expect(messageOf('HTTP_REQUEST', { url: 'http://a', method: 'FETCH' })).toMatch(
    /^method: must be one of GET, /,
  )
  expect(messageOf('WAIT', {})).toMatch(/must have exactly one of durationMs and until/)
})
