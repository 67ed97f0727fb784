import fc from 'fast-check'
import jsonata from 'jsonata'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Running, startRunning } from '../../support/running.ts'

/** Executes random graphs and compares them with an interpreter written from the README alone. */
const AT_ONCE = 10

type Node = {
  id: string
  type: string
  parentId?: string
  config: Record<string, unknown>
  onError?: string
  disabled?: boolean
  retry?: object
}

type Edge = { source: string; sourceHandle?: string; target: string }
type Graph = { nodes: Node[]; edges: Edge[] }

/** Every fourth graph continues as new all the time. */
let hosts: Running[]
beforeAll(async () => {
  hosts = [await startRunning({ segmentRecords: 4 }), await startRunning({ continueAfterEvents: 20 })]
})
afterAll(async () => {
  for (const host of hosts) await host.stop()
})

const IDS = ['toString', '__defineGetter__', '-', '0', 'then', 'length', 'valueOf', 'a-b', 'n_8', 'n9', 'n10']

const configs: Record<string, fc.Arbitrary<Record<string, unknown>>> = {
  SET: fc.record({
    values: fc.record({
      name: fc.constantFrom('{{ $execution.trigger }}', 'n is {{ $input.n }}', '{{ $input.name & "!" }}'),
      n: fc.oneof(
        fc.integer({ min: 0, max: 3 }),
        fc.constantFrom('{{ $input.n + 1 }}', '{{ $sum($input.n) }}'),
      ),
      list: fc.constantFrom('{{ [$input.n] }}', '{{ [$input.list, 1] }}', [1, '{{ $input.name }}'], null),
    }),
  }),
  IF_ELSE: fc.record({
    condition: fc.constantFrom('$input.n > 1', '{{ $input.list }}', 'true', '$input.n + $string(1)'),
  }),
  SWITCH: fc.record({
    cases: fc.constantFrom(
      [{ handle: 'one', condition: '$input.n = 1' }],
      [
        { handle: 'one', condition: '$input.n = 1' },
        { handle: 'two', condition: '{{ $count($input) = 2 }}' },
      ],
    ),
  }),
  MERGE: fc.record({ mode: fc.constantFrom('combine', 'append') }),
  FILTER: fc.record({
    items: fc.constantFrom('{{ $input.list }}', [1, 2, 3], '{{ $input }}'),
    condition: fc.constantFrom('$item > 1', '$index = 0', '$item.n >= $input.n'),
  }),
  STOP_AND_ERROR: fc.record({ message: fc.constantFrom('no', 'no {{ $input.n }}', '{{ $input.name }}') }),
  NO_OP: fc.constant({}),
  WAIT: fc.record({ durationMs: fc.constantFrom(0, 1, 20, '{{ $input.n }}') }),
}

const HANDLES: Record<string, (node: Node) => (string | undefined)[]> = {
  IF_ELSE: () => ['true', 'false'],
  SWITCH: (node) => [...(node.config.cases as { handle: string }[]).map(({ handle }) => handle), 'default'],
  REPEAT: () => [undefined, 'exhausted'],
}

const handlesOf = (node: Node) => [
  ...(HANDLES[node.type]?.(node) ?? [undefined]),
  ...(node.onError === 'BRANCH' ? ['error'] : []),
]

/** How many loops a node may be in. */
const DEPTH = 2

/** At the root, failures are mostly handled: an unhandled one ends the run early. */
const MOSTLY_HANDLED = 'CONTINUE BRANCH CONTINUE BRANCH FAIL'.split(' ')

const LOOPS: Record<string, fc.Arbitrary<Record<string, unknown>>> = {
  FOR_EACH: fc.record({
    items: fc.constantFrom('{{ $input.list }}', [1, { n: 2, list: [3, 4] }, 3], '{{ $input }}', []),
    concurrency: fc.constantFrom(1, 1, 3),
    onItemError: fc.constantFrom('stop', 'collect'),
  }),
  REPEAT: fc.record({
    until: fc.constantFrom('$index >= 2', '{{ $input.n > 1 }}', '$item.list', 'false'),
    maxIterations: fc.constantFrom(1, 3),
  }),
}

