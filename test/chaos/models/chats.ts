import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../../simulator/random.ts'
import { type ReplyEvent, readReply } from '../../support/chat/replies.ts'
import type { Installation } from '../../support/engine/installation.ts'
import { repeatAsk } from '../ends.ts'

/** Longer than any reply takes. */
const END_MS = 300_000

type Message = {
  id: string
  role: 'user' | 'assistant'
  status: string
  content: string
  error: string | null
  executionId: string
  tokenUsage?: { input: number; output: number } | null
}

/** What came of a message: what a reader got, and the messages as they were when its stream had ended. */
export type Said = {
  sessionId: string
  content: string
  text: string
  last: ReplyEvent
  stopped: boolean
  /** How often the stream broke off, and how often the text was begun anew. */
  breaks: number
  resets: number
  saved: { user: Message; reply: Message }
}

/** Chats with a workflow as a careful client does, over any of the API processes at `urls`. */
export function createTalker(
  host: Installation,
  { urls, cookie, random }: { urls: string[]; cookie: string; random: Random },
) {
  const call = (
    path: string,
    init: { method?: string; json?: unknown; headers?: Record<string, string> } = {},
  ) => {
    const { method = 'GET', json, headers } = init
    const body = json === undefined ? {} : { body: JSON.stringify(json) }
    const all = { cookie, 'content-type': 'application/json', ...headers }
    return fetch(random.pick(urls) + path, { method, headers: all, ...body })
  }

  async function read(sessionId: string): Promise<Message[]> {
    const text = await repeatAsk(() => call(`/api/agent-chat/sessions/${sessionId}`), [200])
    return (JSON.parse(text) as { messages: Message[] }).messages
  }

  const open = async (workflowId: string): Promise<string> => {
    const json = { teamId: host.teamId, workflowId }
    const text = await repeatAsk(() => call('/api/agent-chat/sessions', { method: 'POST', json }), [201])
    return (JSON.parse(text) as { id: string }).id
  }

  /** Posts a message and reads the reply to its end, however often the stream breaks off. */
  async function say(sessionId: string, content: string, stops: boolean): Promise<Said> {
    const key = content.slice(0, 60).trimEnd()
    const path = `/api/agent-chat/sessions/${sessionId}`
    const giveUp = Date.now() + END_MS
    const state = { text: '', breaks: 0, resets: 0, at: undefined as string | undefined, stopped: false }
    let last: ReplyEvent | undefined
    const stopping = stops ? stopSoon() : undefined
    while (!last) {
      if (Date.now() > giveUp) throw new Error(`${key}: the stream has not ended: ${JSON.stringify(state)}`)
      const response = await ask().catch(() => undefined)
      if (!response?.ok) {
        const text = await response?.text().catch(() => '')
        // Its own message is STREAMING: another request with its key has just posted it.
        if (response && ![409, 429, 503].includes(response.status))
          throw new Error(`${key}: ${response.status} ${text}`)
        await sleep(200)
        continue
      }
      if (response.status === 204) throw new Error(`${key}: the stream had ended before its last event came`)
      last = await follow(response)
      if (!last) state.breaks++
    }
    await stopping
    const messages = await read(sessionId)
    const reply = messages.findLast(({ role }) => role === 'assistant')
    const user = messages.findLast(({ role }) => role === 'user')
    return { sessionId, content, ...state, last, saved: { user: user!, reply: reply! } }

    async function ask(): Promise<Response> {
      const from: Record<string, string> = state.at === undefined ? {} : { 'last-event-id': state.at }
      if (state.at === undefined || random.chance(0.3))
        return call(`${path}/messages?resets=1`, {
          method: 'POST',
          json: { content },
          headers: { 'idempotency-key': key, ...from },
        })
      const mine = (await read(sessionId)).findLast((one) => one.content === content)!
      return call(`${path}/messages/${mine.id}/stream?resets=1`, { headers: from })
    }

    async function follow(response: Response): Promise<ReplyEvent | undefined> {
      const reader = readReply(response)
      for (;;) {
        const event = await reader.next().catch(() => undefined)
        if (!event) return undefined
        state.at = event.id ?? state.at
        if (event.type === 'reset') {
          state.text = ''
          state.resets++
        } else if (event.type === 'chunk') state.text += event.content
        else return event
      }
    }

    async function stopSoon(): Promise<void> {
      await sleep(300 + 2_500 * random.next())
      await repeatAsk(() => call(`${path}/stop`, { method: 'POST' }), [200, 202, 204, 404, 409])
      state.stopped = true
    }
  }

  return { open, say, read }
}

/** What is wrong with what came of a message. `expected` is the whole reply, if it is known. */
export function findChatProblems(said: Said, now: Message[], expected: string): string[] {
  const { content, text, last, stopped, saved } = said
  const { user, reply } = saved
  const problems: string[] = []
  if (user?.content !== content) problems.push(`the message of the user is ${JSON.stringify(user)}`)
  const kept = now.find(({ id }) => id === user?.id)
  if (kept?.content !== content) problems.push('the message of the user is gone')
  if (last.type === 'done') {
    if (!reply || reply.executionId !== user.executionId) return [...problems, 'done, but there is no reply']
    const isSame = JSON.stringify(now.find(({ id }) => id === reply.id)) === JSON.stringify(reply)
    if (!isSame) problems.push('the reply has changed after it was done')
    if (reply.status === 'COMPLETE') {
      if (reply.content !== text)
        problems.push(`a reader got ${JSON.stringify(text)}, saved is ${JSON.stringify(reply.content)}`)
      if (reply.content !== expected)
        problems.push(`the reply is ${JSON.stringify(reply.content)} instead of ${JSON.stringify(expected)}`)
      if (JSON.stringify(last.tokenUsage) !== JSON.stringify(reply.tokenUsage))
        problems.push('other tokens are saved than told')
    } else if (reply.status === 'STOPPED') {
      if (!stopped) problems.push('STOPPED, but nobody has stopped it')
      if (!text.startsWith(reply.content) && !reply.content.startsWith(text))
        problems.push(
          `a reader got ${JSON.stringify(text)}, of the stopped reply ${JSON.stringify(reply.content)} is kept`,
        )
    } else problems.push(`done, but its status is ${reply.status}`)
  } else {
    if (kept?.status !== 'FAILED') problems.push(`${JSON.stringify(last)}, but the status is ${kept?.status}`)
    problems.push(`it failed: ${kept?.error}`)
  }
  return problems
}
