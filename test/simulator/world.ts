import { CamelCasePlugin, Kysely, PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler } from 'kysely'
import type { HttpClient, HttpRequest } from '../../activities/http/http.ts'
import type { DB } from '../../db/schema.ts'
import type { Store } from '../../db/scope.ts'
import type { GraphNode } from '../../workflows/graph/graph.ts'
import { graphNodeId } from '../../workflows/run/plan.ts'
import { joinStep, readActivityId } from '../../workflows/run/walk.ts'
import { type Sample, START, TIMES_OUT } from './graphs.ts'
import type { Fate, FindFate } from './interpreter.ts'
import { createRandom, hashText, type Random } from './random.ts'

type Pause = { nodeId: string; iteration: string; status: string; data: unknown; deadline: number | null }

/** What is outside of the run: PostgreSQL's answers to its statements, HTTP, and people who answer pauses. */
export type World = {
  store: Store
  http: HttpClient
  findFate: FindFate
  /** How often each call was made, by `nodeId#iteration`. */
  calls: Map<string, number>
  /** Answers the pause with this key, if it is still open. */
  answer(key: string): void
  /** Calls back for each pause that is opened and that somebody will answer. */
  onPause: (key: string) => void
  /** The attempt under way will not be heard of: what it did in the world does not count as its node's try. */
  forgetAttempt: boolean
  /** PostgreSQL may be away now. */
  mayBeAway: boolean
}

export const EXECUTION = '0190a0a0-0000-7000-8000-000000000001'
export const WORKFLOW = '0190a0a0-0000-7000-8000-000000000002'
const TEAM = '0190a0a0-0000-7000-8000-000000000003'

/** Refuses connections as PostgreSQL does while it is away. */
function databaseAway(): Error {
  return Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:5432'), { code: 'ECONNREFUSED' })
}

/** `random` decides about trouble; what becomes of a node depends on the seed and its key only. */
export function createWorld(sample: Sample, random: Random): World {
  const nodes = new Map(sample.graph.nodes.map((node) => [node.id, node]))
  const pauses = new Map<string, Pause>()
  const blobs = new Map<string, Uint8Array>()
  const tries = new Map<string, number>()

  function findFate(nodeId: string, iteration: string): Fate {
    return drawFate(
      nodes.get(graphNodeId(nodeId))!,
      createRandom(hashText(sample.seed, `${nodeId}#${iteration}`)),
    )
  }

  function query(sql: string, parameters: readonly unknown[]): Record<string, unknown>[] {
    if (world.mayBeAway && random.chance(sample.trouble.outage)) throw databaseAway()
    const [first] = parameters as string[]
    if (sql.includes('from "workflow_versions"')) {
      const { nodes, edges } = sample.graph
      return [{ nodes, edges, approver_ids: null, bytes: 1_000 }]
    }
    if (sql.includes('insert into "blobs"')) {
      blobs.set(String(parameters[1]), parameters[3] as Uint8Array)
      return []
    }
    if (sql.includes('from "blobs"')) return [{ sealed: blobs.get(String(parameters[1])) }]
    if (sql.includes('insert into pauses')) return openPause(parameters)
    if (sql.includes("update pauses set status = 'EXPIRED'")) {
      const pause = pauses.get(first!)
      if (pause?.status === 'OPEN') pause.status = 'EXPIRED'
      return []
    }
    if (sql.includes('abandoned as')) return abandon(parameters)
    if (sql.includes('from pauses')) {
      const pause = pauses.get(first!)
      const left = pause?.deadline == null ? null : pause.deadline - Date.now()
      return pause ? [{ status: pause.status, decisions: [], data: pause.data, left_ms: left }] : []
    }
    if (sql.includes('from "workflows"')) return [{ team_id: TEAM }]
    if (sql.includes('from "executions"')) {
      const identity = { workflow_id: WORKFLOW, workflow_version: 1, trigger: 'MANUAL', status: 'RUNNING' }
      return [{ ...identity, input_data: sample.data }]
    }
    throw new Error(`The world knows no answer to ${sql}`)
  }

  function openPause(parameters: readonly unknown[]): [] {
    const [, id, , nodeId, , iteration] = parameters as string[]
    if (pauses.has(id!)) return []
    const { timeoutMs } = nodes.get(nodeId!)!.config as { timeoutMs?: number }
    const deadline = timeoutMs === undefined ? null : Date.now() + timeoutMs
    pauses.set(id!, { nodeId: nodeId!, iteration: iteration!, status: 'OPEN', data: null, deadline })
    if (findFate(nodeId!, iteration!).decision !== 'timeout') world.onPause(`${nodeId}#${iteration}`)
    return []
  }

  function abandon([, ids, inside, own]: readonly unknown[]): [] {
    for (const pause of pauses.values()) {
      const isInside =
        pause.iteration.startsWith(String(inside).slice(0, -1)) || pause.iteration.split('!')[0] === own
      if (isInside && pause.status === 'OPEN' && (ids as string[]).includes(pause.nodeId))
        pause.status = 'ABANDONED'
    }
    return []
  }

  async function request({ headers }: HttpRequest) {
    const activity = headers!['idempotency-key']!.slice(EXECUTION.length + 1)
    const { nodeId, iteration: own, step } = readActivityId(activity)
    const iteration = joinStep(own, step)
    const key = `${nodeId}#${iteration}`
    const fate = findFate(nodeId, iteration)
    const count = tries.get(key) ?? 0
    if (!world.forgetAttempt) {
      tries.set(key, count + 1)
      world.calls.set(key, (world.calls.get(key) ?? 0) + 1)
    }
    const status = count < fate.failures ? 503 : fate.isFinal ? 404 : 200
    const body = Buffer.from(JSON.stringify((fate.answer as { body: unknown }).body))
    return { status, headers: { 'content-type': 'application/json' }, body, url: 'http://world.test/' }
  }

  const world: World = {
    store: {
      db: openFakeDatabase(query),
      keys: { current: 'k', byId: new Map([['k', Buffer.alloc(32, 7)]]) },
    },
    http: { request, close: async () => {} } as HttpClient,
    findFate,
    calls: new Map(),
    answer(key) {
      const pause = [...pauses.values()].find(({ nodeId, iteration }) => `${nodeId}#${iteration}` === key)
      if (pause?.status !== 'OPEN') return
      const { answer, decision } = findFate(pause.nodeId, pause.iteration)
      const isEvent = nodes.get(pause.nodeId)!.type === 'WAIT_FOR_EVENT'
      Object.assign(
        pause,
        isEvent ? { status: 'RECEIVED', data: answer } : { status: decision!.toUpperCase() },
      )
    },
    onPause: () => {},
    forgetAttempt: false,
    mayBeAway: false,
  }
  return world
}

