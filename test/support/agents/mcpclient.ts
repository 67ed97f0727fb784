import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'

/** The revisions that clients speak: of 2025, and of 2026. */
export type McpEra = '2025' | '2026'

/** Connects the official client with a service's MCP server. */
export async function connectMcp(origin: string, token: string, era: McpEra = '2025') {
  const transport = new StreamableHTTPClientTransport(new URL('/api/mcp', origin), {
    requestInit: { headers: { Authorization: `Bearer ${token}` } },
  })
  const client = new Client(
    { name: 'test', version: '1' },
    era === '2026' ? { versionNegotiation: { mode: 'auto' } } : {},
  )
  await client.connect(transport)
  return client
}

/** The only text that a tool has answered. */
export function textOf(result: { content: unknown }): string {
  const [first] = result.content as { type: string; text: string }[]
  if (first?.type !== 'text') throw new Error('the tool has answered no text')
  return first.text
}
