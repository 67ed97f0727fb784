import { randomBytes } from 'node:crypto'
import { edges } from '../engine/graphs.ts'
import type { Host } from '../running.ts'
import type { Body } from '../service.ts'
import { readReply, sumUp } from './replies.ts'

const SESSIONS = '/api/agent-chat/sessions'

/** Chats over HTTP, with workflows that reply by the DEMO model unless they are given another credential. */
export function createChatting(host: Host) {
  const { teamId } = host

  async function credential(type = 'DEMO', data: object = {}): Promise<string> {
    const name = `model ${randomBytes(4).toString('hex')}`
    return (await host.ask<{ id: string }>('POST', '/api/credentials', { teamId, name, type, data })).id
  }

  /** An active workflow of these nodes and edges, which begins with a CHAT_TRIGGER named `chat`. */
  async function agent(nodes: object[], joins: string[], settings: object = {}): Promise<string> {
    const graph = {
      nodes: [{ id: 'chat', type: 'CHAT_TRIGGER', config: {} }, ...nodes],
      edges: edges(...joins),
    }
    const id = await host.create({ ...graph, settings } as never)
    await host.ask('PUT', `/api/workflows/${id}`, { active: true })
    return id
  }

  /** An agent of one LLM, whose prompt is the message. */
  async function simpleAgent(more: object = {}, settings: object = {}): Promise<string> {
    const config = {
      credentialId: await credential(),
      model: 'demo',
      prompt: '{{ $trigger.message }}',
      ...more,
    }
    return agent([{ id: 'llm', type: 'LLM', config }], ['chat -> llm'], settings)
  }

  async function open(workflowId: string, as?: string, title?: string): Promise<string> {
    const json = { teamId, workflowId, ...(title ? { title } : {}) }
    return (await host.ask<{ id: string }>('POST', SESSIONS, json, as)).id
  }

  const post = (sessionId: string, content: string, as = host.admin, headers: Record<string, string> = {}) =>
    host.request(`${SESSIONS}/${sessionId}/messages`, { method: 'POST', as, json: { content }, headers })

  /** Posts a message, and waits for the whole reply. */
  async function say(sessionId: string, content: string, as?: string) {
    const response = await post(sessionId, content, as)
    if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`)
    return sumUp(await readReply(response).all())
  }

  const read = (sessionId: string, as?: string) =>
    host.ask<Body>('GET', `${SESSIONS}/${sessionId}`, undefined, as)

  return { credential, agent, simpleAgent, open, post, say, read, SESSIONS }
}
