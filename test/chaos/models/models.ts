import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { findFree } from '../../../worker/local/ports.ts'
import { createRandom } from '../../simulator/random.ts'
import type { ExecutionBody } from '../../support/client.ts'
import { ENDED } from '../../support/client.ts'
import { edges } from '../../support/engine/graphs.ts'
import { startInstallation } from '../../support/engine/installation.ts'
import { startBeside } from '../beside.ts'
import { readEnds, rebuildAll, repeatAsk } from '../ends.ts'
import { createStrikes } from '../strikes.ts'
import { createTalker, findChatProblems, type Said } from './chats.ts'
import { chatGraph, drawModelGraph, drawTurns, type ModelGraph, refusedGraph } from './graphs.ts'
import { type CallRow, type Evidence, findAgentProblems, findModelProblems, sumRows, tally } from './judge.ts'
import { sayTurn, startWorld } from './world.ts'

// Keeps starting executions of random graphs that ask models, and chats, while parts of the service are killed and
// frozen at random: `npm run chaos -- models <minutes> <seed>`. Beside the installation runs another worker, and
// another API process.

type Drawn = ModelGraph & { workflowId: string }
type Started = { id: string; of: Drawn; cancelled: boolean }

const GRAPHS = 14
const START_MS = 500
const AT_ONCE = 24
const CHATS = 6
const QUIET_MS = 4_000
const CANCEL_SHARE = 0.07
const STOP_SHARE = 0.15

const [, , , minutes = '5', seed = String(Date.now() % 100_000)] = process.argv
const [random, fates, chatting] = [0, 1, 2].map((more) => createRandom(Number(seed) * 3 + more)) as [R, R, R]
type R = ReturnType<typeof createRandom>

const world = await startWorld()
const settings = { RATE_LIMITS: 'off', LOG_LEVEL: 'warn', EGRESS_ALLOW: '127.0.0.0/8' }
const host = await startInstallation(settings)
const port = await findFree()
const api = await startBeside(host, {
  name: 'api',
  script: 'worker/api.ts',
  says: 'the API is listening',
  settings: { PORT: String(port) },
})
const worker = await startBeside(host, {
  name: 'worker',
  script: 'worker/worker.ts',
  says: 'the worker polls',
})
const started: Started[] = []
const said: { of: string[][] | undefined; said: Said }[] = []
const faults: string[] = []
let isOver = false
let isChecked = false
const strikes = createStrikes(host, {
  next: fates.next,
  beside: [worker, api],
  describe: () => `${started.length} executions and ${said.length} replies so far`,
})
try {
  await run()
} finally {
  isOver = true
  isChecked = true
  await Promise.all([worker.stop(), api.stop()])
  await host.stop()
  await world.stop()
}
process.exit(faults.length > 0 ? 1 : 0)

