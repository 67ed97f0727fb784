import * as v from 'valibot'
import { expect, test } from 'vitest'
import { NODES, type NodeTypeName } from '../../workflows/nodes.ts'

const messageOf = (type: NodeTypeName, config: unknown) => {
  const { issues } = v.safeParse(NODES[type].config as v.GenericSchema, config)
  return issues?.map((issue) => `${v.getDotPath(issue)}: ${issue.message}`).join('; ')
}

test('a value that may be computed is a template or passes its own check, which names the fault', () => {
  const cases: [NodeTypeName, Record<string, unknown>, string | undefined][] = [
    ['WAIT', { durationMs: '{{ $input.ms }}' }, undefined],
    ['WAIT', { durationMs: 0 }, undefined],
    ['WAIT', { durationMs: 'soon' }, 'durationMs: must be a number of milliseconds'],
    ['WAIT', { durationMs: -1 }, 'durationMs: must not be negative'],
    ['WAIT', { durationMs: 1.5 }, 'durationMs: must be a whole number of milliseconds'],
    ['WAIT', { durationMs: 367 * 86_400_000 }, 'durationMs: must be at most 366 days'],
    ['WAIT', { until: '2026-01-01T00:00:00Z' }, undefined],
    ['WAIT', { until: 'in {{ $input.n }} days' }, undefined],
    ['WAIT', { until: 'tomorrow' }, 'until: must be an ISO 8601 time'],
    ['FILTER', { items: [1, '{{ 2 }}'], condition: true }, undefined],
    ['FILTER', { items: 'none', condition: true }, 'items: must be an array or an expression in {{ }}'],
    ['FILTER', { items: {}, condition: true }, 'items: must be an array or an expression in {{ }}'],
    ['HTTP_REQUEST', { url: 'http://a', timeoutMs: true }, 'timeoutMs: must be a number of milliseconds'],
    ['HTTP_REQUEST', { url: 'http://a', timeoutMs: '{{ 5 }}' }, undefined],
    ['IF_ELSE', { condition: 5 }, 'condition: must be an expression or a boolean'],
    [
      'SWITCH',
      { cases: [{ handle: 'a b', condition: true }] },
      'cases.0.handle: must be 1 to 100 letters, digits, _ or -',
    ],
    ['SET', { values: [] }, 'values: must be an object'],
  ]
  for (const [type, config, message] of cases) {
    expect(messageOf(type, config), `${type} ${JSON.stringify(config)}`).toBe(message)
  }
  expect(messageOf('HTTP_REQUEST', { url: 'http://a', method: 'FETCH' })).toMatch(
    /^method: must be one of GET, /,
  )
  expect(messageOf('WAIT', {})).toMatch(/must hold either durationMs or until/)
})
