import type { Installation } from '../support/engine/installation.ts'

/** A graph that is executed again and again, and what every execution of it must come to for its input `n`. */
export type Kind = {
  name: string
  workflowId: string
  status: 'SUCCESS' | 'FAILED'
  output: (n: number) => unknown
  /** How many node records an execution has that ends SUCCESS. */
  records: number
  mayCancel: boolean
}

type Drawn = Omit<Kind, 'workflowId'> & { nodes: unknown[]; edges: [string, string][] }

const start = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }
const set = (id: string, values: Record<string, string>, more = {}) => ({
  id,
  type: 'SET',
  config: { values },
  ...more,
})

/** Saves one workflow of every kind. Their calls go to the target at `url`. */
export async function createKinds(host: Installation, url: string): Promise<Kind[]> {
  const call = (id: string, path: string, more = {}) => ({
    id,
    type: 'HTTP_REQUEST',
    config: { method: 'POST', url: url + path },
    ...more,
  })
  const once = { retry: { maxAttempts: 1 } }
  const drawn: Drawn[] = [
    {
      name: 'calls',
      status: 'SUCCESS',
      mayCancel: true,
      nodes: [
        start,
        set('n', { n: '{{ $input.n }}' }),
        call('one', '/slow?ms=800&key={{ $nodes.n.n }}', once),
        call('two', '/slow?ms=300&key={{ $nodes.n.n }}', once),
        set('last', { n: '{{ $nodes.n.n }}', keys: '{{ $nodes.one.body.key & $input.body.key }}' }),
      ],
      edges: [
        ['start', 'n'],
        ['n', 'one'],
        ['one', 'two'],
        ['two', 'last'],
      ],
      output: (n) => ({ n, keys: `${n}${n}` }),
      records: 5,
    },
    {
      name: 'loop',
      status: 'SUCCESS',
      mayCancel: true,
      nodes: [
        start,
        { id: 'each', type: 'FOR_EACH', config: { items: '{{ [1..6] }}', concurrency: 2 } },
        call('item', '/slow?ms=250&key={{ $item }}', { parentId: 'each', ...once }),
        set('key', { key: '{{ $input.body.key }}' }, { parentId: 'each' }),
        set('last', { keys: '{{ $join($nodes.each.items.key) }}' }),
      ],
      edges: [
        ['start', 'each'],
        ['item', 'key'],
        ['each', 'last'],
      ],
      output: () => ({ keys: '123456' }),
      records: 15,
    },
    {
      name: 'pure loop',
      status: 'SUCCESS',
      mayCancel: false,
      nodes: [
        start,
        { id: 'each', type: 'FOR_EACH', config: { items: '{{ [1..1500] }}' } },
        set('twice', { n: '{{ $item * 2 }}' }, { parentId: 'each' }),
        set('last', { sum: '{{ $sum($nodes.each.items.n) }}' }),
      ],
      edges: [
        ['start', 'each'],
        ['each', 'last'],
      ],
      output: () => ({ sum: 1_500 * 1_501 }),
      records: 1_503,
    },
    {
      name: 'wait and large answer',
      status: 'SUCCESS',
      mayCancel: true,
      nodes: [
        start,
        { id: 'wait', type: 'WAIT', config: { durationMs: 2_000 } },
        call('big', '/big?bytes=400000', once),
        set('last', { length: '{{ $length($input.body.text) }}' }),
      ],
      edges: [
        ['start', 'wait'],
        ['wait', 'big'],
        ['big', 'last'],
      ],
      output: () => ({ length: 400_000 }),
      records: 4,
    },
    {
      name: 'failing call',
      status: 'FAILED',
      mayCancel: true,
      nodes: [start, call('none', '/none', once)],
      edges: [['start', 'none']],
      output: () => null,
      records: 2,
    },
    {
      name: 'long call',
      status: 'SUCCESS',
      mayCancel: true,
      nodes: [
        start,
        call('long', '/slow?ms=12000&key=long', once),
        set('last', { key: '{{ $input.body.key }}' }),
      ],
      edges: [
        ['start', 'long'],
        ['long', 'last'],
      ],
      output: () => ({ key: 'long' }),
      records: 3,
    },
  ]
  return Promise.all(
    drawn.map(async ({ nodes, edges, ...kind }) => {
      const joined = edges.map(([source, target]) => ({ source, target }))
      const graph = { nodes, edges: joined } as Parameters<Installation['create']>[0]
      return { ...kind, workflowId: await host.create(graph) }
    }),
  )
}
