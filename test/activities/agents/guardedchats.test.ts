import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Agents, startAgents } from '../../support/agents/agents.ts'
import { findInHistory, findInStore } from '../../support/agents/stored.ts'
import { createChatting } from '../../support/chat/chatting.ts'
import { readReply, sumUp } from '../../support/chat/replies.ts'

let agents: Agents
let chats: ReturnType<typeof createChatting>
beforeAll(async () => {
  agents = await startAgents()
  chats = createChatting(agents)
})
afterAll(() => agents.stop())

const content = { filterContent: true }
const pii = { redactPii: true }
const look = {
  type: 'CODE',
  name: 'look',
  description: 'Looks something up',
  parameters: { type: 'object', properties: {} },
  code: 'return 1',
}
const call = { tools: [{ name: 'look', args: {} }] }

const chatAgent = (guardrails: object, tools: object[] = []) =>
  chats.agent(
    [
      {
        id: 'agent',
        type: 'AI_AGENT',
        config: {
          credentialId: agents.credentialId,
          model: 'gpt-test',
          instructions: 'Help.',
          prompt: '{{ $trigger.message }}',
          tools,
          guardrails,
        },
      },
    ],
    ['chat -> agent'],
  )
type Shown = { content: { id: string; role: string; status: string; content: string; executionId: string }[] }
const list = (session: string) => agents.ask<Shown>('GET', `${chats.SESSIONS}/${session}/messages`)

test('a chat shows the refusal: nothing of the blocked reply is streamed, kept or remembered', async () => {
  const session = await chats.open(await chatAgent({ output: content, refusal: 'I do not say that.' }))
  agents.vendor.calls.length = 0
  agents.vendor.say({
    text: ['I will find you and kill you and your ', 'whole family tonight, ', 'you worthless pig.'],
  })
  const response = await chats.post(session, 'Insult me')
  const events = await readReply(response).all()
  expect(events).toMatchObject([{ type: 'error', message: 'I do not say that.' }])
  const { content: shown } = await list(session)
  expect(shown).toMatchObject([
    { role: 'assistant', status: 'FAILED', content: 'I do not say that.' },
    { role: 'user', status: 'FAILED', content: 'Insult me' },
  ])
  expect(await findInStore(agents.store, shown[0]!.executionId, 'worthless')).toEqual([])
  expect(await findInHistory(agents.engine, shown[0]!.executionId, 'worthless')).toEqual([])
  agents.vendor.say({ text: ['Good ', 'day.'] })
  expect(await chats.say(session, 'And now?')).toMatchObject({ text: 'Good day.', last: { type: 'done' } })
  const { messages } = agents.vendor.calls.at(-1)!.body as { messages: { content: string }[] }
  expect(messages.map(({ content: text }) => text)).toEqual(['Help.', 'And now?'])
})

test('nothing of a reply is streamed before all of it has passed, and then with markers', async () => {
  const session = await chats.open(await chatAgent({ output: pii }, [look]))
  const held = Promise.withResolvers<void>()
  const reached = Promise.withResolvers<void>()
  agents.vendor.say((_, number) =>
    number === 0
      ? { text: ['I look ', 'for grace@example.org. '], tools: call.tools }
      : {
          text: ['It is ', '4111 1111 ', '1111 1111.'],
          before: (event) => {
            if (event < 2) return undefined
            reached.resolve()
            return held.promise
          },
        },
  )
  agents.vendor.calls.length = 0
  const response = await chats.post(session, 'Which card?')
  const reader = readReply(response)
  const first = reader.next()
  await reached.promise
  const early = await Promise.race([first, new Promise((resolve) => setTimeout(resolve, 1_500, 'nothing'))])
  expect(early).toBe('nothing')
  const { content: during } = await list(session)
  const id = during[0]!.executionId
  expect(await findInStore(agents.store, id, 'grace@')).toEqual([])
  held.resolve()
  const event = await first
  const rest = await reader.all()
  expect(sumUp([event!, ...rest])).toMatchObject({
    text: 'I look for [EMAIL]. It is [CREDIT_CARD].',
    last: { type: 'done' },
  })
  const { content: shown } = await list(session)
  expect(shown[0]).toMatchObject({ status: 'COMPLETE', content: 'I look for [EMAIL]. It is [CREDIT_CARD].' })
  for (const text of ['grace@', '4111 1111']) {
    expect(await findInStore(agents.store, id, text)).toEqual([])
    expect(await findInHistory(agents.engine, id, text)).toEqual([])
  }
})

test('a reply that is stopped while it is held has no text', async () => {
  const session = await chats.open(await chatAgent({ output: pii }, [look]))
  const held = Promise.withResolvers<void>()
  const reached = Promise.withResolvers<void>()
  agents.vendor.calls.length = 0
  agents.vendor.say((_, number) =>
    number === 0
      ? { text: 'I look. ', tools: call.tools }
      : {
          text: ['It is ', 'there.'],
          before: (event) => {
            if (event < 2) return undefined
            reached.resolve()
            return held.promise
          },
        },
  )
  const reader = readReply(await chats.post(session, 'Where?'))
  await reached.promise
  await agents.ask('POST', `${chats.SESSIONS}/${session}/stop`)
  const events = await reader.all()
  held.resolve()
  expect(sumUp(events).text).toBe('')
  expect((await list(session)).content[0]).toMatchObject({ status: 'STOPPED', content: '' })
})

test('personal data of earlier messages is redacted too', async () => {
  const session = await chats.open(await chatAgent({ input: pii }))
  agents.vendor.say({ text: 'Noted.' })
  await chats.say(session, 'I am ada@example.com')
  await chats.say(session, 'Who am I?')
  const body = JSON.stringify(agents.vendor.calls.at(-1)!.body)
  expect(body).toContain('I am [EMAIL]')
  expect(body).not.toContain('ada@')
})
