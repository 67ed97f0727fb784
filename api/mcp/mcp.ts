import { createMcpHandler } from '@modelcontextprotocol/server'
import { type Context, Hono } from 'hono'
import * as v from 'valibot'
import { describeLarge } from '../../activities/reading/json.ts'
import { Fault } from '../../db/fault.ts'
import { isObject } from '../../workflows/json.ts'
import type { ApiDeps, AppEnv } from '../env.ts'
import type { Seats } from '../executions/seats.ts'
import { accept } from '../http/accept.ts'
import { readJsonBody } from '../http/body.ts'
import { type Api, createOperations } from './operations.ts'
import { type Caller, createMcpServer } from './server.ts'

const MessageSchema = v.pipe(
  v.looseObject({ jsonrpc: v.literal('2.0'), method: v.string() }),
  v.title('McpMessage'),
)

/** Streams of changes: nothing of a server that keeps nothing is ever told there. */
const REFUSED = 'subscriptions/listen'

/** Where MCP clients reach the service: one address for all teams, the token says which. `api` is the whole API. */
export function createMcpRoutes(deps: ApiDeps, seats: Seats, api: Api) {
  const operations = createOperations(api)
  const own = new Set([new URL(deps.publicUrl).origin, ...(deps.corsOrigins ?? [])])
  return new Hono<AppEnv>().post(
    '/api/mcp',
    accept({
      id: 'callMcp',
      tag: 'MCP',
      summary: 'Speak with the service as an MCP client',
      description:
        'One message of the Model Context Protocol over streamable HTTP, without sessions: the tools are those of active ' +
        'workflows with an MCP_TRIGGER, and operations of this API by the role of the SDK token. Errors of the protocol ' +
        'are answers of JSON-RPC. Batches are refused.',
      role: 'user',
      guard: (c) => {
        demandToken(c)
        demandOrigin(c, own)
      },
      ownBody: { 'application/json': MessageSchema },
      example: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
      responses: {
        200: { description: 'The answer of JSON-RPC, as JSON or as a stream of events', type: '*/*' },
        202: { description: 'A notification has been taken' },
        400: { description: 'No message of JSON-RPC, or one that the protocol does not allow', type: '*/*' },
        default: { description: 'What the protocol answers otherwise', type: '*/*' },
      },
      faults: [403],
    }),
    async (c) => {
      const caller = findCaller(c)
      const reading = await readJsonBody(c)
      const { value } = reading
      const fault = findFault(value)
      if (fault) return c.json(fault, 400)
      c.set('largeNumbers', describeLarge(reading))
      const handler = createMcpHandler(() => createMcpServer(deps, c, caller, { seats, operations }), {
        onerror: (err) => c.get('log').debug({ err }, 'an MCP message was refused'),
      })
      return handler.fetch(c.req.raw, { parsedBody: value })
    },
  )
}

/** A cookie would name a person with any number of teams, and a page could use it. */
function demandToken(c: Context<AppEnv>): void {
  if (c.get('scope').actor.kind === 'SDK_TOKEN') return
  throw new Fault('UNAUTHENTICATED', 'MCP clients need an SDK token: Authorization: Bearer sdk_...')
}

/** Clients are programs, which send no Origin. A page of another origin is refused even with a token. */
function demandOrigin(c: Context<AppEnv>, own: Set<string>): void {
  const origin = c.req.header('origin')
  if (origin === undefined || own.has(origin)) return
  throw new Fault('FORBIDDEN', 'A page of another origin must not call the MCP server')
}

function findCaller(c: Context<AppEnv>): Caller {
  const [first] = c.get('scope').roles
  if (!first) throw new Fault('FORBIDDEN', 'The user who created this token has left the team')
  const [teamId, role] = first
  c.set('teamId', teamId)
  return { teamId, role }
}

/** The answer to what the library should not get. One message is one request, for the rate limits too. */
function findFault(value: unknown): object | undefined {
  const answer = (id: unknown, code: number, message: string) => ({
    jsonrpc: '2.0',
    id,
    error: { code, message },
  })
  if (!isObject(value)) return answer(null, -32_600, 'The body must be one message of JSON-RPC')
  if (value.method !== REFUSED) return undefined
  const { id } = value
  const known = typeof id === 'string' || typeof id === 'number' ? id : null
  return answer(known, -32_601, 'There are no streams of changes here')
}