function drawFate({ id, type, config }: GraphNode, random: Random): Fate {
  if (id === START) return { failures: 0, isFinal: false, answer: null, decision: null }
  const failures = random.chance(0.7) ? 0 : 1 + random.below(3)
  const isFinal = random.chance(0.15)
  const body = { n: random.below(3), list: [1, 2] }
  const answer =
    type === 'HTTP_REQUEST' || type === 'AI_AGENT'
      ? { status: 200, headers: { 'content-type': 'application/json' }, body }
      : body
  const answered =
    type === 'APPROVAL' || type === 'AI_AGENT' ? random.pick(['approved', 'rejected']) : 'event'
  return { failures, isFinal, answer, decision: config.timeoutMs === TIMES_OUT ? 'timeout' : answered }
}

/** A database that answers each statement with what `query` returns. */
function openFakeDatabase(query: (sql: string, parameters: readonly unknown[]) => Record<string, unknown>[]) {
  const connection = {
    executeQuery: async (compiled: { sql: string; parameters: readonly unknown[] }) => ({
      rows: query(compiled.sql, compiled.parameters) as never[],
    }),
    streamQuery: () => {
      throw new Error('Nothing is streamed here')
    },
  }
  const nothing = async () => {}
  const driver = {
    init: nothing,
    acquireConnection: async () => connection,
    beginTransaction: nothing,
    commitTransaction: nothing,
    rollbackTransaction: nothing,
    releaseConnection: nothing,
    destroy: nothing,
  }
  return new Kysely<DB>({
    dialect: {
      createAdapter: () => new PostgresAdapter(),
      createDriver: () => driver,
      createIntrospector: (db) => new PostgresIntrospector(db),
      createQueryCompiler: () => new PostgresQueryCompiler(),
    },
    plugins: [new CamelCasePlugin({ maintainNestedObjectKeys: true })],
  })
}
