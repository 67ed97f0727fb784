import { randomBytes } from 'node:crypto'
import type { ExecutionBody, NodeBody } from '../client.ts'
import { startRunning } from '../running.ts'
import { startOpenAi } from '../servers/models/openai.ts'
import type { VendorScript } from '../servers/models/vendor.ts'
import { startLoopback } from '../servers/tools.ts'

/** A tool as the config of an AI_AGENT has it. */
export type AgentTool = Record<string, unknown>

/** The schema of a tool's parameters: each of them is a string that is required. */
export const takes = (...names: string[]) => ({
  type: 'object',
  properties: Object.fromEntries(names.map((name) => [name, { type: 'string' }])),
  required: names,
  additionalProperties: false,
})

/** A run of an agent: the execution, the agent's own record, and those of its steps in their order. */
export type AgentRun = { run: ExecutionBody; agent: NodeBody; steps: StepBody[] }
type StepBody = NodeBody & { step: number | null; tool: string | null }

/** An engine, a vendor whose model says what a script has, and a server for tools. */
export async function startAgents(options: Parameters<typeof startRunning>[0] = {}) {
  const host = await startRunning(options)
  const vendor = await startOpenAi({ text: 'Done.' })
  const site = await startLoopback()
  const credentialId = await keep('OPENAI_COMPATIBLE', { baseUrl: vendor.url, apiKey: 'key-of-the-vendor' })

  /** Keeps a credential; returns its id. */
  async function keep(type: string, data: Record<string, unknown>): Promise<string> {
    const name = `c ${randomBytes(4).toString('hex')}`
    const body = { teamId: host.teamId, name, type, data }
    return (await host.ask<{ id: string }>('POST', '/api/credentials', body)).id
  }

  /** The node of an agent with these tools. */
  const agentNode = (tools: AgentTool[], config: object = {}, node: object = {}) => ({
    id: 'agent',
    type: 'AI_AGENT',
    ...node,
    config: { credentialId, model: 'gpt-test', instructions: 'Help.', prompt: 'Go.', tools, ...config },
  })
  const START = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }
  const graphOf = (agent: object, more: { nodes?: object[]; edges?: object[] } = {}) => ({
    nodes: [START, ...(more.nodes ?? []), agent],
    edges: more.edges ?? [{ source: 'start', target: 'agent' }],
  })

  /** The records of an agent in an execution. */
  function readAgent(run: ExecutionBody): AgentRun {
    const own = run.nodeExecutions.filter(({ nodeId }) => nodeId === 'agent') as StepBody[]
    return {
      run,
      agent: own.find(({ step }) => step === null)!,
      steps: own.filter(({ step }) => step !== null),
    }
  }

  return {
    ...host,
    vendor,
    site,
    credentialId,
    keep,
    agentNode,
    graphOf,
    readAgent,
    /** Runs an agent with these tools, whose model says what the script has. */
    async runAgent(
      tools: AgentTool[],
      script: VendorScript,
      more: { config?: object; node?: object; graph?: object; data?: Record<string, unknown> } = {},
    ): Promise<AgentRun> {
      vendor.calls.length = 0
      vendor.say(script)
      site.calls.length = 0
      const agent = agentNode(tools, { ...more.config }, more.node)
      const graph = { ...graphOf(agent, more.graph) } as Parameters<typeof host.create>[0]
      const id = await host.execute(await host.create(graph), more.data ?? {})
      return readAgent(await host.ended(id, 60_000))
    },
    /** What the model was told of its calls, in the request of that number. */
    toldIn(number: number): unknown[] {
      const { messages } = vendor.calls[number]!.body as { messages: { role: string; content: string }[] }
      return messages.filter(({ role }) => role === 'tool').map(({ content }) => readTold(content))
    },
    async stop() {
      await host.stop()
      await vendor.stop()
      await site.stop()
    },
  }
}

export type Agents = Awaited<ReturnType<typeof startAgents>>

/** A text is told as it is, all else as JSON. */
function readTold(content: string): unknown {
  try {
    return JSON.parse(content)
  } catch {
    return content
  }
}
