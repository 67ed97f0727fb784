import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createDocument, editFields } from './documents.ts'
import { importDocument } from './importing.ts'

const TEMPLATES = ['orders', 'report', 'alarm', 'sources', 'batches', 'parent']

const readTemplate = (name: string) => {
  const raw = JSON.parse(readFileSync(new URL(`./${name}.json`, import.meta.url), 'utf8'))
  return Array.isArray(raw) ? raw[0] : raw
}

const junk = fc.oneof(
  fc.constantFrom(
    null,
    true,
    -1,
    1e9,
    '',
    '={{',
    '={{ $json. }}',
    '={{ $("x").all() }}',
    '__proto__',
    [],
    {},
    [[]],
  ),
  fc.jsonValue({ maxDepth: 3 }),
)

/** A copy of the document with `value` at a place that `picks` leads to. */
function spoil(document: unknown, picks: number[], value: unknown): unknown {
  const copy = structuredClone(document)
  let at = copy as Record<string, unknown>
  for (const pick of picks) {
    const keys = Object.keys(at)
    const key = keys[pick % Math.max(1, keys.length)]
    if (key === undefined) break
    const inner = at[key]
    if (typeof inner !== 'object' || inner === null || pick % 7 === 0) {
      at[key] = value
      break
    }
    at = inner as Record<string, unknown>
  }
  return copy
}

test('the first version of Loop Over Items, which does not loop by itself, becomes a placeholder', () => {
  const document = readTemplate('batches')
  const first = document.nodes.find(({ type }: { type: string }) => type.endsWith('splitInBatches'))
  first.typeVersion = 1
  const imported = importDocument(document)!
  expect(imported.problems).toEqual([])
  expect(imported.report.mapped).toContainEqual(
    expect.objectContaining({ node: first.name, as: 'STOP_AND_ERROR' }),
  )
  expect(imported.report.problems).toContainEqual(
    expect.objectContaining({ node: first.name, message: expect.stringContaining('noItemsLeft') }),
  )
})

describe('a way back to an earlier node', () => {
  const type = (name: string) =>
    ({ Start: 'manualTrigger', Loop: 'splitInBatches' })[name] ?? (name.startsWith('If') ? 'if' : 'noOp')
  /** A document with these connections, each `from > to` or `from:output > to`. */
  const connect = (links: string[], parameters: Record<string, unknown> = {}) => {
    const ends = links.map((link) => /^(\w+)(?::(\d))? > (\w+)$/.exec(link)!.slice(1))
    const names = [...new Set(ends.flatMap(([from, , to]) => [from!, to!]))]
    const ofNode = names.map(
      (name) => [name, { main: [] as { node: string; type: string; index: number }[][] }] as const,
    )
    const connections = Object.fromEntries(ofNode)
    for (const [from = '', output = '0', to = ''] of ends) {
      const { main } = connections[from]!
      while (main.length <= Number(output)) main.push([])
      main[Number(output)]!.push({ node: to, type: 'main', index: 0 })
    }
    const nodes = names.map((name) => ({
      ...{ name, type: `n8n-nodes-base.${type(name)}`, typeVersion: name === 'Loop' ? 3 : 1 },
      parameters: parameters[name] ?? {},
    }))
    return importDocument({ nodes, connections })!
  }
  const repeats = ({ nodes }: ReturnType<typeof connect>) =>
    nodes.filter((node) => node.type === 'REPEAT').map(({ id }) => id)
  const stops = ({ nodes }: ReturnType<typeof connect>) =>
    nodes.filter(({ type, id }) => type === 'STOP_AND_ERROR' && id.includes('__back')).length

  test.each([
    ['to the node itself', ['Start > A', 'A > If', 'If > End', 'If:1 > A'], ['A__again']],
    ['from a node without another way', ['Start > A', 'A > B', 'B > A'], ['A__again']],
    [
      'within another one',
      ['Start > A', 'A > B', 'B > If', 'If > IfOuter', 'If:1 > B', 'IfOuter:1 > A', 'IfOuter > End'],
      ['A__again', 'B__again'],
    ],
    [
      'around a loop',
      ['Start > A', 'A > Loop', 'Loop:1 > B', 'B > Loop', 'Loop > If', 'If > End', 'If:1 > A'],
      ['A__again'],
    ],
  ])('%s is a REPEAT', (_, links, ids) => {
    const graph = connect(links)
    expect([repeats(graph).sort(), stops(graph), graph.problems]).toEqual([ids, 0, []])
  })

  test.each([
    ['that several nodes lead into', ['Start > If', 'If > A', 'If:1 > B', 'A > B', 'B > IfEnd', 'IfEnd > A']],
    [
      'out of the middle of a loop to a node before it',
      ['Start > A', 'A > Loop', 'Loop:1 > B', 'B > If', 'If > Loop', 'If:1 > A', 'Loop > End'],
    ],
  ])('%s stops the execution there, and says so', (_, links) => {
    const graph = connect(links)
    expect(stops(graph)).toBeGreaterThan(0)
    expect(graph.report.problems).toContainEqual(
      expect.objectContaining({ kind: 'connection', message: expect.stringContaining('Perdure cannot') }),
    )
  })

  test('what is read behind a circle, and not in it, is a node behind it with the name and id in n8n', () => {
    const links = ['Start > A', 'A > If', 'If > End', 'If:1 > A']
    const { nodes } = connect(links, { End: { note: "={{ $('A').first().json.n }}" } })
    const found = nodes.filter(({ id }) => /^A(__inner)?$/.test(id))
    expect(found.map(({ id, name, parentId }) => [id, name, parentId])).toEqual([
      ['A__inner', 'A (in a round)', 'A__inner__again'],
      ['A', 'A', undefined],
    ])
  })
})