type Some = {
  type: string
  config: Record<string, unknown>
  onError: string
  disabled: boolean
  alone: boolean
}

type SomeScope = { some: (Some & { body?: SomeScope })[]; picks: [number, number][] }

const someOf = (type: string, from: typeof configs, depth: number) =>
  fc.record({
    type: fc.constant(type),
    config: from[type]!,
    onError: fc.constantFrom('CONTINUE', 'BRANCH', ...(depth < DEPTH ? ['FAIL'] : MOSTLY_HANDLED)),
    disabled: fc.constantFrom(false, false, false, false, true),
    alone: fc.constantFrom(false, false, false, true),
  })

function someScope(minLength: number, maxLength: number, depth: number): fc.Arbitrary<SomeScope> {
  const someStep = fc.constantFrom(...Object.keys(configs)).chain((type) => someOf(type, configs, depth))
  const someLoop = fc
    .constantFrom(...Object.keys(LOOPS))
    .chain((type) => fc.record({ loop: someOf(type, LOOPS, depth), body: someScope(1, 4, depth - 1) }))
    .map(({ loop, body }) => ({ ...loop, alone: false, body }))
  const some: fc.Arbitrary<Some & { body?: SomeScope }> =
    depth === 0 ? someStep : fc.oneof({ arbitrary: someStep, weight: 6 }, { arbitrary: someLoop, weight: 1 })
  return fc.record({
    some: fc.array(some, { minLength, maxLength }),
    picks: fc.array(fc.tuple(fc.nat(), fc.nat()), { minLength: 30, maxLength: 30 }),
  })
}

/**
 * Makes a DAG: every edge leads to a later node of the same body, and a node has up to three incoming edges.
 */
function draw(scope: SomeScope, first: Node[], ids: string[], order: number, parentId?: string): Graph {
  const inner: Node[] = []
  const below: Graph[] = []
  for (const [at, { alone, body, ...node }] of scope.some.entries()) {
    const retry = alone ? { retry: { maxAttempts: 1 + (order % 2), initialIntervalMs: 1 } } : {}
    const id = ids[at] ?? `${parentId}_${at}`
    inner.push({ id, ...node, ...retry, ...(parentId ? { parentId } : {}) })
    if (body) below.push(draw(body, [], [], order, id))
  }
  const nodes = [...first, ...inner]
  const edges = new Map<string, Edge>()
  for (const [at, [from, by]] of scope.picks.entries()) {
    const target = first.length + (at % inner.length)
    if ((at >= inner.length && by % 3 > 0) || target === 0) continue
    // In a body, some nodes get no edge, so that they begin with the iteration.
    if (parentId && by % 5 === 0) continue
    const source = nodes[Math.max(0, target - 1 - (from % 4))]!
    const handles = handlesOf(source)
    const handle = handles[by % handles.length]
    const edge = { source: source.id, target: nodes[target]!.id, ...(handle ? { sourceHandle: handle } : {}) }
    edges.set(JSON.stringify(edge), edge)
  }
  return {
    nodes: [...nodes, ...below.flatMap((graph) => graph.nodes)],
    edges: [...edges.values(), ...below.flatMap((graph) => graph.edges)],
  }
}

const graphs: fc.Arbitrary<Graph> = fc
  .record({ scope: someScope(5, IDS.length, DEPTH), order: fc.nat() })
  .map(({ scope, order }) => {
    const start = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }
    const hook = { id: 'hook', type: 'WEBHOOK_TRIGGER', config: { path: 'x' } }
    const { nodes, edges } = draw(scope, [start], IDS, order)
    const all = [hook, ...nodes]
    const behind = nodes[1 + (order % scope.some.length)]!
    return {
      nodes: order % 3 === 0 ? all.toReversed() : all,
      edges: [...edges, { source: 'hook', target: behind.id }],
    }
  })

