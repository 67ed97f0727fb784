import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import {
  createMcpHandler,
  Server,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server'

/** A tool that a server offers, with what it does: the result as the protocol has it. */
export type McpTool = {
  name: string
  description?: string
  inputSchema: { type: 'object'; [key: string]: unknown }
  call: (args: Record<string, unknown>) => unknown
}

/** `json` and `sse` have sessions, and answer so; `modern` is the revision of 2026-07-28. */
export type McpManner = 'json' | 'sse' | 'modern'

/** A request that has come: its method in the protocol, if it has a body. */
type McpRequest = {
  method: string
  asks: string | undefined
  id: unknown
  headers: IncomingHttpHeaders
}

/** Starts an MCP server over streamable HTTP. `before` may answer a request itself, and then returns true. */
export async function startMcp(manner: McpManner, tools: McpTool[]) {
  const state = {
    tools,
    before: undefined as ((request: McpRequest, response: ServerResponse) => boolean) | undefined,
  }
  const requests: McpRequest[] = []
  const sessions = new Map<string, WebStandardStreamableHTTPServerTransport>()

  function makeServer() {
    const server = new Server({ name: 'tools', version: '1' }, { capabilities: { tools: {} } })
    server.setRequestHandler('tools/list', () => ({
      tools: state.tools.map(({ call: _, ...tool }) => tool),
    }))
    server.setRequestHandler('tools/call', async ({ params }) => {
      const tool = state.tools.find(({ name }) => name === params.name)
      if (!tool) throw new Error(`Unknown tool: ${params.name}`)
      return (await tool.call(params.arguments ?? {})) as { content: [] }
    })
    return server
  }

  const modern = createMcpHandler(() => makeServer(), { legacy: 'reject' })

  async function answer(request: Request): Promise<Response> {
    if (manner === 'modern') return modern.fetch(request)
    const known = sessions.get(request.headers.get('mcp-session-id') ?? '')
    if (known) return known.handleRequest(request)
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      enableJsonResponse: manner === 'json',
      onsessioninitialized: (id) => void sessions.set(id, transport),
      onsessionclosed: (id) => void sessions.delete(id),
    })
    await makeServer().connect(transport)
    return transport.handleRequest(request)
  }

  const http = createServer(async (request, response) => {
    response.on('error', () => {})
    const { method = 'GET', url = '/', headers } = request
    const body = await buffer(request).catch(() => Buffer.alloc(0))
    const message = body.length > 0 ? (JSON.parse(body.toString()) as { method?: string; id?: unknown }) : {}
    const seen = { method, asks: message.method, id: message.id, headers }
    requests.push(seen)
    if (state.before?.(seen, response)) return
    const pairs = Object.entries(headers).map(([name, value]) => [name, String(value)] as [string, string])
    const given = new Request(`http://127.0.0.1${url}`, {
      method,
      headers: pairs,
      ...(body.length > 0 ? { body: new Uint8Array(body) } : {}),
    })
    const { status, headers: out, body: stream } = await answer(given)
    response.writeHead(status, Object.fromEntries(out))
    if (stream) for await (const chunk of stream) response.write(chunk)
    response.end()
  })
  await once(http.listen(0, '127.0.0.1'), 'listening')
  return {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`,
    requests,
    sessions,
    /** Offers other tools from now on. */
    offer(next: McpTool[]) {
      state.tools = next
    },
    before(next: typeof state.before) {
      state.before = next
    },
    async stop() {
      http.closeAllConnections()
      await modern.close()
      await new Promise((resolve) => http.close(resolve))
    },
  }
}