test('words that every JavaScript object knows mean nothing in a document', () => {
  const parameters: Record<string, [string, object]> = {
    Wait: ['wait@1.1', { unit: 'constructor' }],
    Summary: ['summarize@1', { fieldsToSummarize: { values: [{ aggregation: 'constructor', field: 'x' }] } }],
    Join: [
      'merge@2',
      { mode: 'combine', joinMode: 'constructor', mergeByFields: { values: [{ field1: 'x' }] } },
    ],
    Hook: ['webhook@2', { path: 'x', responseMode: 'constructor' }],
    Part: ['dateTime@2', { operation: 'extractDate', part: 'constructor' }],
    Switch: ['switch@1', { rules: { rules: [{ operation: 'constructor' }] } }],
    If: ['if@1', { conditions: { number: [{ operation: 'constructor' }] } }],
    All: ['aggregate@1', { aggregate: 'aggregateAllItemData', include: 'constructor' }],
    Set: editFields({
      a: '$now.plus(1, "constructor")',
      b: 'Math.constructor(1)',
      c: '$execution.constructor',
    }),
  }
  const document = createDocument(parameters as Parameters<typeof createDocument>[0])
  const settings = { constructor: 1, toString: 'v1', callerPolicy: 'constructor' }
  const imported = importDocument({ ...document, settings })!
  expect(imported.problems).toEqual([])
  expect(JSON.stringify(imported)).not.toMatch(/native code|NaN/)
  const reported = imported.report.problems.map(({ path }) => path)
  for (const key of Object.keys(settings)) expect(reported).toContain(`settings.${key}`)
  for (const node of ['Wait', 'Summary', 'Join', 'Hook', 'Part', 'All', 'Set'])
    expect(imported.report.problems).toContainEqual(expect.objectContaining({ node }))
})

test('whatever is wrong in a document, it is refused or becomes a graph that can be saved', () => {
  const spoils = fc.array(fc.tuple(fc.array(fc.nat(1_000), { minLength: 1, maxLength: 9 }), junk), {
    maxLength: 6,
  })
  fc.assert(
    fc.property(fc.constantFrom(...TEMPLATES), spoils, (name, all) => {
      const document = all.reduce<unknown>(
        (doc, [picks, value]) => spoil(doc, picks, value),
        readTemplate(name),
      )
      const imported = importDocument(document)
      expect(imported?.problems ?? []).toEqual([])
    }),
    { numRuns: 200 },
  )
})

