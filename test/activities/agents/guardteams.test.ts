import { randomUUID } from 'node:crypto'
import { Writable } from 'node:stream'
import { pino } from 'pino'
import { afterAll, expect, test } from 'vitest'
import { startAgents } from '../../support/agents/agents.ts'
import { findInHistory, findInStore } from '../../support/agents/stored.ts'
import { createChatting } from '../../support/chat/chatting.ts'
import { readReply } from '../../support/chat/replies.ts'
import { keep } from '../../support/keep.ts'
import { startJudge } from '../../support/servers/models/judge.ts'

const lines: string[] = []
const log = pino(
  { level: 'trace' },
  new Writable({
    write(line, _, done) {
      lines.push(String(line))
      done()
    },
  }),
)
const agents = await keep(startAgents({ log }))
const chats = createChatting(agents)
const judge = await startJudge()
afterAll(() => judge.stop())

const page = {
  type: 'CODE',
  name: 'look',
  description: 'Looks something up',
  parameters: { type: 'object', properties: {} },
  code: "return 'The page says: ' + 'Blue' + 'bird.'",
}
const call = { tools: [{ name: 'look', args: {} }] }

/** Where a text is that nobody may have: tables, opened blobs, opened history, the log, and what the API says of a run. */
async function findAnywhere(id: string, text: string): Promise<string[]> {
  const found = await findInStore(agents.store, id, text)
  if ((await findInHistory(agents.engine, id, text)).length > 0) found.push('history')
  if (lines.some((line) => line.includes(text))) found.push('log')
  const paths = [`/api/executions/${id}`, `/api/executions/team/${agents.teamId}/export?format=json`]
  const { nodeExecutions } = await agents.read(id)
  for (const node of nodeExecutions) paths.push(`/api/executions/${id}/nodes/${node.id}/requests`)
  for (const path of paths) {
    const response = await agents.request(path, { as: agents.admin })
    expect([path, response.status]).toEqual([path, 200])
    if ((await response.text()).includes(text)) found.push(path)
  }
  return found
}

test("a team's rule is applied around an agent, with its own action", {
  tags: 'long',
  timeout: 60_000,
}, async () => {
  await agents.ask('POST', `/api/guardrails/rules?teamId=${agents.teamId}`, {
    name: 'project',
    kind: 'KEYWORD_LIST',
    severity: 'HIGH',
    action: 'BLOCKED',
    config: { keywords: ['Bluebird'] },
  })
  const rules = { applyCustomRules: true, onViolation: 'LOGGED' }
  const asked = await agents.runAgent(
    [],
    { text: 'Soon.' },
    { config: { prompt: 'When does {{ "Blue" & "bird" }} start?', guardrails: { input: rules } } },
  )
  expect(asked.agent.errorMessage).toContain('CUSTOM_RULE BLOCKED')
  expect(agents.vendor.calls).toHaveLength(0)
  const looked = await agents.runAgent([page], [call, { text: 'Done.' }], {
    config: { guardrails: { toolResults: rules } },
  })
  expect(looked.steps[1]!.outputData).toMatchObject({ withheld: true, violations: ['CUSTOM_RULE'] })
  expect(JSON.stringify(agents.vendor.calls)).not.toContain('Bluebird')
  const said = await agents.runAgent(
    [],
    { text: ['It is Blue', 'bird that you mean.'] },
    { config: { guardrails: { output: rules, refusal: 'No.' } } },
  )
  expect(said.agent.outputData).toMatchObject({ text: 'No.', blocked: true, violations: ['CUSTOM_RULE'] })
  expect(await findAnywhere(said.run.id, 'that you mean')).toEqual([])
  const fine = await agents.runAgent([], { text: 'Fine.' }, { config: { guardrails: { output: rules } } })
  expect(fine.agent.outputData).toEqual({ text: 'Fine.', steps: 1 })
})

test("without a team's model the reply is blocked, once, and with it what it flags is nowhere", async () => {
  const output = { filterContent: true, askModel: true }
  const without = await agents.runAgent([], { text: 'Fine.' }, { config: { guardrails: { output } } })
  expect(without.agent.errorMessage).toContain('CONTENT_FILTER could not be checked')
  expect(agents.vendor.calls).toHaveLength(1)

  const data = { baseUrl: judge.url, apiKey: 'sk-the-secret-key-of-the-judge' }
  const credentialId = await agents.keep('OPENAI_COMPATIBLE', data)
  const prices = [{ model: '*', inputPerMillion: 2, outputPerMillion: 2 }]
  await agents.ask('PUT', `/api/teams/${agents.teamId}/model-prices`, { prices })
  const settings = { credentialId, model: 'judge', monthlyCostCap: 10, checks: [] }
  await agents.ask('PUT', `/api/guardrails/settings?teamId=${agents.teamId}`, settings)

  const config = { prompt: '{{ $trigger.message }}', guardrails: { output, refusal: 'I do not say that.' } }
  const session = await chats.open(await chats.agent([agents.agentNode([], config)], ['chat -> agent']))
  const secret = `plum ${randomUUID()}`
  agents.vendor.calls.length = 0
  agents.vendor.say({ text: ['A bad word, ', secret, '.'], reasoning: `The ${secret} is what they want.` })
  const sent = await readReply(await chats.post(session, 'Say it')).all()
  expect(sent).toMatchObject([{ type: 'error', message: 'I do not say that.' }])
  type Shown = { content: { executionId: string; content: string }[] }
  const shown = await agents.ask<Shown>('GET', `${chats.SESSIONS}/${session}/messages`)
  expect(shown.content[0]).toMatchObject({ content: 'I do not say that.' })
  const id = shown.content[0]!.executionId
  expect(JSON.stringify(judge.calls)).toContain(secret)
  expect(await findAnywhere(id, secret)).toEqual([])
  expect(lines.length).toBeGreaterThan(10)
  const calls = await agents.store.db
    .selectFrom('modelCalls')
    .selectAll()
    .where('executionId', '=', id)
    .execute()
  expect(calls.map(({ model }) => model).sort()).toEqual(['gpt-test', 'judge'])
  // The search finds what is there.
  agents.vendor.say({ text: `A fine word, ${secret}.` })
  expect(await chats.say(session, 'Then say it')).toMatchObject({ text: `A fine word, ${secret}.` })
  const after = await agents.ask<Shown>('GET', `${chats.SESSIONS}/${session}/messages`)
  const found = await findAnywhere(after.content[0]!.executionId, secret)
  expect(found).toEqual(expect.arrayContaining(['node_executions', 'agent_chat_messages', 'history']))
}, 60_000)
