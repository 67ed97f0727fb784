import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { UNNAMED_CREDENTIAL } from '../../../workflows/n8n/ai/asking.ts'
import { agentDocument, type Part, type Start, tool } from '../../support/agents/n8n.ts'
import { importDocument } from './importing.ts'

const CREDENTIAL = randomUUID()
const CHILD = randomUUID()

function convert(parts: Part[], parameters: object = {}, start: Start = 'manualTrigger') {
  const known: Record<string, string> = { abc: CREDENTIAL, 'db-1': CREDENTIAL, child: CHILD }
  const find = (key: string) => known[key]
  const { problems, report, ...graph } = importDocument(agentDocument(parts, parameters, start), find, find)!
  expect(problems).toEqual([])
  const agent = graph.nodes.find(({ name }) => name === 'Agent' || name === 'Agent (start)')!
  return { graph, agent, report, told: JSON.stringify(report.problems) }
}

const toolOf = (part: Part) => {
  const { agent, told } = convert([part])
  expect(agent.type, told).toBe('AI_AGENT')
  return (agent.config.tools as Record<string, unknown>[])[0]!
}

test('an agent with tools becomes an AI_AGENT with its instructions, its prompt and its steps', () => {
  const { agent, report } = convert(
    [tool('Double it', 'toolCode', { description: 'Doubles', jsCode: 'return "1"' })],
    {
      ...{ promptType: 'define', text: '=Do {{ $json.v }}' },
      options: { systemMessage: 'Be brief', maxIterations: 5 },
    },
  )
  expect(agent).toMatchObject({
    type: 'AI_AGENT',
    perItem: true,
    retry: { maxAttempts: 1 },
    config: {
      ...{
        credentialId: CREDENTIAL,
        model: 'gpt-4o-mini',
        instructions: 'Be brief',
        prompt: '=Do {{ $json.v }}',
      },
      ...{ maxSteps: 10, into: { field: 'output', keep: false } },
      tools: [{ type: 'CODE', name: 'Double_it', description: 'Doubles' }],
    },
  })
  expect(report.mapped.map(({ node, as, state }) => [node, as, state])).toContainEqual([
    'Double it',
    'AI_AGENT',
    'works',
  ])
})

test('a tool without a counterpart stops the execution, and every one of them is named with its reason', () => {
  const { agent, told } = convert([
    tool('Vectors', 'toolVectorStore', {}),
    tool('Snake', 'toolCode', { description: 'x', language: 'python', pythonCode: 'return 1' }),
    tool('Old', 'mcpClientTool', { sseEndpoint: 'http://x.test/sse' }, 1),
    tool('Free', 'postgresTool', { operation: 'executeQuery', query: "={{ $fromAI('sql') }}" }),
  ])
  expect(agent.type).toBe('STOP_AND_ERROR')
  for (const reason of [
    /Vectors.*no such tool/,
    /Snake.*python/,
    /Old.*SSE/,
    /Free.*the model writes its SQL/,
  ])
    expect(told).toMatch(reason)
})

test('a disabled tool is no tool', () => {
  const { agent } = convert([{ ...tool('Sums', 'toolCalculator', {}), disabled: true }])
  expect(agent.type).toBe('LLM')
})

test('$fromAI becomes $args, with a schema of its names, types, descriptions and fallbacks', () => {
  const made = toolOf(
    tool(
      'Send it',
      'httpRequestTool',
      {
        ...{
          method: 'POST',
          url: 'http://x.test/send',
          toolDescription: 'Sends',
          sendBody: true,
          specifyBody: 'json',
        },
        ...{
          sendQuery: true,
          queryParameters: {
            parameters: [{ name: 'n', value: "={{ $fromAI('n', 'how, many', 'number', 3) }}" }],
          },
        },
        jsonBody:
          '={ "who": "Dear {{ $fromAI("name", `the "name"`).toUpperCase() }}!", "tags": {{ $fromai(\'tags\', \'\', \'json\') }}, "at": "{{ $now }}", "yes": {{ $fromAI(\'yes\', undefined, \'boolean\') }}, "raw": {{ JSON.stringify($fromAI("name", `the "name"`)) }} }',
      },
      4.2,
    ),
  )
  expect(made).toEqual({
    ...{
      type: 'HTTP',
      name: 'Send_it',
      description: 'Sends',
      method: 'POST',
      url: 'http://x.test/send',
      bodyType: 'json',
    },
    query: { n: '={{ ($args["n"] ?? 3) }}' },
    body: {
      who: '=Dear {{ $args["name"].toUpperCase() }}!',
      tags: '={{ $args["tags"] }}',
      at: '={{ $now }}',
      yes: '={{ $args["yes"] }}',
      raw: expect.stringMatching(
        /return JSON\.parse\(value\) .* return \$fail\("a value of the body is no JSON"\) .*\(JSON\.stringify\(\$args\["name"\]\)\)/,
      ),
    },
    parameters: {
      type: 'object',
      properties: {
        n: { type: 'number', description: 'how, many', default: 3 },
        name: { type: 'string', description: 'the "name"' },
        tags: {
          anyOf: [
            { type: 'object', minProperties: 1 },
            { type: 'array', minItems: 1 },
          ],
        },
        yes: { type: 'boolean' },
      },
      required: ['name', 'tags', 'yes'],
      additionalProperties: false,
    },
  })
})

