import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, expect, test } from 'vitest'
import { createChatting } from '../../support/chat/chatting.ts'
import { addApi, pathOf, readReply, sumUp } from '../../support/chat/replies.ts'
import { keep } from '../../support/keep.ts'
import { startRunning } from '../../support/running.ts'
import { startOpenAi } from '../../support/servers/models/openai.ts'

const TURNS = 12

const host = await keep(startRunning())
const { credential, agent, simpleAgent, open, post, read, SESSIONS } = createChatting(host)
const vendor = await startOpenAi((_call, number) => ({
  text: Array.from({ length: 20 }, (_, word) => `${number}.${word} `),
  tools: number % TURNS === TURNS - 1 ? [] : [{ name: 'double', args: { n: 1 } }],
  paceMs: 3,
}))
const elsewhere = await addApi(host, { carryOut: async (errand) => host.engine.carryOut(errand) })
afterAll(async () => {
  await elsewhere.stop()
  await vendor.stop()
})

async function makeAgents(): Promise<string[]> {
  const credentialId = await credential('OPENAI_COMPATIBLE', { apiKey: 'sk-x', baseUrl: vendor.url })
  const parameters = { type: 'object', properties: { n: { type: 'number' } } }
  const tools = [{ type: 'CODE', name: 'double', description: 'x', parameters, code: 'return 2 * $args.n' }]
  const config = { credentialId, model: 'm', instructions: 'x', prompt: '{{ $trigger.message }}', tools }
  return [
    await simpleAgent({ model: 'demo-slow' }),
    await simpleAgent(),
    await agent([{ id: 'a', type: 'AI_AGENT', config: { ...config, maxSteps: 100 } }], ['chat -> a']),
  ]
}

/** What a reader has at the end, and how that came. */
async function readAll(stream: ReturnType<typeof readReply>) {
  const { text, last, resets } = sumUp(await stream.all())
  return { text, last: last?.type, resets }
}

test('a reply that is stopped at any moment is saved as all who read it, here and elsewhere, have it', {
  tags: 'long',
  timeout: 120_000,
}, async () => {
  const agents = await makeAgents()
  const saved: { status: string; content: string }[] = []
  async function stopOne(n: number): Promise<void> {
    const id = await open(agents[n % agents.length]!)
    const here = readReply(await post(id, `say ${Array.from({ length: 400 }, (_, i) => `w${i}`).join(' ')}`))
    const { messages } = await read(id)
    const path = pathOf({ sessionId: id, replyId: messages[1].id })
    // As many streams as one person may have in a process.
    const others = [await elsewhere.get(path), await host.request(path, { as: host.admin })]
    const reading = [here, ...others.map(readReply)].map(readAll)
    await sleep(Math.random() * 600)
    await host.call('POST', `${SESSIONS}/${id}/stop`, host.admin)
    const got = await Promise.all(reading)
    const after = (await read(id)).messages[1]
    const whole = { text: after.content, last: 'done', resets: 0 }
    expect([n, after.status, got]).toEqual([n, after.status, [whole, whole, whole]])
    saved.push(after)
  }
  for (let round = 0; round < 15; round++)
    await Promise.all(Array.from({ length: 4 }, (_, n) => stopOne(4 * round + n)))
  // Most of them were stopped in the middle of their text.
  const cut = saved.filter(({ status, content }) => status === 'STOPPED' && content !== '')
  expect(cut.length).toBeGreaterThan(20)
})

test('a team that is deleted takes its sessions, their messages and executions with it, also while a reply comes', async () => {
  const boss = await host.otherTeam()
  const of = { teamId: boss.teamId }
  const data = { ...of, name: 'demo', type: 'DEMO', data: {} }
  const { body: made } = await host.call('POST', '/api/credentials', boss.cookie, data)
  const config = { credentialId: made.id, model: 'demo-slow', prompt: '{{ $trigger.message }}' }
  const graph = {
    ...of,
    name: 'chat',
    nodes: [
      { id: 'chat', type: 'CHAT_TRIGGER', config: {} },
      { id: 'llm', type: 'LLM', config },
    ],
    edges: [{ source: 'chat', target: 'llm' }],
  }
  const { body: workflow } = await host.call('POST', '/api/workflows', boss.cookie, graph)
  await host.call('PUT', `/api/workflows/${workflow.id}`, boss.cookie, { active: true })
  const session = { ...of, workflowId: workflow.id }
  const { body: opened } = await host.call('POST', SESSIONS, boss.cookie, session)
  const stream = readReply(await post(opened.id, `say ${'word '.repeat(400)}`, boss.cookie))
  expect((await stream.next())?.type).toBe('chunk')
  const deleted = await host.call('DELETE', `/api/teams/${boss.teamId}`, boss.cookie)
  expect([200, 204]).toContain(deleted.status)
  const rest = await stream.all()
  expect(rest.some(({ type }) => type === 'done')).toBe(false)
  const { db } = host.store
  const left = [
    await db.selectFrom('agentChatSessions').select('id').where('teamId', '=', boss.teamId).execute(),
    await db.selectFrom('agentChatMessages').select('id').where('teamId', '=', boss.teamId).execute(),
    await db.selectFrom('executions').select('id').where('teamId', '=', boss.teamId).execute(),
  ]
  expect(left).toEqual([[], [], []])
})