type Left = { output: unknown; handle: string | undefined; error?: string }

/** What the interpreter expects, by `nodeId#iteration`. */
type Expected = {
  left: Map<string, Left>
  inputs: Map<string, unknown>
  fatal: string[]
  /** The keys of nodes that a failure may have cut short. */
  loose: Set<string>
  output: unknown
}

type Around = { path: string; parentId?: string; item?: unknown; data: unknown; found: Expected }

/**
 * Runs a graph the simple way, one node after the other. Nothing runs after a node whose failure is not
 * handled.
 */
async function interpret(graph: Graph, around: Around): Promise<{ output: unknown; fatal: string[] }> {
  const { path, parentId, found, data } = around
  const nodes = graph.nodes.filter((node) => node.parentId === parentId)
  const left = new Map<string, Left>()
  const done = new Set<string>()
  const fatal: string[] = []
  const blocked = new Set<string>()
  const settle = async (node: Node): Promise<void> => {
    if (done.has(node.id)) return
    done.add(node.id)
    const incoming = graph.edges.filter((edge) => edge.target === node.id)
    for (const edge of incoming) await settle(nodes.find(({ id }) => id === edge.source)!)
    if (node.id === 'start') {
      left.set('start', { output: data, handle: undefined })
      return
    }
    if (incoming.some(({ source }) => blocked.has(source))) {
      blocked.add(node.id)
      return
    }
    const taken = incoming.filter(({ source, sourceHandle }) => {
      const before = left.get(source)
      return before && before.handle === sourceHandle
    })
    const entry = parentId !== undefined && incoming.length === 0
    if (taken.length === 0 && !entry) return
    const sources = [...new Set(taken.map(({ source }) => source))].map((id) => left.get(id)!.output)
    const values = entry ? [around.item] : sources
    const input = merge(values)
    found.inputs.set(`${node.id}#${path}`, input)
    if (node.disabled) {
      left.set(node.id, { output: input, handle: handlesOf(node)[0] })
      return
    }
    try {
      const taken = node.type in LOOPS ? await loop(node, input) : await take(node, input, values, around)
      left.set(node.id, plain(taken) as Left)
    } catch (error) {
      const { message } = error as Error
      if (node.onError === 'FAIL') {
        fatal.push(node.id)
        blocked.add(node.id)
      } else {
        const handle = node.onError === 'BRANCH' ? 'error' : undefined
        left.set(node.id, { output: FAILED, handle, error: message })
      }
    }
  }
  /**
   * Runs one iteration after the other. If one fails, it and all that its failure may have cut short are
   * loose.
   */
  const loop = async (node: Node, input: unknown): Promise<Partial<Left>> => {
    const { config } = node
    const context = { ...around }
    const each = node.type === 'FOR_EACH'
    const value = each ? await render(config.items, input, context) : undefined
    const items = Array.isArray(value) ? value : value === null || value === undefined ? [] : [value]
    const results: unknown[] = []
    let item = input
    let held = each
    for (let at = 0; at < (each ? items.length : Number(config.maxIterations)); at++) {
      const inner = path === '' ? String(at) : `${path}.${at}`
      if (each) item = items[at]
      const known = new Set(found.inputs.keys())
      const body = await interpret(graph, { ...around, path: inner, parentId: node.id, item })
      if (body.fatal.length > 0) {
        for (const key of found.inputs.keys()) if (!known.has(key)) found.loose.add(key)
        if (each && config.onItemError === 'collect') {
          results.push(FAILED)
          continue
        }
        // Other iterations may have any result.
        for (const key of known) if (isInside(graph, key, node.id)) found.loose.add(key)
        throw new Error('an iteration failed')
      }
      results.push(body.output)
      item = body.output
      if (each) continue
      held = await holds(config.until as string, body.output, { ...around, item, index: at })
      if (held) break
    }
    const leaves = graph.edges.some((edge) => edge.source === node.id && edge.sourceHandle === 'exhausted')
    return { output: each ? { items: results } : item, ...(held || !leaves ? {} : { handle: 'exhausted' }) }
  }
  for (const node of nodes) await settle(node)
  for (const [id, one] of left) found.left.set(`${id}#${path}`, one)
  for (const id of fatal) found.fatal.push(`${id}#${path}`)
  const goesOn = (id: string) =>
    graph.edges.some(({ source, sourceHandle }) => source === id && left.get(id)!.handle === sourceHandle)
  const ends = [...left.keys()].filter((id) => !goesOn(id))
  const output = Object.fromEntries(ends.map((id) => [id, left.get(id)!.output]))
  return { output: ends.length === 1 ? output[ends[0]!] : output, fatal }
}