test.each([
  ['={{ $fromAI(name) }}', 'what is computed'],
  ["={{ $fromAI('a b') }}", 'not valid'],
  ["={{ $fromAI('a', '', 'date') }}", 'type \\"date\\"'],
  ["={{ $fromAI('a', 'x') + $fromAI('a', 'y') }}", 'in two ways'],
  [`={{ ${"$fromAI('a') + ".repeat(200)}1 }}`, 'more than 100 times'],
])('%s is refused with its reason', (value, reason) => {
  const query = { sendQuery: true, queryParameters: { parameters: [{ name: 'q', value }] } }
  const { agent, told } = convert([tool('Get', 'httpRequestTool', { url: 'http://x.test/', ...query }, 4.2)])
  expect(agent.type).toBe('STOP_AND_ERROR')
  expect(told).toContain(reason)
})

test('the older tool for requests: placeholders and parameters of the model', () => {
  const made = toolOf(
    tool(
      'Item',
      'toolHttpRequest',
      {
        ...{ toolDescription: 'Gets', url: 'http://x.test/items/{id}', sendQuery: true, method: 'POST' },
        parametersQuery: {
          values: [
            { name: 'lang', valueProvider: 'modelOptional' },
            { name: 'v', valueProvider: 'fieldValue', value: '2' },
          ],
        },
        ...{ sendBody: true, specifyBody: 'json', jsonBody: '{"a": {a}, "b": "x {b}"}' },
        placeholderDefinitions: { values: [{ name: 'id', description: 'its number', type: 'number' }] },
      },
      1.1,
    ),
  )
  expect(made).toMatchObject({
    url: '=http://x.test/items/{{ $args["id"] }}',
    query: { lang: '={{ $args["lang"] }}', v: '2' },
    body: { a: '={{ $args["a"] }}', b: '=x {{ $args["b"] }}' },
    parameters: {
      properties: { id: { type: 'number', description: 'its number' }, lang: { type: 'string' } },
      required: ['id', 'a', 'b'],
    },
  })
})

test('statements of databases get the arguments as parameters, never as a part of the SQL', () => {
  const credentials = { postgres: { id: 'db-1', name: 'Ours' } }
  const query =
    "=select * from t where a = {{ $fromAI('a') }} and b = '{{ $fromAI('b') }}' limit {{ $fromAI('n', '', 'number') }}"
  const made = toolOf({
    ...tool('Find', 'postgresTool', { operation: 'executeQuery', query, toolDescription: 'Finds' }),
    credentials,
  })
  expect(made).toMatchObject({
    ...{ type: 'DATABASE_QUERY', credentialId: CREDENTIAL },
    query: 'select * from t where a = $1 and b = $2 limit $3',
    params: ['={{ $args["a"] }}', `={{ [($args["b"])].join('') }}`, '={{ $args["n"] }}'],
  })
  const replaced = { queryReplacement: "={{ $fromAI('a') }}, {{ $fromAI('b') }}" }
  const mysql = toolOf(
    tool('Find', 'mySqlTool', {
      operation: 'executeQuery',
      query: 'select ? + ?',
      options: replaced,
      toolDescription: 'x',
    }),
  )
  expect(mysql).toMatchObject({
    query: 'select ? + ?',
    params: ['={{ $args["a"] }}', '={{ $args["b"] }}'],
    credentialId: UNNAMED_CREDENTIAL,
  })
  const within = convert([
    tool('Find', 'postgresTool', {
      operation: 'executeQuery',
      toolDescription: 'x',
      query: "=select * from {{ $fromAI('a') }}",
    }),
  ])
  expect(within.told).toContain('a name or a piece of SQL in its statement')
  const text = toolOf(
    tool('Find', 'postgresTool', {
      operation: 'executeQuery',
      toolDescription: 'x',
      query: "=select 1 where name like '%{{ $fromAI('a') }}%'",
    }),
  )
  expect(text).toMatchObject({
    query: 'select 1 where name like $1',
    params: [`={{ ["%", ($args["a"]), "%"].join('') }}`],
  })
  const table = convert([tool('Find', 'postgresTool', { operation: 'select', toolDescription: 'x' })])
  expect(table.told).toContain('does \\"select\\" with a table')
})

