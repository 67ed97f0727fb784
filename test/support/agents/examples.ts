import type { Example } from '../engine/graphs.ts'

const start = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }
const key = { type: 'object', properties: { key: { type: 'string' } }, required: ['key'] }
const credentials = { CREDENTIAL_DEMO: { type: 'DEMO', data: {} } }
const demo = { credentialId: 'CREDENTIAL_DEMO', model: 'demo' }

/** Examples with agents, whose model is the one that answers by rules. `url` is as in `examples`. */
export function agentExamples(url: string): Record<string, Example> {
  const tool = { type: 'HTTP', description: 'Looks something up', parameters: key, method: 'GET' }
  const look = { ...tool, name: 'look', url: `${url}/slow?ms=1&key={{ $args.key }}` }
  const post = { ...tool, name: 'post', url: `${url}/slow?ms=1&key={{ $args.key }}`, method: 'POST' }
  const agent = (id: string, prompt: string, more: object = {}, node: object = {}) => ({
    ...{ id, type: 'AI_AGENT', ...node },
    config: { ...demo, instructions: 'Help.', prompt, tools: [look, post], ...more },
  })
  return {
    agents: {
      credentials,
      nodes: [
        start,
        agent('agent', 'use the tool look with {"key": "$n"} 3 times'),
        { id: 'each', type: 'FOR_EACH', config: { items: ['a', 'b'] } },
        agent(
          'inner',
          'use the tool post with {"key": "{{ $item }}"}, then use the tool look',
          {},
          { parentId: 'each' },
        ),
        agent(
          'lost',
          'use the tool look with {"key": "x"} 9 times',
          { maxSteps: 3 },
          { onError: 'CONTINUE' },
        ),
        { id: 'short', type: 'SUMMARIZE', config: { ...demo, input: 'It rains. It pours.' } },
        { id: 'end', type: 'NO_OP', config: {} },
      ],
      edges: [
        ...['agent', 'each', 'lost', 'short'].map((target) => ({ source: 'start', target })),
        ...['agent', 'each', 'lost', 'short'].map((source) => ({ source, target: 'end' })),
      ],
      status: 'SUCCESS',
      records: {
        start: 'SUCCESS',
        agent: 'SUCCESS',
        each: 'SUCCESS',
        inner: 'SUCCESS',
        // The last record is that of its last turn: the agent itself has failed.
        lost: 'FAILED',
        short: 'SUCCESS',
        end: 'SUCCESS',
      },
    },
    chat: {
      credentials,
      nodes: [
        { id: 'start', type: 'CHAT_TRIGGER', config: {} },
        {
          id: 'topic',
          type: 'LLM',
          config: { ...demo, prompt: 'Say: a question about {{ $input.message }}' },
        },
        agent('agent', '{{ $trigger.message }}'),
        { id: 'after', type: 'SET', config: { values: { topic: '{{ $nodes.topic.text }}' } } },
      ],
      edges: [
        { source: 'start', target: 'topic' },
        { source: 'topic', target: 'agent' },
        { source: 'agent', target: 'after' },
      ],
      message: 'use the tool look with {"key": "$n"} 2 times',
      status: 'SUCCESS',
      records: { start: 'SUCCESS', topic: 'SUCCESS', agent: 'SUCCESS', after: 'SUCCESS' },
    },
    'asking agent': {
      credentials,
      nodes: [
        start,
        agent('agent', 'use the tool post with {"key": "$n"} 2 times', {
          tools: [{ ...post, approval: true }],
        }),
      ],
      edges: [{ source: 'start', target: 'agent' }],
      status: 'SUCCESS',
      records: { start: 'SUCCESS', agent: 'SUCCESS' },
      meddle: { how: 'answer' },
    },
  }
}
