import { expect, test } from 'vitest'
import { findUnknownKeys } from '../../../workflows/graph/advice/unknown.ts'
import { checkActivation } from '../../../workflows/graph/check.ts'
import { findStart, type Graph, MAX_EDGES, MAX_NODES } from '../../../workflows/graph/graph.ts'
import { readGraph } from '../../../workflows/graph/read.ts'
import { atOnce } from '../../support/atonce.ts'
import { examples } from '../../support/engine/graphs.ts'

let made = 0
const makeId = () => `made-${++made}`
const read = (nodes: unknown, edges: unknown = []) => atOnce(readGraph({ nodes, edges }, makeId))

/** The problems as lines of `path: message`. */
const faults = (nodes: unknown, edges: unknown = []) =>
  read(nodes, edges).problems.map(({ path, message }) => `${path}: ${message}`)

const start = { id: 'start', type: 'MANUAL_TRIGGER' }
const noop = (id: string, more = {}) => ({ id, type: 'NO_OP', ...more })
const edge = (source: string, target: string, sourceHandle: string | null = null) => ({
  source,
  target,
  sourceHandle,
})

test('reading a graph fills in defaults, takes data as config, and drops unknown keys', () => {
  const { graph, problems } = read(
    [
      { id: 'a', type: 'WEBHOOK_TRIGGER', data: { path: 'in' }, selected: true, width: 10 },
      {
        type: 'SET',
        name: 'Values',
        config: { values: { constructor: 1, deep: { prototype: [2] } }, colour: 'red' },
        data: { label: 'x' },
        position: { x: 1, y: 2.5, z: 3 },
        retry: { maxAttempts: 2, foo: 1 },
        timeoutMs: 5,
        onError: 'BRANCH',
        disabled: true,
      },
      {
        id: 'c',
        type: 'NO_OP',
        name: null,
        position: null,
        parentId: null,
        retry: null,
        disabled: false,
        onError: null,
      },
    ],
    [
      { id: 'e', source: 'a', target: 'c', animated: true },
      { source: 'a', target: 'c', targetHandle: 'left' },
    ],
  )
  expect(problems).toEqual([])
  expect(graph).toEqual({
    nodes: [
      {
        id: 'a',
        type: 'WEBHOOK_TRIGGER',
        name: 'Webhook trigger 1',
        config: { path: 'in', method: 'POST' },
        onError: 'FAIL',
      },
      {
        id: `made-${made}`,
        type: 'SET',
        name: 'Values',
        config: { values: { constructor: 1, deep: { prototype: [2] } } },
        position: { x: 1, y: 2.5 },
        retry: { maxAttempts: 2 },
        timeoutMs: 5,
        onError: 'BRANCH',
        disabled: true,
      },
      { id: 'c', type: 'NO_OP', name: 'No op 1', config: {}, onError: 'FAIL', disabled: false },
    ],
    edges: [
      { id: 'e', source: 'a', target: 'c', sourceHandle: null },
      { source: 'a', target: 'c', sourceHandle: null, targetHandle: 'left' },
    ],
  })
})

test('a graph that has been read reads the same again', () => {
  const { graph } = read(
    [start, noop('a', { retry: { maxAttempts: 3 }, position: { x: 0, y: 0 } })],
    [edge('start', 'a')],
  )
  expect(read(graph.nodes, graph.edges)).toMatchObject({ graph, problems: [] })
})

test('missing nodes and edges make an empty graph', () => {
  expect(atOnce(readGraph({}, makeId))).toEqual({
    graph: { nodes: [], edges: [] },
    problems: [],
    warnings: [],
  })
  expect(atOnce(readGraph({ nodes: null, edges: null }, makeId)).problems).toEqual([])
})

test('refuses input that is not a graph', () => {
  expect(faults({}, 'x')).toEqual([
    'nodes: must be an array, not an object',
    'edges: must be an array, not a string',
  ])
  expect(faults([null, 1, []], [null, 'x'])).toEqual([
    'nodes[0]: must be an object',
    'nodes[1]: must be an object',
    'nodes[2]: must be an object',
    'edges[0]: must be an object',
    'edges[1]: must be an object',
  ])
})

test.each(['', 'a b', 'ä', 'x'.repeat(101), '__proto__', 'prototype', 'constructor', 7, 'a/b'])(
  'refuses the id %j',
  (id) => {
    expect(read([{ id, type: 'NO_OP' }]).problems.map((p) => p.path)).toEqual(['nodes[0].id'])
  },
)

test('refuses unknown types, among them names of Object.prototype', () => {
  for (const type of ['NOPE', 'toString', '__proto__', 'constructor', '']) {
    expect(read([{ id: 'a', type }]).problems).toEqual([
      { path: 'nodes[0].type', message: expect.stringContaining('must be one of MANUAL_TRIGGER') },
    ])
  }
  expect(faults([{ id: 'a' }])).toEqual(['nodes[0].type: is required'])
  expect(faults([{ id: 'a', type: 3 }])).toEqual(['nodes[0].type: must be a string, not a number'])
})