test('however nodes are connected, they become a graph that can be saved', () => {
  const types = [
    'manualTrigger@1',
    'if@2',
    'switch@3',
    'splitOut@1',
    'splitInBatches@3',
    'merge@3',
    'httpRequest@4',
    'set@3.4',
    'aggregate@1',
    'filter@2',
    'code@2',
    'wait@1.1',
    'respondToWebhook@1',
    'limit@1',
  ]
  const arrow = fc.tuple(fc.nat(11), fc.nat(2), fc.nat(11), fc.nat(1))
  const kinds = fc.array(fc.constantFrom(...types), { minLength: 1, maxLength: 12 })
  fc.assert(
    fc.property(kinds, fc.array(arrow, { maxLength: 24 }), fc.boolean(), (kinds, arrows, handlesErrors) => {
      const nodes = Object.fromEntries(
        kinds.map((kind, i): [string, [string, object, object]] => [
          `N ${i}`,
          [
            kind,
            { fieldToSplitOut: 'x', url: "={{ $('N 1').item.json.u }}" },
            handlesErrors ? { onError: 'continueErrorOutput' } : {},
          ],
        ]),
      ) as Parameters<typeof createDocument>[0]
      const links = arrows
        .filter(([from, , to]) => from < kinds.length && to < kinds.length)
        .map(([from, output, to, input]) => `N ${from}:${output} -> N ${to}:${input}`)
      const imported = importDocument(createDocument(nodes, ...links))!
      expect(imported.problems).toEqual([])
      // Every node is in the report, even if a placeholder took its place.
      expect(imported.report.mapped.map(({ node }) => node).sort()).toEqual(Object.keys(nodes).sort())
      for (const { message } of imported.report.problems) {
        expect(message).toMatch(/\.$/)
        expect(message).not.toMatch(/undefined/)
      }
    }),
    { numRuns: 200 },
  )
})

test('headers of a response that a workflow may not set are left out and reported', () => {
  const node = (name: string, type: string, parameters: object) => ({
    id: name,
    name,
    type: `n8n-nodes-base.${type}`,
    typeVersion: 1.1,
    position: [0, 0],
    parameters,
  })
  const entries = [
    { name: 'X-Order', value: '={{ $json.id }}' },
    { name: 'Access-Control-Allow-Origin', value: '*' },
  ]
  const options = { responseHeaders: { entries } }
  const imported = importDocument({
    nodes: [
      node('Hook', 'webhook', { path: 'in', responseMode: 'responseNode' }),
      node('Respond', 'respondToWebhook', { respondWith: 'text', responseBody: 'ok', options }),
    ],
    connections: { Hook: { main: [[{ node: 'Respond', type: 'main', index: 0 }]] } },
  })!
  const respond = imported.nodes.find(({ type }) => type === 'RESPOND_TO_WEBHOOK')
  expect(Object.keys(respond!.config.headers as object)).toEqual(['x-order', 'content-type'])
  expect(imported.report.problems).toMatchObject([
    {
      node: 'Respond',
      kind: 'parameter',
      message: expect.stringMatching(
        /^The header "Access-Control-Allow-Origin" was left out: it cannot be set/,
      ),
      original: '*',
    },
  ])
})

test("n8n's own node reads what the team has, says that it looks otherwise, and stops where it changes something", () => {
  const nodes: Parameters<typeof createDocument>[0] = {
    Start: ['manualTrigger'],
    All: ['n8n', { filters: {} }],
    Failed: ['n8n', { resource: 'execution', filters: { status: 'error' }, limit: 5 }],
    One: ['n8n', { operation: 'get', workflowId: { __rl: true, mode: 'id', value: '={{ $json.id }}' } }],
    Run: ['n8n', { resource: 'execution', operation: 'get', executionId: '={{ $json.id }}', options: {} }],
    Tagged: ['n8n', { filters: { tags: 'mcp' } }],
    Off: ['n8n', { operation: 'deactivate', workflowId: 'x' }],
    Other: ['n8n', { operation: 'get', workflowId: 'x' }],
  }
  const { nodes: made, report } = importDocument(
    createDocument(
      nodes,
      ...Object.keys(nodes)
        .slice(1)
        .map((name) => `Start -> ${name}`),
    ),
  )!
  const shown = Object.fromEntries(made.map(({ id, type, config }) => [id, [type, config]]))
  const read = (config: object) => ['TEAM_READ', config]
  expect(shown).toMatchObject({
    All: read({ operation: 'listWorkflows', whole: true, output: 'list' }),
    Failed: read({ operation: 'listExecutions', status: 'FAILED', output: 'list', limit: 5 }),
    One: read({ operation: 'getWorkflow', id: '={{ $json.id }}' }),
    Run: read({ operation: 'getExecution', id: '={{ $json.id }}' }),
    Tagged: ['STOP_AND_ERROR', {}],
    Off: ['STOP_AND_ERROR', {}],
    Other: ['STOP_AND_ERROR', {}],
  })
  const said = (node: string) =>
    report.problems.filter((one) => one.node === node).map(({ message }) => message)
  expect(said('All').join()).toContain('look otherwise than in n8n')
  expect(said('Tagged').join()).toContain('by a part of their names')
  expect(said('Off').join()).toContain('by the API')
})