function isInside(graph: Graph, key: string, loopId: string): boolean {
  const byId = new Map(graph.nodes.map((node) => [node.id, node]))
  for (let id = byId.get(key.split('#')[0]!)?.parentId; id; id = byId.get(id)?.parentId) {
    if (id === loopId) return true
  }
  return false
}

const FAILED = { error: 'handled' }
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value))
const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const merge = (values: unknown[]): unknown => {
  if (values.length === 1) return values[0]
  return values.every(isObject) ? Object.assign({}, ...values) : values
}

type Scope = Pick<Around, 'path' | 'item' | 'data'> & { index?: number }

async function find(source: string, input: unknown, { path, item, data, index }: Scope): Promise<unknown> {
  const at = index ?? (path === '' ? undefined : Number(path.split('.').at(-1)))
  const value = await jsonata(source).evaluate(input === undefined ? undefined : plain(input), {
    input: input === undefined ? undefined : plain(input),
    trigger: data,
    execution: { trigger: 'MANUAL' },
    ...(item === undefined ? {} : { item }),
    ...(at === undefined ? {} : { index: at }),
  })
  return value === undefined ? undefined : plain(value)
}

async function render(value: unknown, input: unknown, scope: Scope): Promise<unknown> {
  if (Array.isArray(value)) return Promise.all(value.map((item) => render(item, input, scope)))
  if (isObject(value)) {
    const entries = Object.entries(value).map(async ([key, item]) => [key, await render(item, input, scope)])
    return Object.fromEntries(await Promise.all(entries))
  }
  if (typeof value !== 'string' || !value.includes('{{')) return value
  const whole = /^\{\{([^}]*)\}\}$/.exec(value)
  if (whole) return (await find(whole[1]!, input, scope)) ?? null
  const [text = '', source = ''] = value.split(/\{\{|\}\}/)
  const found = await find(source, input, scope)
  return text + (found === undefined ? '' : typeof found === 'string' ? found : JSON.stringify(found))
}

async function holds(condition: string, input: unknown, scope: Scope): Promise<boolean> {
  const source = condition.replace(/^\{\{|\}\}$/g, '')
  return (await find(`$boolean((${source}))`, input, scope)) === true
}

async function take(node: Node, input: unknown, inputs: unknown[], scope: Scope): Promise<Partial<Left>> {
  const { config } = node
  switch (node.type) {
    case 'SET':
      return { output: await render(config.values, input, scope) }
    case 'IF_ELSE':
      return { output: input, handle: String(await holds(config.condition as string, input, scope)) }
    case 'SWITCH':
      for (const { handle, condition } of config.cases as { handle: string; condition: string }[]) {
        if (await holds(condition, input, scope)) return { output: input, handle }
      }
      return { output: input, handle: 'default' }
    case 'MERGE':
      return { output: config.mode === 'append' ? inputs.flat() : input }
    case 'FILTER': {
      const found = await render(config.items, input, scope)
      const items = Array.isArray(found) ? found : found === null ? [] : [found]
      const kept: unknown[] = []
      for (const [index, item] of items.entries()) {
        if (await holds(config.condition as string, input, { ...scope, item, index })) kept.push(item)
      }
      return { output: { items: kept } }
    }
    case 'STOP_AND_ERROR':
      throw new Error(String((await render(config.message, input, scope)) ?? 'Stopped without a message'))
    case 'WAIT': {
      const duration = await render(config.durationMs, input, scope)
      if (typeof duration !== 'number' && !/^\d+$/.test(String(duration))) throw new Error('no duration')
      return { output: input }
    }
    default:
      return { output: input }
  }
}

