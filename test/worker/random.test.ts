import fc from 'fast-check'
import jsonata from 'jsonata'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Running, startRunning } from '../running.ts'

/** Runs of random graphs, held against an interpreter that knows only the words of the README. */
const GRAPHS = 100
const AT_ONCE = 10

type Node = {
  id: string
  type: string
  config: Record<string, unknown>
  onError?: string
  disabled?: boolean
  retry?: object
}
type Edge = { source: string; sourceHandle?: string; target: string }
type Graph = { nodes: Node[]; edges: Edge[] }

let running: Running
beforeAll(async () => {
  running = await startRunning()
})
afterAll(() => running.stop())

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
    condition: fc.constantFrom('$input.n > 1', '{{ $input.list }}', 'true', '$input.n + "x"'),
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
}

const handlesOf = (node: Node) => [
  ...(HANDLES[node.type]?.(node) ?? [undefined]),
  ...(node.onError === 'BRANCH' ? ['error'] : []),
]

const someNode = fc.constantFrom(...Object.keys(configs)).chain((type) =>
  fc.record({
    type: fc.constant(type),
    config: configs[type]!,
    onError: fc.constantFrom(...'CONTINUE BRANCH CONTINUE BRANCH CONTINUE BRANCH FAIL'.split(' ')),
    disabled: fc.constantFrom(false, false, false, false, true),
    alone: fc.constantFrom(false, false, false, true),
  }),
)

/** A DAG: every edge leads from a node to a later one of the list; each node has one to three edges to it. */
const graphs: fc.Arbitrary<Graph> = fc
  .record({
    some: fc.array(someNode, { minLength: 5, maxLength: IDS.length }),
    picks: fc.array(fc.tuple(fc.nat(), fc.nat()), { minLength: 30, maxLength: 30 }),
    order: fc.nat(),
  })
  .map(({ some, picks, order }) => {
    const start = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }
    const hook = { id: 'hook', type: 'WEBHOOK_TRIGGER', config: { path: 'x' } }
    const inner = some.map(({ alone, ...node }, at): Node => {
      const retry = alone ? { retry: { maxAttempts: 1 + (order % 2), initialIntervalMs: 1 } } : {}
      return { id: IDS[at]!, ...node, ...retry }
    })
    const nodes: Node[] = [start, ...inner]
    const edges = new Map<string, Edge>()
    for (const [at, [from, by]] of picks.entries()) {
      const target = 1 + (at % inner.length)
      if (at >= inner.length && by % 3 > 0) continue
      const source = nodes[Math.max(0, target - 1 - (from % 4))]!
      const handles = handlesOf(source)
      const handle = handles[by % handles.length]
      const edge = {
        source: source.id,
        target: nodes[target]!.id,
        ...(handle ? { sourceHandle: handle } : {}),
      }
      edges.set(JSON.stringify(edge), edge)
    }
    edges.set('hook', { source: 'hook', target: nodes[1 + (order % inner.length)]!.id })
    const all = [hook, ...nodes]
    return { nodes: order % 3 === 0 ? all.toReversed() : all, edges: [...edges.values()] }
  })

type Left = { output: unknown; handle: string | undefined; error?: string }
type Expected = { left: Map<string, Left>; inputs: Map<string, unknown>; fatal: string[] }

/** Runs a graph the plain way: one node after the other; behind a node that fails for good nothing happens. */
async function interpret(graph: Graph, data: unknown): Promise<Expected> {
  const left = new Map<string, Left>()
  const inputs = new Map<string, unknown>()
  const done = new Set<string>()
  const fatal: string[] = []
  const settle = async (node: Node): Promise<void> => {
    if (done.has(node.id)) return
    done.add(node.id)
    const incoming = graph.edges.filter((edge) => edge.target === node.id)
    for (const edge of incoming) await settle(graph.nodes.find(({ id }) => id === edge.source)!)
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
    if (taken.length === 0) return
    const values = [...new Set(taken.map(({ source }) => source))].map((id) => left.get(id)!.output)
    const input = merge(values)
    inputs.set(node.id, input)
    if (node.disabled) {
      left.set(node.id, { output: input, handle: handlesOf(node)[0] })
      return
    }
    try {
      left.set(node.id, plain(await take(node, input, values, data)) as Left)
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
  const blocked = new Set<string>()
  for (const node of graph.nodes) await settle(node)
  return { left, inputs, fatal }
}

const FAILED = { error: 'is told elsewhere' }
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value))
const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const merge = (values: unknown[]): unknown => {
  if (values.length === 1) return values[0]
  return values.every(isObject) ? Object.assign({}, ...values) : values
}

