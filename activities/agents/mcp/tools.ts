import { isDeepStrictEqual } from 'node:util'
import { createExactMask } from '../../../db/redaction/exact.ts'
import { checkJsonSchema } from '../../../workflows/jsonschema/schema.ts'
import type { ToolOf } from '../../../workflows/nodes/tools.ts'
import { demandSchema } from '../../jsonschema/check.ts'
import { NodeFailure } from '../../nodes/kit/failure.ts'
import type { NodeContext } from '../../nodes/kit/node.ts'
import { describeLarge } from '../../reading/json.ts'
import { readAgentConfig } from '../config.ts'
import { describeGuard, guardValue } from '../guards/guards.ts'
import type { AskedCall, RemoteTool } from '../state.ts'
import { withServer } from './server.ts'

/** The most tools of a server, and the most characters of what they say of themselves together. */
const MAX_TOOLS = 100
const MAX_CHARACTERS = 300_000
const MAX_DESCRIPTION = 4_000

type ServerTool = Pick<RemoteTool, 'name' | 'description' | 'parameters'>

/**
 * Asks a server for its tools: those of `include`, else all. One whose schema cannot be used is left out, with a warning.
 * Throws a NodeFailure if it has too many, or not those that are wanted.
 */
export async function listServerTools(context: NodeContext, tool: ToolOf<'MCP'>): Promise<ServerTool[]> {
  const { name: server, description: about, include } = tool
  const listed = await withServer(context, tool, ({ client, limits }) => client.listTools(undefined, limits))
  // Before anything is cut: the model is told of them in this very step, and a server may send its own secret back.
  const { tools } = createExactMask(context.credentials?.secrets() ?? []).value({ tools: listed.tools })
  const missing = include?.filter((name) => !tools.some((offered) => offered.name === name)) ?? []
  if (missing.length > 0)
    throw new NodeFailure(`The server ${server} has no tool ${missing.join(', ')} (include)`, {
      type: 'InvalidConfig',
    })
  const wanted = include ? tools.filter(({ name }) => include.includes(name)) : tools
  if (wanted.length > MAX_TOOLS)
    throw tooMuch(server, `${wanted.length} tools; at most ${MAX_TOOLS} are offered`)
  const found = wanted.map((offered) => describeOffered(about, offered))
  const { length } = JSON.stringify(found)
  if (length > MAX_CHARACTERS)
    throw tooMuch(
      server,
      `tools that take ${length} characters to be described; at most ${MAX_CHARACTERS} are offered`,
    )
  const usable: ServerTool[] = []
  for (const offered of found) {
    const why =
      (await findSchemaFault(context, offered.parameters)) ?? (await findGuardFault(context, offered))
    if (why === undefined) usable.push(offered)
    else {
      const message = `the tool ${offered.name.slice(0, 100)} of the server was left out: ${why}`
      context.notes.add({ warnings: [{ path: `config.tools.${server}`, message }] })
    }
  }
  return usable
}

type Offered = { name: string; description?: string | undefined; inputSchema: object }

/** Line ends and tabs may stay. A person who reads the record must see what the model reads. */
const UNSEEN = /[^\P{C}\n\t]/gu

/** A tool as the model is told of it. */
function describeOffered(about: string | undefined, { name, description, inputSchema }: Offered): ServerTool {
  const seen = description?.toWellFormed().replace(UNSEEN, '')
  return {
    name,
    description: [about, seen].filter(Boolean).join('\n').slice(0, MAX_DESCRIPTION).toWellFormed(),
    parameters: inputSchema as Record<string, unknown>,
  }
}

/**
 * What the node's guardrails have against what a server says of a tool: the model reads that as it reads the answers of
 * tools, so it is checked as they are. Undefined if nothing, or if they check none.
 */
async function findGuardFault(context: NodeContext, offered: ServerTool): Promise<string | undefined> {
  const checks = readAgentConfig(context).guardrails?.toolResults
  if (!checks) return undefined
  // Neither is a result that has to fit a schema, and a model is not asked about each of a hundred tools.
  const own = { ...checks, validateSchema: false, askModel: false }
  const { passed, note } = await guardValue(context, 'toolResults', own, offered)
  return passed ? undefined : `a guardrail has found ${describeGuard(note)} in how it is described`
}

/** The fault in the schema of a foreign server; undefined if the schema can be used. */
async function findSchemaFault(context: NodeContext, schema: unknown): Promise<string | undefined> {
  const [problem] = checkJsonSchema(schema)
  if (problem) return `its schema ${problem.message}`
  try {
    await demandSchema(context, schema)
    return undefined
  } catch (error) {
    if (!(error instanceof NodeFailure) || error.retryable) throw error
    return `its schema ${error.message.slice(0, 300)}`
  }
}

function tooMuch(server: string, what: string): NodeFailure {
  return new NodeFailure(`The server ${server} has ${what}: name those that are needed with include`, {
    type: 'InvalidConfig',
  })
}

/**
 * Calls a tool of a server as it was offered in the first turn. Answers with its structured content, else with its text;
 * what the tool says of an error is {error}.
 */
export async function callServerTool(
  context: NodeContext,
  tool: ToolOf<'MCP'>,
  { remote, call, begin }: { remote: RemoteTool; call: AskedCall; begin: () => Promise<void> },
): Promise<unknown> {
  const { remoteName: name, parameters } = remote
  const result = await withServer(context, tool, async ({ client, limits, large }) => {
    const { tools } = await client.listTools(undefined, limits)
    demandSame(context, tool, { remote, tools })
    await begin()
    const definition = { name, inputSchema: parameters as { type: 'object' } }
    const given = { name, arguments: call.arguments }
    const said = await client.callTool(given, { ...limits, toolDefinition: definition })
    const count = large()
    const message = count > 0 ? describeLarge({ large: { count, key: '' } }) : undefined
    if (message) context.notes.add({ warnings: [{ path: `config.tools.${tool.name}`, message }] })
    return said
  })
  const { content, structuredContent, isError } = result
  const text = content.map(describeContent).join('\n')
  if (isError) return { error: text === '' ? 'the tool has failed' : text }
  return structuredContent ?? text
}

/**
 * Refuses a call of a tool that its server now describes otherwise: the model chose, and a person may have approved,
 * a different tool. If the tool is gone, its server refuses the call.
 */
function demandSame(
  context: NodeContext,
  { name: server, description: about }: ToolOf<'MCP'>,
  { remote, tools }: { remote: RemoteTool; tools: Offered[] },
): void {
  const named = tools.filter(({ name }) => name === remote.remoteName)
  const { value } = createExactMask(context.credentials?.secrets() ?? [])
  const isSame = value({ named }).named.some((offered) => {
    const { description, parameters } = describeOffered(about, offered)
    // An agent of the release before has kept characters that cannot be seen.
    const [now, before] = [description, remote.description].map((text) => text.replace(UNSEEN, ''))
    return now === before && isDeepStrictEqual(parameters, remote.parameters)
  })
  if (named.length === 0 || isSame) return
  const what = remote.remoteName.slice(0, 100)
  throw new NodeFailure(
    `The server ${server} describes ${what} otherwise than in the first turn: it was not called`,
    { type: 'ToolRefused' },
  )
}

function describeContent(part: { type: string; text?: unknown; mimeType?: unknown }): string {
  if (part.type === 'text') return String(part.text)
  const kind = typeof part.mimeType === 'string' ? ` (${part.mimeType.slice(0, 100)})` : ''
  return `[${part.type}${kind}: not shown]`
}