test('a data table as a tool takes the arguments of the model', () => {
  const made = toolOf(
    tool('Find them', 'dataTableTool', {
      ...{ operation: 'get', toolDescription: 'Finds', dataTableId: { mode: 'name', value: 'customers' } },
      filters: { conditions: [{ keyName: 'name', condition: 'like', keyValue: "={{ $fromAI('who') }}" }] },
    }),
  )
  expect(made).toMatchObject({
    ...{ type: 'DATA_TABLE', name: 'Find_them', table: 'customers', operation: 'select', limit: 50 },
    where: [{ column: 'name', op: 'contains', value: expect.stringContaining('$args["who"]') }],
    parameters: { properties: { who: { type: 'string' } } },
  })
  expect(made).not.toHaveProperty('output')
})

test('MCP servers and workflows as tools', () => {
  const made = toolOf(
    tool(
      'Our server',
      'mcpClientTool',
      {
        endpointUrl: 'http://x.test/mcp',
        include: 'selected',
        includeTools: ['a', 'b'],
        options: { timeout: 5_000 },
      },
      1.2,
    ),
  )
  expect(made).toEqual({
    type: 'MCP',
    name: 'Our_server',
    url: 'http://x.test/mcp',
    include: ['a', 'b'],
    timeoutMs: 5_000,
  })
  const inputs = {
    mappingMode: 'defineBelow',
    schema: [{ id: 'city' }],
    value: { city: "={{ $fromAI('city') }}", fixed: 'x' },
  }
  expect(
    toolOf(
      tool(
        'Plan',
        'toolWorkflow',
        { description: 'Plans', workflowId: { value: 'child' }, workflowInputs: inputs },
        2.2,
      ),
    ),
  ).toMatchObject({
    ...{ type: 'SUB_WORKFLOW', workflowId: CHILD, input: { city: '={{ $args["city"] }}', fixed: 'x' } },
    parameters: { properties: { city: { type: 'string' } } },
  })
  expect(
    toolOf(tool('Plan', 'toolWorkflow', { name: 'plan', description: 'Plans', workflowId: 'child' }, 1.1)),
  ).toMatchObject({
    ...{ name: 'plan', input: { query: '={{ $args["input"] }}' } },
    parameters: { properties: { input: { type: 'string' } } },
  })
  expect(
    convert([tool('Plan', 'toolWorkflow', { description: 'x', workflowId: 'nobody' }, 2.2)]).told,
  ).toContain('does not say which workflow replaces it')
})

test("in a chat the agent replies: on no items, with its text, and n8n's output behind it", () => {
  const { agent, graph, told } = convert([tool('Think', 'toolThink', {})], {}, 'chatTrigger')
  expect(agent).toMatchObject({ type: 'AI_AGENT', config: { prompt: '={{ $json.chatInput }}' } })
  expect(agent.perItem).toBeUndefined()
  expect(agent.config.into).toBeUndefined()
  expect(graph.nodes.find(({ name }) => name === 'Agent')).toMatchObject({
    type: 'TRANSFORM',
    config: { expression: '{"output": $input.text}' },
  })
  expect(told).toContain('has no memory')
})

test('kinds of agents that there are not, and settings without a counterpart, are named', () => {
  expect(convert([], { agent: 'sqlAgent' }).agent.type).toBe('STOP_AND_ERROR')
  const { told } = convert([tool('Think', 'toolThink', {})], {
    options: { returnIntermediateSteps: true, batching: { delayBetweenBatches: 5 } },
  })
  expect(told).toContain('returnIntermediateSteps')
  expect(told).toContain('batching')
})

test('an agent with a parser has its answer brought into the form of the schema by an EXTRACT', () => {
  const parser: Part = {
    name: 'Parser',
    type: 'outputParserStructured',
    kind: 'ai_outputParser',
    parameters: { jsonSchemaExample: '{"n": 1}' },
  }
  const { agent, graph, told } = convert([tool('Think', 'toolThink', {}), parser])
  expect(agent.type).toBe('AI_AGENT')
  expect(graph.nodes.find(({ name }) => name === 'Agent')).toMatchObject({
    ...{ type: 'EXTRACT', perItem: true },
    config: {
      input: '={{ $json.output }}',
      schema: { properties: { n: { type: 'number' } } },
      into: { field: 'output', keep: false },
    },
  })
  expect(told).toContain('an EXTRACT behind the agent')
})