test('names every problem of a node at once, each with its path', () => {
  const bad = {
    id: 'a',
    type: 'NO_OP',
    name: 'x'.repeat(201),
    config: [],
    position: { x: '1' },
    retry: { maxAttempts: 0, initialIntervalMs: 1.5, backoffCoefficient: 0.5, maxIntervalMs: 1e12 },
    timeoutMs: -1,
    onError: 'IGNORE',
    disabled: 'no',
  }
  expect(read([start, bad]).problems.map(({ path }) => path)).toEqual([
    'nodes[1].name',
    'nodes[1].position.x',
    'nodes[1].position.y',
    'nodes[1].retry.maxAttempts',
    'nodes[1].retry.initialIntervalMs',
    'nodes[1].retry.backoffCoefficient',
    'nodes[1].retry.maxIntervalMs',
    'nodes[1].timeoutMs',
    'nodes[1].onError',
    'nodes[1].disabled',
    'nodes[1].config',
  ])
  expect(faults([noop('a', { retry: 'often', name: 'a\0b' })])).toEqual([
    'nodes[0].name: must not contain NUL or broken Unicode',
    'nodes[0].retry: must be an object, not a string',
  ])
  expect(faults([noop('a', { retry: [], position: [] })])).toEqual([
    'nodes[0].position: must be an object, not an array',
    'nodes[0].retry: must be an object, not an array',
  ])
})

test.each([
  ['SET', {}, ['config: must have either values, fields or json']],
  ['SET', { values: [1] }, ['config.values: must be an object, not an array']],
  ['IF_ELSE', {}, ['config: must have either condition or conditions']],
  ['IF_ELSE', { condition: 3 }, ['config.condition: must be an expression or a boolean, not a number']],
  [
    'SWITCH',
    { cases: [{ handle: 'a b', condition: true }, { condition: true }] },
    [
      'config.cases[0].handle: must be 1 to 100 letters, digits, _ or -',
      'config.cases[1].handle: is required',
    ],
  ],
  [
    'MERGE',
    { mode: 'mix' },
    [
      'config.mode: must be one of combine, append, items, byPosition, byFields, byKey, all, choose, not "mix"',
    ],
  ],
  [
    'FILTER',
    { items: 'plain', condition: true },
    ['config.items: must be an array or an expression in {{ }}, not a string'],
  ],
  [
    'HTTP_REQUEST',
    { method: 'FETCH' },
    [
      'config.url: is required',
      'config.method: must be one of GET, POST, PUT, PATCH, DELETE, HEAD, OPTIONS, not "FETCH"',
    ],
  ],
  ['HTTP_REQUEST', { url: 'http://x', timeoutMs: 0 }, ['config.timeoutMs: must be at least 1, not 0']],
  [
    'HTTP_REQUEST',
    { url: 'http://x', headers: [], query: [] },
    ['config.headers: must be an object, not an array', 'config.query: must be an object, not an array'],
  ],
  [
    'HTTP_REQUEST',
    { url: 'http://x', headers: { a: [] } },
    ['config.headers.a: must be a string, a number or a boolean, not an array'],
  ],
  ['WAIT', {}, ['config: must have exactly one of durationMs and until']],
  ['WAIT', { durationMs: -1 }, ['config.durationMs: must not be negative']],
  ['STOP_AND_ERROR', { message: '' }, ['config.message: must not be empty']],
  [
    'WEBHOOK_TRIGGER',
    { path: 'a/b', secretHeader: { name: 'x' } },
    [
      'config.path: must be 1 to 100 letters, digits, _ or -',
      'config.secretHeader.value: is required, unless credentialId is set',
    ],
  ],
])('%s refuses the config %j', (type, config, expected) => {
  expect(faults([{ id: 'a', type, config }])).toEqual(expected.map((fault) => `nodes[0].${fault}`))
})

test.each(Object.entries(examples('http://x')))('knows all keys of the example %s', (_name, { nodes }) => {
  expect(findUnknownKeys(nodes)).toEqual([])
})

test('the problems of a config that was sent as data have data in their paths', () => {
  expect(faults([{ id: 'a', type: 'SET', data: {} }])).toEqual([
    'nodes[0].data: must have either values, fields or json',
  ])
})

test('refuses repeated ids and edges', () => {
  const twice = [edge('start', 'a'), edge('start', 'a')]
  expect(faults([start, noop('a'), noop('a')], twice)).toEqual([
    'nodes[2].id: repeats the id of nodes[1]',
    'edges[1]: repeats the source, sourceHandle, target and targetHandle of edges[0]',
  ])
  const named = [
    { ...edge('start', 'a'), id: 'e' },
    { ...edge('start', 'b'), id: 'e' },
  ]
  expect(faults([start, noop('a'), noop('b')], named)).toEqual(['edges[1].id: repeats the id of edges[0]'])
})