const shown = (value: unknown) => (isObject(value) ? value : value === undefined ? {} : { value })

/** Replaces handled errors by a constant: here it matters only that there is one. */
const blur = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value), (_key, item) =>
    isObject(item) && 'error' in item && (item.error === FAILED.error || isObject(item.error))
      ? { ...item, ...FAILED }
      : item,
  )

async function compare(running: Running, graph: Graph): Promise<void> {
  const data = { n: 1, name: 'x', list: [1, 2] }
  const found: Expected = { left: new Map(), inputs: new Map(), fatal: [], loose: new Set(), output: null }
  const expected = await interpret(graph, { path: '', data, found })
  const run = await running.run(graph, data)
  const silent = new Set(graph.nodes.filter(({ disabled }) => disabled).map(({ id }) => id))
  const ran = new Map([...found.left].filter(([key]) => !silent.has(key.split('#')[0]!)))

  const failed = expected.fatal.length > 0
  expect(run.status).toBe(failed ? 'FAILED' : 'SUCCESS')
  const records = new Map(run.nodeExecutions.map((node) => [`${node.nodeId}#${node.iteration ?? ''}`, node]))
  expect(records.size).toBe(run.nodeExecutionsTotal)
  for (const [key, record] of records) {
    const { status } = record
    if ((failed || found.loose.has(key)) && status === 'CANCELLED') continue
    if (found.fatal.includes(key)) {
      expect(status, key).toBe('FAILED')
      continue
    }
    const left = ran.get(key)
    // While one iteration fails, later ones may run that the interpreter never reaches.
    if (!left && [...found.loose].some((loose) => isBeside(graph, key, loose))) continue
    expect(status, key).toBe(left!.error === undefined ? 'SUCCESS' : 'FAILED')
    expect(blur(record.inputData), `$input of ${key}`).toEqual(blur(shown(found.inputs.get(key))))
    expect(blur(record.outputData), `output of ${key}`).toEqual(blur(shown(left!.output)))
  }
  if (failed) {
    const errors = expected.fatal.map((id) => records.get(`${id}#`)?.errorMessage)
    expect(errors).toContain(run.errorMessage)
    expect(run.outputData).toBeNull()
    return
  }
  const certain = [...ran.keys(), ...found.fatal].filter((key) => !found.loose.has(key))
  for (const key of certain) expect([...records.keys()], key).toContain(key)
  const several = isObject(expected.output) || expected.output === undefined
  expect(blur(run.outputData)).toEqual(blur(several ? expected.output : shown(expected.output)))
}

/** Whether a record belongs to the loop of a loose node. */
function isBeside(graph: Graph, key: string, loose: string): boolean {
  const parentOf = (one: string) => graph.nodes.find(({ id }) => id === one.split('#')[0])?.parentId
  const parent = parentOf(loose)
  return parent !== undefined && isInside(graph, key, parent)
}

test('a few random graphs end as in the simple interpreter', () => expectSame(8))

test('80 random graphs end as in the simple interpreter', { tags: 'long' }, () => expectSame(80))

/** Executes so many random graphs, and compares each with the interpreter. */
async function expectSame(numRuns: number): Promise<void> {
  const seed = Number(process.env.TEST_SEED ?? Date.now() % 2 ** 31)
  const sample = fc.sample(graphs, { numRuns, seed })
  const faults: string[] = []
  const work = async () => {
    for (let graph = sample.pop(); graph; graph = sample.pop()) {
      try {
        await compare(hosts[sample.length % 4 === 0 ? 1 : 0]!, graph)
      } catch (error) {
        faults.push(`TEST_SEED=${seed} ${(error as Error).message}\n${JSON.stringify(graph)}`)
      }
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  expect(faults.length, faults[0]).toBe(0)
}
