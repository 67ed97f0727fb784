import { expect, test } from 'vitest'
import { nodeOf } from '../../support/client.ts'
import { edges } from '../../support/engine/graphs.ts'
import { keep } from '../../support/keep.ts'
import { shareRunning } from '../../support/running.ts'

const host = await keep(shareRunning())

const start = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }

type Node = { id: string; type: string } & Record<string, unknown>

const graph = (nodes: Node[], ...arrows: string[]) => ({ nodes: [start, ...nodes], edges: edges(...arrows) })

const set = (values: Record<string, unknown>, more: Record<string, unknown> = {}): Node => ({
  id: 'set',
  type: 'SET',
  config: { values },
  ...more,
})

type Found = { path: string; message: string; column?: number }

/** What the API says is wrong with a graph. */
async function problemsOf(drawn: ReturnType<typeof graph>): Promise<Found[]> {
  const json = { teamId: host.teamId, name: 'refused', ...drawn }
  const response = await host.request('/api/workflows', { method: 'POST', as: host.admin, json })
  expect(response.status).toBe(400)
  const body = (await response.json()) as { errors: Found[] }
  return body.errors
}

test('a text whose = is kept by a quote has it when it is executed, and keys always have theirs', async () => {
  const values = { a: "'=1+1", list: ["'=1+1"], '=key': 1, lost: '=1+1', twice: "'=1+{{ $input.n }}" }
  const run = await host.run(graph([set(values)], 'start -> set'), { n: 1 })
  expect(run.status).toBe('SUCCESS')
  expect(run.outputData).toEqual({ a: '=1+1', list: ['=1+1'], '=key': 1, lost: '1+1', twice: '=1+1' })
})

test('a condition that is a text without an expression is refused, also one that begins with =', async () => {
  const branch = { id: 'branch', type: 'IF_ELSE', config: { condition: '=1+1 > 5' } }
  const problems = await problemsOf(graph([branch], 'start -> branch'))
  expect(problems.map(({ path }) => path)).toEqual(['nodes[1].config.condition'])
})

test('texts that begin with = are evaluated, beside JSONata and plain texts', async () => {
  const run = await host.run(
    graph(
      [
        set({
          path: '={{ $json.name }}',
          text: '=Hi {{ $json.name.toUpperCase() }}!',
          typed: '={{ $json.n + 1 }}',
          missing: '={{ $json.a.b }}',
          jsonata: '{{ $input.n + 1 }}',
          literal: "'=SUM(A1)",
          plain: 'a = b',
          workflow: '={{ $workflow.name }}',
        }),
      ],
      'start -> set',
    ),
    { name: 'Ada', n: 1 },
  )
  expect(run.status).toBe('SUCCESS')
  expect(run.outputData).toMatchObject({
    path: 'Ada',
    text: 'Hi ADA!',
    typed: 2,
    missing: null,
    jsonata: 2,
    literal: '=SUM(A1)',
    plain: 'a = b',
    workflow: expect.any(String),
  })
})

test('each item is $json of its own, and $(…).item is the one that it came from', async () => {
  const people = { items: [{ n: 1 }, { n: 2 }, { n: 3 }] }
  const run = await host.run(
    graph(
      [
        { id: 'if', type: 'IF_ELSE', perItem: true, config: { condition: '={{ $json.n > 1 }}' } },
        {
          id: 'double',
          name: 'Double it',
          type: 'SET',
          perItem: true,
          config: { values: { double: '={{ $json.n * 2 }}' } },
        },
        set(
          {
            sum: "={{ $json.double + $('start').item.json.n }}",
            at: '={{ $itemIndex }}',
            of: '={{ $input.all().length }}',
            first: "={{ $('Double it').first().json.double }}",
            all: "={{ $('Double it').all().map(item => item.json.double).sum() }}",
            text: '={{ $json.double }} of {{ $input.last().json.double.toString() }}',
          },
          { perItem: true },
        ),
      ],
      'start -> if',
      'if:true -> double',
      'double -> set',
    ),
    people,
  )
  expect(run.status).toBe('SUCCESS')
  expect(nodeOf(run, 'set').outputData).toEqual({
    items: [
      { sum: 6, at: 0, of: 2, first: 4, all: 10, text: '4 of 6' },
      { sum: 9, at: 1, of: 2, first: 4, all: 10, text: '6 of 6' },
    ].map((item) => expect.objectContaining(item)),
    from: [0, 1],
  })
})

