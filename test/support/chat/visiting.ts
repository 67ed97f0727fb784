import type { Host } from '../running.ts'
import type { Body } from '../service.ts'
import { createChatting } from './chatting.ts'
import { readReply, sumUp } from './replies.ts'

/** The page that the widgets here are made for. */
export const PAGE = 'https://www.example.com'

export type Visitor = { sessionId: string; token: string }

/** Widgets and their visitors, over HTTP. */
export function createVisiting(host: Host) {
  const { simpleAgent } = createChatting(host)

  /** A widget for PAGE, of a new workflow with the demo model unless there is another one. */
  async function addWidget(more: Record<string, unknown> = {}): Promise<Body> {
    const workflowId = more.workflowId ?? (await simpleAgent())
    const json = { teamId: host.teamId, name: 'Help desk', workflowId, allowedOrigins: [PAGE], ...more }
    return host.ask<Body>('POST', '/api/widgets', json)
  }

  const pathOf = (key: string, rest = '') => `/api/public/widgets/${key}${rest}`

  /** A request as a browser sends it from a page. Without an origin, as something else does. */
  function visit(
    method: string,
    path: string,
    {
      origin = PAGE,
      token,
      json,
      headers = {},
    }: { origin?: string | null; token?: string; json?: unknown; headers?: Record<string, string> } = {},
  ): Promise<Response> {
    const sent = {
      ...(origin === null ? {} : { origin }),
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...headers,
    }
    return host.request(path, { method, headers: sent, ...(json === undefined ? {} : { json }) })
  }

  async function arrive(key: string, json: object = {}): Promise<Visitor> {
    const response = await visit('POST', pathOf(key, '/sessions'), { json })
    if (response.status !== 201) throw new Error(`${response.status}: ${await response.text()}`)
    return (await response.json()) as Visitor
  }

  const post = (key: string, token: string, content: string, headers: Record<string, string> = {}) =>
    visit('POST', pathOf(key, '/messages'), { token, json: { content }, headers })

  /** Posts a message, and waits for the whole reply. `raw` is its text as it was sent. */
  async function say(key: string, token: string, content: string) {
    const response = await post(key, token, content)
    if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`)
    const [one, other] = response.body!.tee()
    const raw = new Response(other).text()
    return { ...sumUp(await readReply(new Response(one)).all()), raw: await raw }
  }

  async function readChat(key: string, token: string): Promise<Body> {
    const response = await visit('GET', pathOf(key, '/messages'), { token })
    return response.json()
  }

  return { addWidget, pathOf, visit, arrive, post, say, readChat }
}
