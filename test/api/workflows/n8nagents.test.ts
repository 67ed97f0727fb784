import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Agents, startAgents } from '../../support/agents/agents.ts'
import { agentDocument, type Part, type Start, tool } from '../../support/agents/n8n.ts'
import { createChatting } from '../../support/chat/chatting.ts'
import { startMcp } from '../../support/servers/mcp.ts'

let agents: Agents
beforeAll(async () => {
  agents = await startAgents()
})
afterAll(() => agents.stop())

let imports = 0

type Imported = { id: string; report: { problems: { node: string; kind: string; message: string }[] } }

/** Imports an agent of n8n, whose model is the loopback vendor unless no credential is named. */
async function importAgent(
  parts: Part[],
  parameters: object,
  {
    start = 'manualTrigger',
    credentials = { abc: agents.credentialId },
    workflows = {},
  }: {
    start?: Start
    credentials?: Record<string, string>
    workflows?: Record<string, string>
  } = {},
): Promise<Imported> {
  const workflow = agentDocument(parts, parameters, start)
  const json = { teamId: agents.teamId, name: `agent ${imports++}`, workflow, credentials, workflows }
  return agents.ask<Imported>('POST', '/api/workflows/import', json)
}

async function run(id: string) {
  const execution = await agents.execute(id, { who: 'Ada' })
  return agents.ended(execution, 60_000)
}

const asked = { promptType: 'define', text: '=Help {{ $json.who }}' }

test('an imported agent calls its tools and outputs what n8n does', async () => {
  const child = await agents.create({
    nodes: [
      { id: 'start', type: 'SUB_WORKFLOW_TRIGGER', config: {} },
      { id: 'say', type: 'SET', config: { values: { said: '{{ $input.city }} of {{ $input.who }}' } } },
    ],
    edges: [{ source: 'start', target: 'say' }],
  } as never)
  const server = await startMcp('json', [
    {
      ...{ name: 'weather', description: 'The weather', inputSchema: { type: 'object', properties: {} } },
      call: () => ({ content: [{ type: 'text', text: 'sunny' }] }),
    },
  ])
  const inputs = { city: "={{ $fromAI('city') }}", who: '={{ $json.who }}' }
  const { id, report } = await importAgent(
    [
      tool('Double it', 'toolCode', { description: 'Doubles', jsCode: 'return Number(query) * 2' }),
      tool(
        'Send',
        'httpRequestTool',
        {
          ...{ toolDescription: 'Sends', method: 'POST', url: `${agents.site.origin}/pages/send` },
          ...{
            sendBody: true,
            specifyBody: 'json',
            jsonBody:
              '={"for": "{{ $fromAI(\'text\') }} by {{ $json.who }}", "as": {{ JSON.stringify($fromAI(\'text\')) }}}',
          },
        },
        4.2,
      ),
      tool(
        'Plan',
        'toolWorkflow',
        {
          ...{ description: 'Plans', workflowId: { value: 'theirs' } },
          workflowInputs: {
            mappingMode: 'defineBelow',
            schema: [{ id: 'city' }, { id: 'who' }],
            value: inputs,
          },
        },
        2.2,
      ),
      tool('Server', 'mcpClientTool', { endpointUrl: server.url }, 1.2),
    ],
    asked,
    { workflows: { theirs: child } },
  )
  expect(report.problems.filter(({ kind }) => kind === 'node' || kind === 'credential')).toEqual([])
  agents.vendor.calls.length = 0
  agents.site.calls.length = 0
  agents.vendor.say([
    {
      tools: [
        { id: 'a', name: 'Double_it', args: { input: '21' } },
        { id: 'b', name: 'Send', args: { text: 'a "quoted" {{ 1 }} text' } },
        { id: 'c', name: 'Plan', args: { city: 'Oslo' } },
        { id: 'd', name: 'weather', args: {} },
      ],
    },
    { text: 'All done.' },
  ])
  const ended = await run(id)
  await server.stop()
  expect(ended.status, JSON.stringify(ended, null, 1)).toBe('SUCCESS')
  const own = ended.nodeExecutions.find(({ outputData }) =>
    JSON.stringify(outputData ?? '').includes('"output"'),
  )
  expect(own?.outputData).toMatchObject({
    items: [{ output: 'All done.' }],
  })
  const first = agents.vendor.calls[0]!.body as { messages: object[]; tools: { function: object }[] }
  expect(first.messages).toMatchObject([
    { role: 'system', content: 'You are a helpful assistant' },
    { role: 'user', content: 'Help Ada' },
  ])
  expect(first.tools.map((one) => one.function)).toMatchObject([
    { name: 'Double_it', parameters: { properties: { input: { type: 'string' } } } },
    { name: 'Send', parameters: { properties: { text: { type: 'string' } }, required: ['text'] } },
    { name: 'Plan', parameters: { properties: { city: { type: 'string' } } } },
    { name: 'weather' },
  ])
  const [doubled, sent, planned, told] = agents.toldIn(1)
  expect(doubled).toBe(42)
  expect(sent).toMatchObject({ status: 200 })
  expect(JSON.parse(agents.site.calls[0]!.body)).toEqual({
    for: 'a "quoted" {{ 1 }} text by Ada',
    as: 'a "quoted" {{ 1 }} text',
  })
  expect(planned).toEqual({ said: 'Oslo of Ada' })
  expect(JSON.stringify(told)).toContain('sunny')
})