async function run(): Promise<void> {
  const { ask, teamId } = host
  const keep = async (name: string, type: string, data: object) =>
    (await ask<{ id: string }>('POST', '/api/credentials', { teamId, name, type, data })).id
  await ask('PUT', `/api/teams/${teamId}/model-prices`, {
    prices: [{ model: 'loop-*', inputPerMillion: 1, outputPerMillion: 2 }],
  })
  const places = {
    world,
    credentialId: await keep('vendor', 'OPENAI_COMPATIBLE', {
      baseUrl: world.vendor.url,
      apiKey: 'a-key-of-it',
    }),
    databaseId: await keep('notes', 'DATABASE', { ...world.database.login, tls: 'auto' }),
    childId: await host.create({
      nodes: [
        { id: 'in', type: 'SUB_WORKFLOW_TRIGGER', config: {} },
        {
          ...{ id: 'call', type: 'HTTP_REQUEST', retry: { maxAttempts: 1 } },
          config: { method: 'POST', url: `${world.site.origin}/child/{{ $input.key }}` },
        },
      ],
      edges: edges('in -> call'),
    }),
  }
  const graphs: Drawn[] = []
  for (let number = 1; number <= GRAPHS; number++) {
    const drawn = number === GRAPHS ? refusedGraph(places) : drawModelGraph(random, number, places)
    graphs.push({ ...drawn, workflowId: await host.create(drawn.graph) })
  }
  const agents: { workflowId: string; turns: string[][] | undefined }[] = []
  for (const turns of [undefined, drawTurns(random, 3), drawTurns(random, 5)]) {
    const workflowId = await host.create(chatGraph(places, turns))
    await ask('PUT', `/api/workflows/${workflowId}`, { active: true })
    agents.push({ workflowId, turns })
  }
  const cookie = await host.signIn()
  const talker = createTalker(host, {
    urls: [host.url, `http://127.0.0.1:${port}`],
    cookie,
    random: chatting,
  })
  const deciding = decide()
  const working = [keepStarting(graphs), ...Array.from({ length: CHATS }, (_, n) => keepTalking(n))]
  const until = Date.now() + Number(minutes) * 60_000
  while (Date.now() < until) {
    await sleep(QUIET_MS * (0.5 + fates.next()))
    await strikes.strike()
  }
  isOver = true
  await strikes.over()
  await Promise.all(working)
  await check()
  isChecked = true
  await deciding

  async function keepTalking(n: number): Promise<void> {
    let sessionId = ''
    let agent = agents[0]!
    for (let at = 0; !isOver; at++) {
      try {
        if (at % 4 === 0) {
          agent = chatting.pick(agents)
          sessionId = await talker.open(agent.workflowId)
        }
        const content = `chat ${n} says ${at} ${'and more '.repeat(chatting.below(60))}`.trim()
        const one = await talker.say(sessionId, content, chatting.chance(STOP_SHARE))
        said.push({ of: agent.turns, said: one })
      } catch (error) {
        fault(`chat ${n}: ${(error as Error).message}`)
        at = 3 - (at % 4) + at
      }
    }
  }

  async function check(): Promise<void> {
    const chats = said.map(({ said: { saved } }) => saved.user?.executionId).filter((id) => id !== undefined)
    const ids = [...started.map(({ id }) => id), ...chats]
    const ends = await readEnds(host, ids)
    const again = new Map<string, ExecutionBody>()
    rebuildAll(host)
    for (const id of ids) again.set(id, await host.read(id))
    for (const id of ids)
      if (JSON.stringify(ends.get(id)) !== JSON.stringify(again.get(id))) {
        fault(`${id}: its record differs after a rebuild from its history`)
        console.log(findDifference(ends.get(id)!, again.get(id)!))
      }
    const { rows, streaming, others } = await readRows()
    const evidence: Evidence = { asked: world.asked, arrivals: await world.readArrivals(), rows, strikes }
    for (const { id, of, cancelled } of started) {
      const execution = ends.get(id)!
      const types = new Map(of.graph.nodes.map((node) => [node.id, node.type]))
      const problems = findModelProblems(execution, types, evidence)
      const wanted = cancelled && execution.status === 'CANCELLED' ? 'CANCELLED' : of.status
      if (execution.status !== wanted)
        problems.push(`${execution.status} (${execution.errorMessage}) instead of ${wanted}`)
      if (execution.status === 'SUCCESS')
        for (const [node, turns] of Object.entries(of.turns))
          problems.push(...findAgentProblems(execution, node, turns))
      for (const problem of problems) fault(`${of.name} ${id}: ${problem}`)
    }
    for (const { of, said: one } of said) {
      const { user } = one.saved
      const turns = of ?? []
      const plan = { execution: user?.executionId ?? '', node: 'reply', item: 'x', kind: 'agent', turns }
      const expected = [...turns, null].map((_, turn) => sayTurn(plan, turn)).join('')
      const now = await talker.read(one.sessionId)
      const execution = ends.get(plan.execution)
      const problems = findChatProblems(one, now, expected)
      if (execution) {
        if (!ENDED.includes(execution.status)) problems.push(`its execution is ${execution.status}`)
        problems.push(
          ...findModelProblems(
            execution,
            new Map([
              ['topic', 'LLM'],
              ['reply', of ? 'AI_AGENT' : 'LLM'],
            ]),
            evidence,
          ),
        )
        if (execution.status === 'SUCCESS' && of) problems.push(...findAgentProblems(execution, 'reply', of))
      }
      const { tokenUsage } = one.saved.reply ?? {}
      const took = sumRows(rows.filter(({ executionId }) => executionId === plan.execution))
      const isSame = tokenUsage?.input === took.inputTokens && tokenUsage.output === took.outputTokens
      if (tokenUsage && !isSame)
        problems.push(`the reply took ${JSON.stringify(tokenUsage)}, its rows say ${JSON.stringify(took)}`)
      for (const problem of problems) fault(`chat ${one.sessionId} ${plan.execution}: ${problem}`)
    }
    if (streaming > 0) fault(`${streaming} replies are STREAMING`)
    if (others > 0) fault(`${others} executions have not ended`)
    const keys = Map.groupBy(evidence.arrivals, ({ tool, key }) => `${tool} ${key}`)
    const noted = rows.length
    const total = await ask<Record<string, number>>('GET', `/api/monitoring/teams/${teamId}/token-usage`)
    if (total.totalInputTokens !== sumRows(rows).inputTokens)
      fault(`the team has used ${JSON.stringify(total)}, its rows say ${JSON.stringify(sumRows(rows))}`)
    const sent = world.asked.length + world.untold.length
    if (sent > noted) fault(`${sent} calls were sent to the vendor, ${noted} are noted`)
    console.log(
      `seed ${seed}: ${started.length} executions, ${said.length} replies (${said.reduce((sum, one) => sum + one.said.breaks, 0)} breaks, ` +
        `${said.reduce((sum, one) => sum + one.said.resets, 0)} resets), ${sent} calls to the model, ${noted} noted, ${keys.size} calls of tools; strikes:`,
    )
    console.table(strikes.counts)
    console.table(tally)
    const statuses = Map.groupBy(said, ({ said: { saved } }) => saved.reply?.status ?? 'none')
    console.log([...statuses].map(([status, all]) => `${status} ${all.length}`).join(', '))
    console.log(faults.length === 0 ? 'no faults' : 'FAULTS, see above')
    if (faults.length > 0) keepEvidence([...ends.values()], evidence)
  }
}