test('refuses edges with unknown ends or handles, from a node to itself, or to a trigger', () => {
  const nodes = [
    start,
    noop('a'),
    { id: 'if', type: 'IF_ELSE', config: { condition: true } },
    { id: 'sw', type: 'SWITCH', config: { cases: [{ handle: 'red', condition: 'true' }] } },
    noop('br', { onError: 'BRANCH' }),
  ]
  expect(
    faults(nodes, [
      edge('gone', 'lost'),
      edge('a', 'a'),
      edge('a', 'start'),
      edge('a', 'if', 'true'),
      edge('if', 'sw'),
      edge('sw', 'br', 'blue'),
      edge('a', 'br', 'error'),
      { source: 'a' },
      { source: '', target: 5 },
    ]),
  ).toEqual([
    'edges[7].target: is required',
    'edges[8].source: must not be empty',
    'edges[8].target: must be a string, not a number',
    'edges[0].source: there is no node "gone"',
    'edges[0].target: there is no node "lost"',
    'edges[1]: leads from a node to itself',
    'edges[2].target: no edge may lead to the trigger "start"',
    'edges[3].sourceHandle: the node "a" leaves by null (the main one)',
    'edges[4].sourceHandle: the node "if" leaves by true, false',
    'edges[5].sourceHandle: the node "sw" leaves by red, default',
    'edges[6].sourceHandle: the node "a" leaves by null (the main one)',
  ])
  expect(
    faults(nodes, [
      edge('start', 'if'),
      edge('if', 'sw', 'true'),
      edge('if', 'a', 'false'),
      edge('sw', 'br', 'red'),
      edge('sw', 'a', 'default'),
      edge('br', 'a', 'error'),
      edge('br', 'a'),
    ]),
  ).toEqual([])
})

test('refuses a case named error together with onError BRANCH', () => {
  const node = { id: 'sw', type: 'SWITCH', config: { cases: [{ handle: 'error', condition: true }] } }
  expect(faults([node])).toEqual([])
  expect(faults([{ ...node, onError: 'BRANCH' }])).toEqual([
    'nodes[0].config: must not have a handle "error", since onError is BRANCH',
  ])
})

test('names the nodes of each cycle', () => {
  const nodes = [start, noop('a'), noop('b'), noop('c'), noop('d')]
  expect(
    faults(nodes, [
      edge('start', 'a'),
      edge('a', 'b'),
      edge('b', 'c'),
      edge('c', 'a'),
      edge('c', 'd'),
      edge('d', 'b'),
    ]),
  ).toEqual(['edges[3]: closes a cycle: a -> b -> c -> a', 'edges[5]: closes a cycle: b -> c -> d -> b'])
})

test('a diamond is not a cycle', () => {
  const nodes = [start, noop('a'), noop('b'), noop('c')]
  expect(faults(nodes, [edge('start', 'a'), edge('start', 'b'), edge('a', 'c'), edge('b', 'c')])).toEqual([])
})

test('expressions must parse and name nodes that come before', () => {
  const nodes = [
    start,
    {
      id: 'a',
      type: 'SET',
      config: { values: { x: '{{ $nodes.start.n }}', deep: [{ y: '{{ $nodes.b.n }}' }] } },
    },
    { id: 'b', type: 'IF_ELSE', config: { condition: '$nodes.nobody.ok = true' } },
    { id: 'c', type: 'SET', config: { values: { x: '{{ 1 + }}', y: '{{ $nodes.c }}' } } },
    { id: 'd', type: 'SWITCH', config: { cases: [{ handle: 'x', condition: '$nodes.' }] } },
  ]
  const { problems } = read(nodes, [
    edge('start', 'a'),
    edge('a', 'b'),
    edge('b', 'c', 'true'),
    edge('c', 'd'),
  ])
  expect(problems.map(({ path }) => path)).toEqual([
    'nodes[1].config.values.deep[0].y',
    'nodes[2].config.condition',
    'nodes[3].config.values.x',
    'nodes[3].config.values.y',
    'nodes[4].config.cases[0].condition',
  ])
  expect(problems[0]!.message).toBe('names the node "b", which does not come before "a"')
  expect(problems[1]!.message).toBe('names the node "nobody", which is not in this graph')
})

test('a parent must exist and be a loop', () => {
  expect(faults([start, noop('a', { parentId: 'gone' }), noop('b', { parentId: 'a' })])).toEqual([
    'nodes[1].parentId: there is no node "gone"',
    'nodes[2].parentId: a node of type NO_OP cannot have children',
  ])
})