test("memories of every kind keep n8n's keys and windows; those of one kind are shared", () => {
  const memoryOf = (type: string, parameters: object, typeVersion: number) => {
    const memory: Part = { ...tool('Memory', type, parameters, typeVersion), kind: 'ai_memory' }
    const { agent, told } = convert([tool('Think', 'toolThink', {}), memory], {
      ...{ promptType: 'define', text: 'x' },
    })
    return { memory: agent.config.memory, told, type: agent.type }
  }
  const custom = { sessionIdType: 'customKey', sessionKey: '={{ $json.from }}' }
  for (const [type, parameters, version, memory] of [
    ['memoryBufferWindow', {}, 1, { key: 'chat_history', messages: 10, days: 1, name: 'memoryBufferWindow' }],
    ['memoryBufferWindow', {}, 1.1, { key: '={{ $json.sessionId }}', messages: 10 }],
    [
      'memoryBufferWindow',
      { ...custom, contextWindowLength: 20 },
      1.3,
      { key: '={{ $json.from }}', messages: 40 },
    ],
    ['memoryBufferWindow', {}, 1.4, { key: '={{ $json.sessionId }}', name: 'Memory' }],
    ['memoryPostgresChat', custom, 1, { messages: 200, days: 3650 }],
    [
      'memoryPostgresChat',
      { ...custom, tableName: 'said' },
      1.3,
      { messages: 10, name: 'memoryPostgresChat said' },
    ],
    ['memoryRedisChat', { ...custom, sessionTTL: 100_000 }, 1.5, { days: 2 }],
  ] as const) {
    const found = memoryOf(type, parameters, version)
    expect(found.memory, `${type} ${version}: ${found.told}`).toMatchObject(memory)
    expect(found.told).toMatch(/Perdure keeps it anew, sealed/)
  }
  expect(memoryOf('memoryBufferWindow', { sessionIdType: 'customKey' }, 1.3)).toMatchObject({
    type: 'STOP_AND_ERROR',
    told: expect.stringMatching(/has no key/),
  })
})

test('tools that n8n brings along', () => {
  const calculator = toolOf(tool('My sums', 'toolCalculator', {}))
  expect(calculator).toMatchObject({ type: 'CODE', name: 'My_sums' })
  const calculate = (input: string) => new Function('$args', String(calculator.code))({ input }) as string
  for (const [text, value] of [
    ['2 + 3 * 4', '14'],
    ['-(2 ^ 3 ^ 2) / 4', '-128'],
    ['sqrt(16) + max(1, 2, PI)', String(4 + Math.PI)],
    ['10 % 4 - -1', '3'],
    ['5! / 1e1', '12'],
    ['2 ** 0.5', String(Math.SQRT2)],
  ])
    expect(calculate(text!), text).toBe(value)
  for (const text of ['', '2 +', 'process.exit(1)', 'constructor(1)', '(1', '1 2', 'toString'])
    expect(calculate(text), text).toBe("I don't know how to do that.")
  expect(toolOf(tool('Wiki', 'toolWikipedia', {}, 1))).toMatchObject({
    ...{ type: 'HTTP', name: 'Wiki', method: 'GET', idempotent: true },
    query: { gsrsearch: '={{ $args["input"] }}' },
    parameters: { properties: { input: { type: 'string' } } },
  })
  const search = toolOf({
    ...tool('Search', 'toolSerpApi', { options: { gl: 'de' } }, 1),
    credentials: { serpApi: { id: 'abc', name: 'x' } },
  } as Part)
  expect(search).toMatchObject({
    name: 'search',
    credentialId: CREDENTIAL,
    query: { gl: 'de', engine: 'google' },
  })
})

test('older kinds of agents are AI_AGENTs, and the report says what they do otherwise', () => {
  const think = tool('Think', 'toolThink', {})
  const text = { promptType: 'define', text: 'x' }
  const react = convert([think], { ...text, agent: 'reActAgent', options: { suffixChat: 'Begin!' } })
  expect(react.agent).toMatchObject({
    type: 'AI_AGENT',
    config: { instructions: 'Answer the following questions as best you can.' },
  })
  expect(react.told).toMatch(/write down its thoughts/)
  expect(react.told).toMatch(/option like n8n's \\"suffixChat\\"/)
  const planned = convert([think], { ...text, agent: 'planAndExecuteAgent' })
  expect(planned.agent.config.instructions).toMatch(/^Make a plan/)
  expect(convert([think], { ...text, agent: 'sqlAgent' }).told).toMatch(/tool of the kind DATABASE_QUERY/)
})
