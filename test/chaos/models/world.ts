import { createHash } from 'node:crypto'
import pg from 'pg'
import { startPostgres } from '../../support/servers/clusters.ts'
import { startMcp } from '../../support/servers/mcp.ts'
import { startOpenAi } from '../../support/servers/models/openai.ts'
import type { VendorAnswer, VendorCall } from '../../support/servers/models/vendor.ts'
import { startLoopback } from '../../support/servers/tools.ts'

/**
 * What a node asks its model for, as its prompt says it: `PLAN <execution> <node> <item> <kind> <turns>`. An agent's
 * turns are the names of the tools that are called in each, before the one that answers.
 */
export type Plan = { execution: string; node: string; item: string; kind: string; turns: string[][] }

/** A call that the vendor has got. Two with the same `hash` say the same: the second repeats the first. */
export type Asked = Plan & {
  hash: string
  turn: number
  /** Epoch milliseconds. */
  at: number
  /** What the vendor does instead of answering it. */
  fault: 'refused' | 'cut' | undefined
}

/** A call of a tool that has arrived: `key` is the argument by which each call is another one. */
export type Arrival = { tool: string; key: string; idempotencyKey: string | undefined; at: number }

export const USAGE = { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 }

/** The tools that must not be called twice for one call of the model. */
export const ONCE_TOOLS = ['pay', 'ask', 'note', 'send']

export type World = Awaited<ReturnType<typeof startWorld>>

/** Starts what is outside: a vendor of models, tools, an MCP server and a database, which count what they get. */
export async function startWorld() {
  const asked: Asked[] = []
  const untold: VendorCall[] = []
  const arrivals: Arrival[] = []
  const seen = new Set<string>()

  function answer(call: VendorCall): VendorAnswer {
    const messages = call.body.messages as { role: string; content: unknown }[]
    const last = messages.findLastIndex(({ role, content }) => role === 'user' && readPlan(content))
    if (last < 0) {
      untold.push(call)
      return { text: 'A summary of what was said.', usage: USAGE }
    }
    const plan = readPlan(messages[last]!.content)!
    const hash = createHash('sha256')
      .update(JSON.stringify([plan, messages]))
      .digest()
    const turn = messages.slice(last).filter(({ role }) => role === 'assistant').length
    const name = hash.toString('hex')
    const isFirst = !seen.has(name)
    seen.add(name)
    const fate = isFirst && plan.kind !== 'refuse' ? hash[0]! : 255
    const fault = fate < 16 || plan.kind === 'refuse' ? 'refused' : fate < 26 ? 'cut' : undefined
    asked.push({ ...plan, hash: name, turn, at: Date.now(), fault })
    if (plan.kind === 'refuse') return { status: 400 }
    if (fate < 8) return { status: 429, headers: { 'retry-after': '1' } }
    if (fate < 16) return { status: 500 }
    const speech = { ...speak(plan, turn, name), usage: USAGE, paceMs: 5 + (hash[1]! % 60) }
    return fault === 'cut' ? { ...speech, cutAfter: 3 } : speech
  }

  const vendor = await startOpenAi(answer)
  const site = await startLoopback()
  site.answer(async ({ path, headers }, _, response) => {
    const [tool = '', key = ''] = path.slice(1).split('/').map(decodeURIComponent)
    const sent = headers['idempotency-key']
    arrivals.push({ tool, key, idempotencyKey: sent && String(sent), at: Date.now() })
    await new Promise((resolve) => setTimeout(resolve, 20 + (hashOf(key)[0]! % 16) ** 2 * 15))
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ done: key }))
  })
  const mcpTool = (name: string) => ({
    name,
    description: name,
    inputSchema: { type: 'object' as const, properties: { key: { type: 'string' } }, required: ['key'] },
    call: async ({ key }: Record<string, unknown>) => {
      arrivals.push({ tool: name, key: String(key), idempotencyKey: undefined, at: Date.now() })
      await new Promise((resolve) => setTimeout(resolve, 20 + (hashOf(String(key))[0]! % 16) ** 2 * 15))
      return { content: [{ type: 'text', text: `done ${key}` }] }
    },
  })
  const servers = {
    once: await startMcp('json', [mcpTool('send')]),
    again: await startMcp('sse', [mcpTool('put')]),
  }
  const database = await startPostgres()
  const client = new pg.Client({ connectionString: database.url })
  await client.connect()
  await client.query('create table notes (key text, at timestamptz not null default clock_timestamp())')
  return {
    vendor,
    site,
    servers,
    database,
    asked,
    untold,
    /** All calls of tools, those that the database has counted among them. */
    async readArrivals(): Promise<Arrival[]> {
      const { rows } = await client.query<{ key: string; at: Date }>('select key, at from notes')
      return [
        ...arrivals,
        ...rows.map(({ key, at }) => ({ tool: 'note', key, idempotencyKey: undefined, at: at.getTime() })),
      ]
    },
    async stop(): Promise<void> {
      await client.end()
      await Promise.all([
        vendor.stop(),
        site.stop(),
        servers.once.stop(),
        servers.again.stop(),
        database.stop(),
      ])
    },
  }
}

/** What the model says in a turn of a plan. */
export function sayTurn({ execution, node, item }: Plan, turn: number): string {
  const words = hashOf(`${execution} ${node} ${item} ${turn}`)
  const count = 3 + (words[0]! % 25)
  return `Turn ${turn} of ${node}: ${Array.from({ length: count }, (_, at) => WORDS[words[at % 32]! % WORDS.length]).join(' ')}. `
}

const WORDS = ['weiß', 'parcel', '🎉', 'naïve', 'the', '東京', 'a', 'ends', 'well', 'Grüße']

function speak(plan: Plan, turn: number, hash: string): VendorAnswer & object {
  const { kind, turns, execution, node, item } = plan
  const tools = turns[turn]
  if (kind === 'agent' && tools)
    return {
      text: sayTurn(plan, turn),
      tools: tools.map((name, at) => ({
        name,
        args: name === 'run' ? { node: 'seed' } : { key: `${execution}:${node}:${item}:${turn}.${at}` },
      })),
    }
  if (kind === 'classify') return { text: '{"category":"b"}' }
  if (kind === 'json') return { text: '{"n":7}' }
  if (kind === 'twice') return { text: turn === 0 ? '{"n":"seven"}' : '{"n":7}' }
  // What is said of a part has the plan in it, so that the call which joins the parts is known too.
  if (kind === 'summary') return { text: `PLAN ${execution} ${node} ${item} summary [] ${hash.slice(0, 8)}` }
  return { text: sayTurn(plan, turn) }
}

function readPlan(content: unknown): Plan | undefined {
  const found = /PLAN (\S+) (\S+) (\S+) (\S+) (\S+)/.exec(typeof content === 'string' ? content : '')
  if (!found) return undefined
  const [, execution = '', node = '', item = '', kind = '', turns = '[]'] = found
  return { execution, node, item, kind, turns: JSON.parse(turns) }
}

const hashOf = (text: string) => createHash('sha256').update(text).digest()