test('an agent whose model has no credential is imported, named in the report, and fails until it has one', async () => {
  const parts = [tool('Think', 'toolThink', {})]
  const { id, report } = await importAgent(parts, asked, { credentials: {} })
  const needed = report.problems.filter(({ kind }) => kind === 'credential')
  expect(needed).toMatchObject([
    { node: 'Agent', message: expect.stringMatching(/Choose a credential.*"abc"/) },
  ])
  agents.vendor.calls.length = 0
  const ended = await run(id)
  expect(ended).toMatchObject({ status: 'FAILED', errorMessage: expect.stringMatching(/credential/i) })
  expect(agents.vendor.calls).toEqual([])
})

test('an agent with a tool that has no equal fails, and never answers without it', async () => {
  const { id, report } = await importAgent([tool('Sums', 'toolWolframAlpha', {})], asked)
  expect(report.problems.find(({ kind }) => kind === 'node')?.message).toMatch(
    /"Sums".*toolWolframAlpha.*no such tool/,
  )
  agents.vendor.calls.length = 0
  expect(await run(id)).toMatchObject({ status: 'FAILED', errorMessage: expect.stringContaining('Sums') })
  expect(agents.vendor.calls).toEqual([])
})

test('an imported chat can be activated, replies with the text of its agent, and remembers', async () => {
  const parts: Part[] = [
    tool('Double it', 'toolCode', { description: 'Doubles', jsCode: 'return Number(query) * 2' }),
    { name: 'Memory', type: 'memoryBufferWindow', kind: 'ai_memory', parameters: {} },
  ]
  const { id } = await importAgent(parts, {}, { start: 'chatTrigger' })
  await agents.ask('PUT', `/api/workflows/${id}`, { active: true })
  const chatting = createChatting(agents)
  const session = await chatting.open(id)
  agents.vendor.calls.length = 0
  agents.vendor.say([{ tools: [{ id: 'a', name: 'Double_it', args: { input: '4' } }] }, { text: 'It is 8.' }])
  expect(await chatting.say(session, 'Double four.')).toMatchObject({
    text: 'It is 8.',
    last: { type: 'done' },
  })
  agents.vendor.say([{ text: 'I said 8.' }])
  expect(await chatting.say(session, 'What was it?')).toMatchObject({ text: 'I said 8.' })
  const { messages } = agents.vendor.calls.at(-1)!.body as { messages: { role: string; content: string }[] }
  expect(messages.map(({ role, content }) => [role, content])).toEqual([
    ['system', 'You are a helpful assistant'],
    ['user', 'Double four.'],
    ['assistant', 'It is 8.'],
    ['user', 'What was it?'],
  ])
})