/** Like a careful client: each start has a key, and is repeated while there is no answer. */
async function keepStarting(graphs: Drawn[]): Promise<void> {
  const open = new Set<Promise<void>>()
  for (let n = 1; !isOver; n++) {
    const of = random.pick(graphs)
    const one = startOne(of, n, random.chance(CANCEL_SHARE))
      .catch((error) => fault(`start ${n} of ${of.name}: ${error}`))
      .finally(() => open.delete(one))
    open.add(one)
    await sleep(START_MS)
    while (open.size >= AT_ONCE && !isOver) await sleep(50)
  }
  await Promise.all(open)
}

async function startOne(of: Drawn, n: number, cancels: boolean): Promise<void> {
  const path = `/api/workflows/${of.workflowId}/execute`
  const headers = { 'idempotency-key': `chaos-${n}` }
  const text = await repeatAsk(() => host.post(path, { teamId: host.teamId, data: { n } }, headers), [202])
  const { executionId: id } = JSON.parse(text) as { executionId: string }
  const one: Started = { id, of, cancelled: false }
  started.push(one)
  if (cancels) {
    await sleep(500 + 4_000 * random.next())
    await repeatAsk(() => host.post(`/api/executions/${id}/cancel`), [200, 409])
    one.cancelled = true
  }
  while (!isOver && !ENDED.includes((await host.read(id).catch(() => ({ status: '' }))).status))
    await sleep(300)
}

/** Decides every approval after a while: most are given. */
async function decide(): Promise<void> {
  type Page = { content: { id: string }[] }
  while (!isChecked) {
    const answer = await host.get(`/api/approvals?teamId=${host.teamId}&size=100`).catch(() => undefined)
    const page = answer?.ok ? ((await answer.json().catch(() => undefined)) as Page | undefined) : undefined
    for (const { id } of page?.content ?? []) {
      const decision = id.charCodeAt(0) % 8 === 0 ? 'rejected' : 'approved'
      await host.post(`/api/approvals/${id}`, { decision }).catch(() => {})
    }
    await sleep(700)
  }
}

async function readRows(): Promise<{ rows: CallRow[]; streaming: number; others: number }> {
  const client = new pg.Client({ connectionString: host.holder().addresses.databaseUrl })
  await client.connect()
  const { rows } = await client.query<CallRow>(
    `select execution_id as "executionId", node_id as "nodeId", iteration, step, attempt, status, cost,
      input_tokens as "inputTokens", created_at as "createdAt" from model_calls order by created_at`,
  )
  const count = async (text: string) => (await client.query<{ n: number }>(text)).rows[0]!.n
  const streaming = await count(
    `select count(*)::int as n from agent_chat_messages where status = 'STREAMING'`,
  )
  const others = await count(
    `select count(*)::int as n from executions where status not in ('SUCCESS', 'FAILED', 'CANCELLED')`,
  )
  await client.end()
  return { rows, streaming, others }
}

/** Writes what is known of the executions that are named in faults, and the logs, to a folder to be looked at. */
function keepEvidence(ends: ExecutionBody[], { asked, arrivals, rows }: Evidence): void {
  const folder = mkdtempSync(join(tmpdir(), `perdure-chaos-${seed}-`))
  for (const run of ends.filter(({ id }) => faults.some((text) => text.includes(id)))) {
    const known = {
      run,
      asked: asked.filter(({ execution }) => execution === run.id),
      arrivals: arrivals.filter(({ key }) => key.startsWith(run.id)),
      rows: rows.filter(({ executionId }) => executionId === run.id),
      said: said.filter(({ said: { saved } }) => saved.user?.executionId === run.id),
    }
    writeFileSync(join(folder, `${run.id}.json`), JSON.stringify(known, null, 1))
  }
  writeFileSync(join(folder, 'service.log'), host.log('service'))
  writeFileSync(join(folder, 'worker.log'), worker.log())
  writeFileSync(join(folder, 'api.log'), api.log())
  console.log(`more in ${folder}`)
}

function fault(message: string): void {
  faults.push(message)
  console.log(`FAULT  ${message}`)
}

function findDifference(before: ExecutionBody, after: ExecutionBody): unknown {
  const [a, b] = [before, after].map((one) => JSON.stringify(one, null, 1).split('\n')) as [
    string[],
    string[],
  ]
  const at = a.findIndex((line, index) => line !== b[index])
  return { before: a.slice(at - 4, at + 5), after: b.slice(at - 4, at + 5) }
}