async function take(node: Node, input: unknown, inputs: unknown[], data: unknown): Promise<Partial<Left>> {
  const find = (source: string, more = {}) =>
    jsonata(source)
      .evaluate(plain(input), {
        input: plain(input),
        trigger: data,
        execution: { trigger: 'MANUAL' },
        ...more,
      })
      .then((value) => (value === undefined ? undefined : plain(value)))
  const render = async (value: unknown): Promise<unknown> => {
    if (Array.isArray(value)) return Promise.all(value.map(render))
    if (isObject(value)) {
      const entries = Object.entries(value).map(async ([key, item]) => [key, await render(item)])
      return Object.fromEntries(await Promise.all(entries))
    }
    if (typeof value !== 'string' || !value.includes('{{')) return value
    const whole = /^\{\{([^}]*)\}\}$/.exec(value)
    if (whole) return (await find(whole[1]!)) ?? null
    const [text = '', source = ''] = value.split(/\{\{|\}\}/)
    const found = await find(source)
    return text + (found === undefined ? '' : typeof found === 'string' ? found : JSON.stringify(found))
  }
  const holds = (condition: string, more = {}) => {
    const source = condition.replace(/^\{\{|\}\}$/g, '')
    return find(`$boolean((${source}))`, more).then((value) => value === true)
  }
  const { config } = node
  switch (node.type) {
    case 'SET':
      return { output: await render(config.values) }
    case 'IF_ELSE':
      return { output: input, handle: String(await holds(config.condition as string)) }
    case 'SWITCH':
      for (const { handle, condition } of config.cases as { handle: string; condition: string }[]) {
        if (await holds(condition)) return { output: input, handle }
      }
      return { output: input, handle: 'default' }
    case 'MERGE':
      return { output: config.mode === 'append' ? inputs.flat() : input }
    case 'FILTER': {
      const found = await render(config.items)
      const items = Array.isArray(found) ? found : found === null ? [] : [found]
      const kept: unknown[] = []
      for (const [index, item] of items.entries()) {
        if (await holds(config.condition as string, { item, index })) kept.push(item)
      }
      return { output: { items: kept } }
    }
    case 'STOP_AND_ERROR':
      throw new Error(String((await render(config.message)) ?? 'Stopped without a message'))
    case 'WAIT': {
      const duration = await render(config.durationMs)
      if (typeof duration !== 'number' && !/^\d+$/.test(String(duration))) throw new Error('no duration')
      return { output: input }
    }
    default:
      return { output: input }
  }
}

const shown = (value: unknown) => (isObject(value) ? value : value === undefined ? {} : { value })
/** What a handled error says is its node's own affair: that it is there is enough here. */
const blur = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value), (_key, item) =>
    isObject(item) && 'error' in item && (item.error === FAILED.error || isObject(item.error))
      ? { ...item, error: 'is told elsewhere' }
      : item,
  )

async function compare(graph: Graph): Promise<void> {
  const data = { n: 1, name: 'x', list: [1, 2] }
  const expected = await interpret(graph, data)
  const run = await running.run(graph, data)
  const silent = new Set(graph.nodes.filter(({ disabled }) => disabled).map(({ id }) => id))
  const ran = new Map([...expected.left].filter(([id]) => !silent.has(id)))

  const failed = expected.fatal.length > 0
  expect(run.status).toBe(failed ? 'FAILED' : 'SUCCESS')
  for (const record of run.nodeExecutions) {
    const { nodeId, status } = record
    if (failed && status === 'CANCELLED') continue
    if (expected.fatal.includes(nodeId)) {
      expect(status, nodeId).toBe('FAILED')
      continue
    }
    const left = ran.get(nodeId)!
    expect(status, nodeId).toBe(left.error === undefined ? 'SUCCESS' : 'FAILED')
    expect(blur(record.inputData), `$input of ${nodeId}`).toEqual(blur(shown(expected.inputs.get(nodeId))))
    expect(blur(record.outputData), `output of ${nodeId}`).toEqual(blur(shown(left.output)))
  }
  if (failed) {
    const errors = run.nodeExecutions
      .filter(({ nodeId }) => expected.fatal.includes(nodeId))
      .map(({ errorMessage }) => errorMessage)
    expect(errors).toContain(run.errorMessage)
    expect(run.outputData).toBeNull()
    return
  }
  expect(run.nodeExecutions.map(({ nodeId }) => nodeId).sort()).toEqual([...ran.keys()].sort())
  const goesOn = (id: string) =>
    graph.edges.some(
      ({ source, sourceHandle }) => source === id && expected.left.get(id)!.handle === sourceHandle,
    )
  const ends = [...expected.left.keys()].filter((id) => !goesOn(id))
  const output = Object.fromEntries(ends.map((id) => [id, expected.left.get(id)!.output]))
  expect(blur(run.outputData)).toEqual(blur(ends.length === 1 ? shown(output[ends[0]!]) : output))
}

test(`${GRAPHS} random graphs run as the plain interpreter says`, { timeout: 120_000 }, async () => {
  const seed = Number(process.env.TEST_SEED ?? Date.now() % 2 ** 31)
  const sample = fc.sample(graphs, { numRuns: GRAPHS, seed })
  const faults: string[] = []
  const work = async () => {
    for (let graph = sample.pop(); graph; graph = sample.pop()) {
      try {
        await compare(graph)
      } catch (error) {
        faults.push(`TEST_SEED=${seed} ${(error as Error).message}\n${JSON.stringify(graph)}`)
      }
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  expect(faults.length, faults[0]).toBe(0)
})
