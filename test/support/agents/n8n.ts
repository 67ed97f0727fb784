/** A node that n8n attaches to another one. */
export type Part = {
  name: string
  type: string
  kind: string
  parameters?: object
  typeVersion?: number
  credentials?: object
  disabled?: boolean
}
export type Start = 'manualTrigger' | 'chatTrigger'

const BASE = ['manualTrigger', 'httpRequestTool', 'postgresTool', 'mySqlTool', 'set']

/** A tool of an agent. */
export const tool = (name: string, type: string, parameters: object, typeVersion = 1.3): Part => ({
  ...{ name, type, kind: 'ai_tool', parameters, typeVersion },
})

/** A workflow of n8n with an agent, its model and what else is attached to it. */
export function agentDocument(parts: Part[], parameters: object = {}, start: Start = 'manualTrigger') {
  const model: Part = {
    ...{ name: 'Model', type: 'lmChatOpenAi', kind: 'ai_languageModel', typeVersion: 1.2 },
    parameters: { model: { __rl: true, mode: 'id', value: 'gpt-4o-mini' }, options: {} },
    credentials: { openAiApi: { id: 'abc', name: 'Our OpenAI' } },
  }
  const node = ({ name, type, kind: _, ...more }: Omit<Part, 'kind'> & { kind?: string }) => ({
    ...{ name, typeVersion: 1, position: [0, 0], parameters: {} },
    type: `${BASE.includes(type) ? 'n8n-nodes-base' : '@n8n/n8n-nodes-langchain'}.${type}`,
    ...more,
  })
  const all = [model, ...parts]
  const to = (type: string) => [[{ node: 'Agent', type, index: 0 }]]
  return {
    name: 'an agent',
    nodes: [
      node({ name: 'Start', type: start }),
      node({ name: 'Agent', type: 'agent', typeVersion: 3, parameters }),
      ...all.map(node),
    ],
    connections: {
      Start: { main: to('main') },
      ...Object.fromEntries(all.map(({ name, kind }) => [name, { [kind]: to(kind) }])),
    },
  }
}