test('an item whose expression fails goes on as onError says, and the others are done', async () => {
  const run = await host.run(
    graph([set({ n: '={{ $json.n.toNumber() }}' }, { perItem: true, onError: 'CONTINUE' })], 'start -> set'),
    { items: [{ n: '1' }, { n: 'x' }] },
  )
  expect(run.status).toBe('SUCCESS')
  const { items } = nodeOf(run, 'set').outputData as { items: Record<string, unknown>[] }
  expect(items[0]).toMatchObject({ n: 1 })
  expect(JSON.stringify(items[1])).toContain('cannot convert to number')
})

test('lists are filtered and mapped by JavaScript, with the element as $json', async () => {
  const run = await host.run(
    graph(
      [
        {
          id: 'filter',
          type: 'FILTER',
          config: { items: '{{ $input.items }}', condition: '={{ $json.price > 10 && $json.tags.length }}' },
        },
        {
          id: 'map',
          type: 'MAP',
          config: { items: '{{ $input.items }}', expression: '={{ $json.price.round() + $itemIndex }}' },
        },
      ],
      'start -> filter',
      'filter -> map',
    ),
    {
      items: [
        { price: 12.6, tags: ['a'] },
        { price: 9, tags: ['a'] },
        { price: 20, tags: [] },
        { price: 30.2, tags: ['b'] },
      ],
    },
  )
  expect(run.status).toBe('SUCCESS')
  expect(nodeOf(run, 'map').outputData).toMatchObject({ items: [13, 31] })
})

test('under the rules 1 a text that begins with = is a text', async () => {
  const run = await host.run(
    { ...graph([set({ a: '= {{ $input.n }}', b: '=x' })], 'start -> set'), expressions: 1 },
    { n: 1 },
  )
  expect(run.outputData).toMatchObject({ a: '= 1', b: '=x' })
})

test('saving names what cannot be read, with its place', async () => {
  const cases: [text: string, message: string, column: number][] = [
    ['={{ $json. }}', 'invalid syntax: Unexpected token', 12],
    ["={{ $('Gone').item.json.a }}", 'names the node "Gone", which is not in this graph', 8],
    ["={{ $('after').first() }}", 'names the node "after", which does not come before "set"', 8],
    ['={{ $($json.name).item }}', 'the name of the node must be written out', 7],
    ['={{ $json.a + foo }}', 'unknown variable foo', 15],
    ['={{ $input.email }}', '$input has no email: write $json.email', 12],
    ['={{ process.env }}', 'process is not available in expressions', 5],
    ["={{ $('twice').first().json.a }}", 'names "twice", which may be several nodes', 8],
  ]
  const names = cases.map((_, i) => `v${i}`)
  const values = Object.fromEntries(cases.map(([text], i) => [names[i]!, text]))
  const found = await problemsOf(
    graph(
      [
        { id: 'one', name: 'twice', type: 'NO_OP', config: {} },
        { id: 'two', name: 'twice', type: 'NO_OP', config: {} },
        set(values),
        { id: 'after', type: 'NO_OP', config: {} },
      ],
      'start -> one',
      'one -> two',
      'two -> set',
      'set -> after',
    ),
  )
  for (const [i, [, message, column]] of cases.entries()) {
    const at = found.filter(({ path }) => path.endsWith(names[i]!))
    expect([names[i], at]).toEqual([
      names[i],
      expect.arrayContaining([
        expect.objectContaining({ message: expect.stringContaining(message), column }),
      ]),
    ])
  }
})

test('an endless expression fails its node with ExpressionLimit', async () => {
  const run = await host.run(graph([set({ a: '={{ (() => { while (true) {} })() }}' })], 'start -> set'), {})
  expect(run.status).toBe('FAILED')
  expect(nodeOf(run, 'set').errorMessage).toContain('took longer than 1 s of processor time')
})

test('code sees what n8n gives to it: items, nodes by name, dates', async () => {
  const run = await host.run(
    graph(
      [
        { id: 'seed', name: 'The seed', type: 'SET', config: { values: { base: 10 } } },
        {
          id: 'all',
          type: 'CODE',
          config: {
            timeoutMs: 1_000,
            code: `const { base } = $('The seed').first().json
              return $input.all().map(({ json }, i) => ({ sum: json.base + base + i, year: $now.year > 2000 }))`,
          },
        },
        {
          id: 'each',
          type: 'CODE',
          config: { timeoutMs: 1_000, mode: 'each', code: 'return { twice: $json.sum * 2, at: $itemIndex }' },
        },
      ],
      'start -> seed',
      'seed -> all',
      'all -> each',
    ),
    {},
  )
  expect(run.errorMessage).toBeNull()
  expect(nodeOf(run, 'all').outputData).toMatchObject({ items: [{ sum: 20, year: true }] })
  expect(nodeOf(run, 'each').outputData).toMatchObject({ items: [{ twice: 40, at: 0 }] })
})
