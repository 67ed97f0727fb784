import type { Client } from '@modelcontextprotocol/client'
import { createExactMask } from '../../../db/redaction/exact.ts'
import type { ToolOf } from '../../../workflows/nodes/tools.ts'
import { findRequestHeaderFault } from '../../http/hop.ts'
import { HttpError } from '../../http/httperror.ts'
import { requestFailure } from '../../nodes/http.ts'
import { joinUrl, takeUrlApart } from '../../nodes/kit/address.ts'
import { invalidConfig, NodeFailure } from '../../nodes/kit/failure.ts'
import type { NodeContext } from '../../nodes/kit/node.ts'
import { openPass } from '../../nodes/kit/pass.ts'
import { createGuardedFetch } from './fetch.ts'

const MAX_MESSAGE = 500

/** How long a server gets to end a session that is over. */
const GOODBYE_MS = 2_000

/** The questions to a server, within the tool's time limit. */
export type McpServer = {
  client: Client
  limits: { signal: AbortSignal; timeout: number }
  /** How many numbers of tools' results were too large to be held. */
  large(): number
}

/**
 * Opens a session with a server over streamable HTTP for as long as `work` takes. Everything goes through the guarded
 * client, with the credential of the tool. Throws a NodeFailure: those of requests (HttpNetwork, HttpTimeout, Http401
 * ...), ToolRefused for what the server answers with an error of the protocol, and InvalidResponse for a server that
 * does not keep to it.
 */
export async function withServer<T>(
  context: NodeContext,
  tool: ToolOf<'MCP'>,
  work: (server: McpServer) => Promise<T>,
): Promise<T> {
  const { signal } = context
  const { timeoutMs } = tool
  const url = await renderUrl(context, tool)
  const guarded = createGuardedFetch(context.http, { pass: await openPass(context, tool), signal, timeoutMs })
  const headers = await renderHeaders(context, tool)
  // Only agents with servers need the library.
  const library = await import('@modelcontextprotocol/client')
  const transport = new library.StreamableHTTPClientTransport(url, {
    fetch: guarded.fetch,
    requestInit: { headers },
    reconnectionOptions: {
      maxRetries: 0,
      initialReconnectionDelay: 1_000,
      maxReconnectionDelay: 1_000,
      reconnectionDelayGrowFactor: 1,
    },
  })
  const client = new library.Client(
    { name: 'perdure', version: '1.0.0' },
    {
      // The schemas are those of strangers: nothing is compiled of them in this process.
      jsonSchemaValidator: {
        getValidator: () => (input) => ({ valid: true, data: input as never, errorMessage: undefined }),
      },
      versionNegotiation: { mode: 'auto' },
    },
  )
  const limits = { signal, timeout: timeoutMs }
  try {
    await client.connect(transport, limits)
    return await work({ client, limits, large: guarded.large })
  } catch (error) {
    signal.throwIfAborted()
    throw describeFault(tool.name, error, {
      fault: guarded.fault(),
      secrets: context.credentials?.secrets() ?? [],
    })
  } finally {
    const goodbye = transport.terminateSession().catch(() => {})
    await Promise.race([goodbye, new Promise((resolve) => setTimeout(resolve, GOODBYE_MS).unref())])
    await client.close().catch(() => {})
  }
}

async function renderUrl({ evaluator, bindings }: NodeContext, { url }: ToolOf<'MCP'>): Promise<URL> {
  const rendered = joinUrl(url, await evaluator.render(takeUrlApart(url), bindings))
  const parsed = URL.parse(rendered)
  if (!parsed || !/^https?:$/.test(parsed.protocol))
    throw invalidConfig('url', 'must begin with http:// or https://')
  return parsed
}

async function renderHeaders({ evaluator, bindings }: NodeContext, { headers }: ToolOf<'MCP'>) {
  const rendered = (await evaluator.render(headers ?? {}, bindings)) as Record<string, unknown>
  const pairs = Object.entries(rendered).flatMap(([name, value]) => {
    if (value === null || value === undefined) return []
    const fault = findRequestHeaderFault(name, String(value))
    if (fault) throw invalidConfig(`headers.${name.slice(0, 100)}`, fault)
    return [[name, String(value)]]
  })
  return Object.fromEntries(pairs) as Record<string, string>
}

/** The failure for what the library has thrown, without `secrets`; `fault` is why a request of its failed. */
function describeFault(
  name: string,
  error: unknown,
  { fault, secrets }: { fault: unknown; secrets: string[] },
): unknown {
  if (error instanceof NodeFailure) return error
  if (fault instanceof NodeFailure) return fault
  if (fault instanceof HttpError) return requestFailure(`The server ${name}`, fault)
  const {
    message = '',
    data,
    code,
  } = error as { message?: string; data?: { status?: number }; code?: unknown }
  const clean = createExactMask(secrets).text(message)
  const said = clean.replace(/[\p{Cc}\s]+/gu, ' ').slice(0, MAX_MESSAGE)
  const status = data?.status
  if (typeof status === 'number' && status >= 300) {
    const retryable = status >= 500 || status === 408 || status === 429
    return new NodeFailure(`The server ${name} responded with ${status}: ${said}`, {
      type: `Http${status}`,
      retryable,
    })
  }
  // Those of the protocol have a number, those of the library a word.
  if (typeof code === 'number') return new NodeFailure(`The server ${name}: ${said}`, { type: 'ToolRefused' })
  if (code === 'REQUEST_TIMEOUT')
    return new NodeFailure(`The server ${name} did not answer in time`, {
      type: 'HttpTimeout',
      retryable: true,
    })
  if (code === 'CONNECTION_CLOSED')
    return new NodeFailure(`The server ${name} ended its answer too early`, {
      type: 'HttpNetwork',
      retryable: true,
    })
  return new NodeFailure(`The server ${name}: ${said}`, { type: 'InvalidResponse' })
}
