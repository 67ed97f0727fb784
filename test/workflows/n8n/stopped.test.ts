import { expect, test } from 'vitest'
import { readTopics } from '../../n8n/cases.ts'
import { createDocument, editFields } from './documents.ts'
import { importDocument } from './importing.ts'

type Fields = Record<string, unknown>
type Document = { name: string; nodes: Fields[] }

const CORPUS = readTopics().flatMap(({ cases }) =>
  cases.flatMap(({ workflow, others = {} }) => [workflow, ...Object.values(others)] as Document[]),
)

const CHANGES: Record<string, (node: Fields) => Fields> = {
  'a type that n8n may have and Perdure does not': (node) => ({ ...node, type: 'n8n-nodes-base.unheardOf' }),
  'no parameters': (node) => ({ ...node, parameters: {} }),
  disabled: (node) => ({ ...node, disabled: true }),
}

/** The document with one of its nodes changed, for each of them. */
function changeEach({ nodes, ...rest }: Document, change: (node: Fields) => Fields) {
  return nodes.map((node) => ({
    node: String(node.name),
    document: { ...rest, nodes: nodes.map((other) => (other === node ? change(node) : other)) },
  }))
}

test.each(Object.entries(CHANGES))(
  'whichever node of the corpus has %s, there is a graph that can be saved',
  { tags: 'long' },
  (what, change) => {
    const refused: unknown[] = []
    const silent: unknown[] = []
    for (const whole of CORPUS) {
      for (const { node, document } of changeEach(whole, change)) {
        const { problems, report } = importDocument(document)!
        if (problems.length > 0) refused.push([whole.name, node, problems])
        // What was disabled in n8n has no problems.
        const counts = what.startsWith('a type') && !whole.nodes.find(({ name }) => name === node)?.disabled
        if (counts && report.problems.length === 0) silent.push([whole.name, node])
      }
    }
    expect(refused).toEqual([])
    expect(silent).toEqual([])
  },
)

const all = ['Start -> Loop', 'Loop:1 -> Body', 'Body -> Loop', 'Loop -> After']

function importLoop(
  head: Fields,
  more: Fields = {},
  body: [string, Fields?, Fields?] = editFields({ a: '1' }),
) {
  const nodes = {
    Start: ['manualTrigger'],
    Loop: ['splitInBatches@3', head, more],
    Body: body,
    After: editFields({ b: '2' }),
  } as Parameters<typeof createDocument>[0]
  return importDocument(createDocument(nodes, ...all))!
}

test.each<[string, Fields, string]>([
  ['the size of its batches', { batchSize: '={{ $json.n }}' }, 'size of its batches'],
  ['a size below one', { batchSize: 0 }, 'size of its batches'],
  ['that it begins again', { options: { reset: '={{ $json.again }}' } }, 'reset'],
])('a loop that cannot be imported for %s is stopped at its head', (_, head, said) => {
  const { problems, report, nodes, edges } = importLoop(head)
  expect(problems).toEqual([])
  expect(report.problems).toContainEqual(
    expect.objectContaining({ node: 'Loop', kind: 'node', message: expect.stringContaining(said) }),
  )
  expect(report.mapped).toContainEqual(
    expect.objectContaining({ node: 'Loop', as: 'STOP_AND_ERROR', state: 'stopped' }),
  )
  expect(nodes.filter(({ parentId }) => parentId !== undefined)).toEqual([])
  expect(edges).toContainEqual(expect.objectContaining({ source: 'Loop', target: 'Body' }))
  // The same in a workflow that never executes it.
  expect(importLoop(head, { disabled: true }).problems).toEqual([])
})

test('a trigger in a loop is stopped there, and the loop stays', () => {
  const { problems, report, nodes } = importLoop({}, {}, ['unheardOfTrigger'])
  expect(problems).toEqual([])
  expect(nodes.find(({ id }) => id === 'Body')).toMatchObject({ type: 'STOP_AND_ERROR', parentId: 'Loop' })
  expect(report.problems).toContainEqual(
    expect.objectContaining({ node: 'Body', message: expect.stringContaining('starts executions') }),
  )
})

test('a loop in more loops than are allowed is stopped', () => {
  const names = ['A', 'B', 'C', 'D', 'E', 'F', 'G']
  const nodes = Object.fromEntries(names.map((name) => [name, ['splitInBatches@3']]))
  const arrows = names.flatMap((name, at) => {
    const inner = names[at + 1] ?? 'Body'
    return [`${name}:1 -> ${inner}`, `${inner} -> ${name}`]
  })
  const given = { Start: ['manualTrigger'], ...nodes, Body: editFields({ a: '1' }) } as Parameters<
    typeof createDocument
  >[0]
  const { problems, report } = importDocument(createDocument(given, 'Start -> A', ...arrows))!
  expect(problems).toEqual([])
  expect(report.problems.map(({ message }) => message).join()).toContain('5 loops already')
})

test('a loop that n8n attaches to a node as its tool is no loop', () => {
  const nodes = {
    Start: ['manualTrigger'],
    Agent: ['unheardOf'],
    Loop: ['splitInBatches@3'],
  } as Parameters<typeof createDocument>[0]
  const document = createDocument(nodes, 'Start -> Agent')
  const attached = { Loop: { ai_tool: [[{ node: 'Agent', type: 'ai_tool', index: 0 }]] } }
  const connections = { ...document.connections, ...attached }
  expect(importDocument({ ...document, connections })!.problems).toEqual([])
})

test('a disabled node that Perdure does not have passes what comes to it by its first output alone', () => {
  const nodes = {
    Start: ['manualTrigger'],
    Ways: ['unheardOf', {}, { disabled: true }],
    First: editFields({ a: '1' }),
    Second: editFields({ b: '1' }),
  } as Parameters<typeof createDocument>[0]
  const arrows = ['Start -> Ways', 'Ways:0 -> First', 'Ways:1 -> Second']
  const { edges, problems } = importDocument(createDocument(nodes, ...arrows))!
  expect(problems).toEqual([])
  expect(edges.map(({ source, target }) => `${source} -> ${target}`)).toEqual([
    'Start -> Ways',
    'Ways -> First',
  ])
})
