import type { Random } from '../../simulator/random.ts'
import { takes } from '../../support/agents/agents.ts'
import type { Graph } from '../../support/client.ts'
import { edges } from '../../support/engine/graphs.ts'
import type { World } from './world.ts'

/** What the graphs refer to. */
export type Places = { world: World; credentialId: string; databaseId: string; childId: string }

/** A random graph with nodes that ask models, and what it ends with. */
export type ModelGraph = {
  name: string
  graph: Graph
  status: 'SUCCESS' | 'FAILED'
  turns: Record<string, string[][]>
}

type Nodes = Graph['nodes']

const STAGES = [
  'llm',
  'json',
  'twice',
  'classify',
  'extract',
  'summary',
  'long',
  'agent',
  'agent',
  'agent',
  'pair',
  'loop',
]
const TOOLS = ['pay', 'mark', 'look', 'ask', 'code', 'note', 'child', 'run', 'send', 'put']

const start = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }

/** The tools of every agent. */
function listTools({ world, databaseId, childId }: Places): object[] {
  const http = (name: string, method: string, more: object = {}) => ({
    ...{ type: 'HTTP', name, description: name, parameters: takes('key'), method },
    ...{ url: `${world.site.origin}/${name}/{{ $args.key }}`, ...more },
  })
  const told = (name: string) => ({ name, description: name, parameters: takes('key') })
  return [
    http('pay', 'POST'),
    http('mark', 'POST', { idempotent: true }),
    http('look', 'GET'),
    http('ask', 'POST', { approval: true }),
    { type: 'CODE', ...told('code'), code: 'return { echo: $args.key }' },
    {
      ...{ type: 'DATABASE_QUERY', ...told('note'), credentialId: databaseId },
      ...{
        query: 'insert into notes (key) values ($1) returning pg_sleep(1)::text',
        params: ['{{ $args.key }}'],
      },
    },
    { type: 'SUB_WORKFLOW', ...told('child'), workflowId: childId },
    { type: 'RUN', nodes: ['seed'] },
    { type: 'MCP', name: 'once', url: world.servers.once.url },
    { type: 'MCP', name: 'again', url: world.servers.again.url, idempotent: true },
  ]
}

export function drawTurns(random: Random, most = 4): string[][] {
  return Array.from({ length: 1 + random.below(most) }, () =>
    Array.from({ length: 1 + random.below(3) }, () => random.pick(TOOLS)),
  )
}

/** A prompt that tells the vendor what to answer. */
const planPrompt = (node: string, kind: string, turns: string[][] = [], item = 'x') =>
  `PLAN {{ $execution.id }} ${node} ${item} ${kind} ${JSON.stringify(turns)}`

export function drawModelGraph(random: Random, number: number, places: Places): ModelGraph {
  const asks = { credentialId: places.credentialId, model: 'loop-1' }
  const nodes: Nodes = [start, { id: 'seed', type: 'SET', config: { values: { n: '{{ $input.n }}' } } }]
  const arrows = ['start -> seed']
  const turns: Record<string, string[][]> = {}
  let ends = 'seed'

  const agent = (id: string, item?: string) => {
    turns[id] = drawTurns(random)
    const config = { ...asks, instructions: 'Go on.', maxSteps: 60, tools: listTools(places) }
    return { id, type: 'AI_AGENT', config: { ...config, prompt: planPrompt(id, 'agent', turns[id], item) } }
  }
  const llm = (id: string, kind = 'text', more: object = {}, item?: string) => ({
    id,
    type: 'LLM',
    config: { ...asks, prompt: planPrompt(id, kind, [], item), ...more },
  })
  const object = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] }
  const add = (node: Nodes[number], from = ends) => {
    nodes.push(node)
    arrows.push(`${from} -> ${node.id}`)
    return node.id
  }

  const count = 1 + random.below(4)
  for (let at = 1; at <= count; at++) {
    const stage = random.pick(STAGES)
    const id = `${stage}${at}`
    if (stage === 'llm') ends = add(llm(id))
    else if (stage === 'json' || stage === 'twice')
      ends = add(llm(id, stage, { output: 'json', schema: object }))
    else if (stage === 'classify') {
      const categories = [{ name: 'a' }, { name: 'b' }]
      add({ id, type: 'CLASSIFY', config: { ...asks, input: planPrompt(id, 'classify'), categories } })
      ends = `${id}:b`
    } else if (stage === 'extract')
      ends = add({ id, type: 'EXTRACT', config: { ...asks, input: planPrompt(id, 'json'), schema: object } })
    else if (stage === 'summary')
      ends = add({ id, type: 'SUMMARIZE', config: { ...asks, input: planPrompt(id, 'summary') } })
    else if (stage === 'long') {
      const part = (n: number) =>
        `${planPrompt(id, 'summary')} part ${n}\n{{ $string($pad('', 20000, 'word ')) }}`
      const input = [1, 2, 3].map(part).join('\n\n')
      ends = add({ id, type: 'SUMMARIZE', config: { ...asks, input } })
    } else if (stage === 'agent') ends = add(agent(id))
    else if (stage === 'pair') {
      add(agent(`${id}a`))
      add(llm(`${id}b`))
      ends = `${id}a ${id}b`
      const join = { id, type: 'NO_OP', config: {} }
      ends = add(join)
    } else {
      const loop = { id, type: 'FOR_EACH', config: { items: [0, 1, 2], concurrency: 2 } }
      ends = add(loop)
      const item = '{{ $item }}'
      const inner = random.chance(0.5) ? agent(`${id}in`, item) : llm(`${id}in`, 'text', {}, item)
      nodes.push({ ...inner, parentId: id })
    }
  }
  add({ id: 'end', type: 'NO_OP', config: {} })
  return { name: `graph ${number}`, graph: { nodes, edges: edges(...arrows) }, status: 'SUCCESS', turns }
}

/** A model that refuses what it is asked. */
export function refusedGraph({ credentialId }: Places): ModelGraph {
  const config = { credentialId, model: 'loop-1', prompt: planPrompt('refused', 'refuse') }
  return {
    name: 'refused',
    graph: { nodes: [start, { id: 'refused', type: 'LLM', config }], edges: edges('start -> refused') },
    status: 'FAILED',
    turns: {},
  }
}

/** Nodes after a CHAT_TRIGGER named `chat` of which the one named `reply` replies. */
export function chatGraph(places: Places, turns: string[][] | undefined): Graph {
  const asks = { credentialId: places.credentialId, model: 'loop-1' }
  const topic = { id: 'topic', type: 'LLM', config: { ...asks, prompt: planPrompt('topic', 'text') } }
  const prompt = `${planPrompt('reply', turns ? 'agent' : 'text', turns)} {{ $trigger.message }}`
  const reply = turns
    ? {
        id: 'reply',
        type: 'AI_AGENT',
        config: { ...asks, instructions: 'Go on.', maxSteps: 60, tools: listTools(places), prompt },
      }
    : { id: 'reply', type: 'LLM', config: { ...asks, prompt } }
  const seed = { id: 'seed', type: 'SET', config: { values: { n: 1 } } }
  return {
    nodes: [{ id: 'chat', type: 'CHAT_TRIGGER', config: {} }, seed, topic, reply],
    edges: edges('chat -> seed', 'seed -> topic', 'topic -> reply'),
    settings: { chatHistoryTokens: 1_000 },
  }
}
