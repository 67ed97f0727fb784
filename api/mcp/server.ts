import { ProtocolError, ProtocolErrorCode, Server, type ServerContext } from '@modelcontextprotocol/server'
import type { Context } from 'hono'
import type { Role } from '../../db/acts.ts'
import { covers } from '../../db/acts.ts'
import { Fault } from '../../db/fault.ts'
import { findWorkflowTool, listTools } from '../../db/mcp/tools.ts'
import { noteRefused } from '../audit/refusals.ts'
import type { ApiDeps, AppEnv } from '../env.ts'
import type { Seats } from '../executions/seats.ts'
import { callTool } from './calls.ts'
import type { Operations } from './operations.ts'
import { refuseThrown } from './result.ts'

/** A page of the list of tools has those of at most so many workflows. */
const PAGE = 50

const INSTRUCTIONS =
  "Perdure executes workflows. Tools whose names begin with perdure_ are the service's own; each other one starts an " +
  "execution of one of the team's workflows, waits for its end for a minute, and then gives its output or its id."

/** Who has called: the token's team, and its role there. */
export type Caller = { teamId: string; role: Role }

type Parts = { seats: Seats; operations: Operations }

/** The MCP server for one request, which keeps nothing: any process of the API can take the next one. */
export function createMcpServer(
  deps: ApiDeps,
  c: Context<AppEnv>,
  { teamId, role }: Caller,
  { seats, operations }: Parts,
): Server {
  const server = new Server(
    { name: 'perdure', version: '1', title: 'Perdure' },
    { capabilities: { tools: {} }, instructions: INSTRUCTIONS },
  )
  const mayStart = covers(role, 'OPERATOR')

  server.setRequestHandler('tools/list', async ({ params }) => {
    const after = readCursor(params?.cursor)
    const own = after === undefined ? operations.list(role) : []
    const found = mayStart
      ? await guard(deps, c, () => listTools(c.get('scope'), teamId, { after: after ?? '', size: PAGE + 1 }))
      : []
    const tools = found.slice(0, PAGE).map(({ inputSchema, ...tool }) => {
      return { ...tool, inputSchema: { ...inputSchema, type: 'object' as const } }
    })
    const last = found.length > PAGE ? tools.at(-1) : undefined
    return { tools: [...own, ...tools], ...(last ? { nextCursor: writeCursor(last.name) } : {}) }
  })

  server.setRequestHandler('tools/call', async ({ params }, context) => {
    const { name, arguments: args = {} } = params
    const key = readKey(params._meta)
    try {
      if (operations.has(name)) return await operations.call(c, name, args, { teamId, key })
      if (!mayStart) throw new Fault('FORBIDDEN', 'To call the tools of workflows needs the role OPERATOR')
      const tool = await findWorkflowTool(c.get('scope'), teamId, name)
      if (!tool) throw new ProtocolError(ProtocolErrorCode.InvalidParams, `There is no tool "${name}"`)
      return await callTool(
        deps,
        c,
        { tool, args, seats },
        { key, report: makeReport(context, params._meta) },
      )
    } catch (error) {
      if (error instanceof ProtocolError) throw error
      await noteRefused(deps, c, error)
      const refused = refuseThrown(error)
      if (refused) return refused
      throw logged(c, error)
    }
  })
  return server
}

/** Reads for a list. Errors that it throws become errors of the protocol. */
async function guard<T>(deps: ApiDeps, c: Context<AppEnv>, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    await noteRefused(deps, c, error)
    const [first] = refuseThrown(error)?.content ?? []
    if (first?.type === 'text') throw new ProtocolError(ProtocolErrorCode.InternalError, first.text)
    throw logged(c, error)
  }
}

function logged(c: Context<AppEnv>, error: unknown): ProtocolError {
  c.get('log').error({ err: error }, 'an MCP request failed')
  return new ProtocolError(ProtocolErrorCode.InternalError, 'The service failed unexpectedly')
}

type Meta = Record<string, unknown> | undefined

/** The client's key for this call, which is that of the HTTP API's Idempotency-Key. */
function readKey(meta: Meta): string | undefined {
  const key = meta?.idempotencyKey
  if (key === undefined) return undefined
  if (typeof key === 'string' && /^[!-~]([ -~]{0,253}[!-~])?$/.test(key)) return key
  const message = '_meta.idempotencyKey must be 1 to 255 printable ASCII characters'
  throw new ProtocolError(ProtocolErrorCode.InvalidParams, message)
}

/** Tells the client how a call goes on, if it has asked for that. */
function makeReport({ mcpReq }: ServerContext, meta: Meta) {
  const progressToken = meta?.progressToken
  if (typeof progressToken !== 'string' && typeof progressToken !== 'number') return undefined
  return (progress: { progress: number; total: number; message: string }) =>
    mcpReq.notify({ method: 'notifications/progress', params: { progressToken, ...progress } })
}

/** A page begins after the name of a tool. */
function writeCursor(name: string): string {
  return Buffer.from(name).toString('base64url')
}

function readCursor(cursor: string | undefined): string | undefined {
  if (cursor === undefined) return undefined
  const name = Buffer.from(cursor, 'base64url').toString()
  if (/^[A-Za-z0-9_-]{1,64}$/.test(name) && writeCursor(name) === cursor) return name
  throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'The cursor is none of this list')
}