test('refuses two webhooks with the same path and method', () => {
  const hook = (id: string, config: object, more = {}) => ({ id, type: 'WEBHOOK_TRIGGER', config, ...more })
  expect(
    faults([
      hook('a', { path: 'in' }),
      hook('b', { path: 'in', method: 'GET' }),
      hook('c', { path: 'in', method: 'POST' }),
      hook('d', { path: 'out' }),
      hook('e', { path: 'in' }, { disabled: true }),
    ]),
  ).toEqual(['nodes[2].config.path: repeats the path and method of nodes[0]'])
})

test('refuses graphs with too many nodes, edges or bytes', () => {
  const many = (count: number) => Array.from({ length: count }, (_, at) => noop(`n${at}`))
  expect(faults(many(MAX_NODES))).toEqual([])
  expect(faults(many(MAX_NODES + 1))).toEqual(['nodes: has 501 entries; at most 500 are allowed'])
  const edges = Array.from({ length: MAX_EDGES + 1 }, () => edge('n0', 'n1'))
  expect(faults(many(2), edges)).toEqual(['edges: has 2001 entries; at most 2000 are allowed'])
  const big = { id: 'a', type: 'SET', config: { values: { text: 'ä'.repeat(499_990) } } }
  expect(faults([big])).toEqual([
    expect.stringMatching(/^nodes: has \d+ bytes with the edges; at most 1000000 are allowed$/),
  ])
  expect(faults([{ ...big, config: { values: { text: 'ä'.repeat(499_900) } } }])).toEqual([])
})

test('a full graph is checked in well under a second', () => {
  const nodes = Array.from({ length: MAX_NODES }, (_, at) => noop(`n${at}`))
  const edges = Array.from({ length: MAX_EDGES }, (_, at) => {
    const source = at % (MAX_NODES - 5)
    return edge(`n${source}`, `n${source + 1 + Math.floor(at / (MAX_NODES - 5))}`)
  })
  const before = performance.now()
  expect(faults(nodes, edges)).toEqual([])
  expect(performance.now() - before).toBeLessThan(1_000)
})

test('activation requires a trigger that leads to every node', () => {
  const graph = (nodes: unknown, edges: unknown = []): Graph => {
    const { graph, problems } = read(nodes, edges)
    expect(problems).toEqual([])
    return graph
  }
  const none = [{ path: 'nodes', message: 'an active workflow needs a trigger node that is not disabled' }]
  expect(checkActivation(graph([]))).toEqual(none)
  expect(checkActivation(graph([noop('a'), { ...start, disabled: true }]))).toEqual(none)
  const nodes = [start, noop('a'), noop('b'), noop('c'), noop('off', { disabled: true })]
  expect(checkActivation(graph(nodes, [edge('start', 'a'), edge('b', 'c')]))).toEqual([
    { path: 'nodes[2]', message: 'no trigger leads to the node "b"' },
    { path: 'nodes[3]', message: 'no trigger leads to the node "c"' },
  ])
  expect(checkActivation(graph(nodes, [edge('start', 'a'), edge('a', 'b'), edge('b', 'c')]))).toEqual([])
})

test('an execution starts at the manual trigger, else at the first trigger that is not disabled', () => {
  const hook = { id: 'hook', type: 'WEBHOOK_TRIGGER', config: { path: 'in' } }
  const other = { id: 'other', type: 'WEBHOOK_TRIGGER', config: { path: 'out' } }
  expect(findStart(read([hook, start]).graph)?.id).toBe('start')
  expect(findStart(read([noop('a'), { ...hook, disabled: true }, other]).graph)?.id).toBe('other')
  expect(findStart(read([noop('a')]).graph)).toBeUndefined()
})

test('a value of the wrong type gets a message of ours, not of Valibot', () => {
  const bad = [
    { id: 'w', type: 'WAIT', config: { until: 5 } },
    { id: 'text', type: 'HTTP_REQUEST', config: { url: 'https://example.com', headers: 'a' } },
    { id: 'deep', type: 'HTTP_REQUEST', config: { url: 'https://example.com', headers: { a: {} } } },
  ]
  expect(faults(bad)).toEqual([
    'nodes[0].config.until: must be an ISO 8601 time, not a number',
    'nodes[1].config.headers: must be an object, not a string',
    'nodes[2].config.headers.a: must be a string, a number or a boolean, not an object',
  ])
})

test('counts the expressions of the whole graph before it parses any', () => {
  const values = Object.fromEntries(Array.from({ length: 900 }, (_, at) => [`k${at}`, '{{ 1 }}']))
  const nodes = Array.from({ length: 12 }, (_, at) => ({ id: `n${at}`, type: 'SET', config: { values } }))
  expect(faults(nodes.slice(0, 11))).toEqual([])
  expect(faults(nodes)).toEqual(['nodes: must have at most 10000 expressions together, not 10800'])
})
