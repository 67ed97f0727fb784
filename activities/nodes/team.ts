import * as v from 'valibot'
import { type ExecutionDetail, listTeamExecutions, readExecution } from '../../db/executions/executions.ts'
import type { ExecutionStatus } from '../../db/executions/status.ts'
import { Fault } from '../../db/fault.ts'
import { readOwner } from '../../db/owners.ts'
import type { Page } from '../../db/page.ts'
import { type Scope, serviceScope } from '../../db/scope.ts'
import { listWorkflows, readWorkflow } from '../../db/workflows/workflows.ts'
import { MAX_LISTED, MAX_WHOLE, TEAM_VALUES, type TeamOperation } from '../../workflows/nodes/team.ts'
import { describeIssues } from '../../workflows/problem.ts'
import { NodeFailure } from './kit/failure.ts'
import { createOutputBound } from './kit/items.ts'
import type { NodeContext, NodeRunner } from './kit/node.ts'

const PAGE = 100
const DEFAULT_LIMIT = 100

type Asked = {
  id: string
  search?: string
  active?: boolean
  workflowId?: string
  status?: ExecutionStatus
  limit?: number
}

/**
 * TEAM_READ: outputs {workflows, count, total} or {executions, count, total}, with `output` the list alone, or the workflow
 * or execution itself. It reads with the rights of a VIEWER of the execution's own team: what other teams have is not
 * there, secrets are hidden, and so are the values of executions that are part of a chat. Fails with InvalidInput for what
 * is not there, TooManyItems for a list that was to be whole and is not, OutputTooLarge.
 */
export const runTeamRead: NodeRunner = async (context) => {
  const { store, executionId } = context.spot
  const asked = await renderAsked(context)
  const teamId = await readOwner(store, 'executions', executionId)
  const actor = { kind: 'SYSTEM', id: null, name: 'TEAM_READ' } as const
  const scope = serviceScope(store, actor, [[teamId, 'VIEWER']])
  return { output: await read(scope, teamId, context, asked) }
}

async function read(scope: Scope, teamId: string, context: NodeContext, asked: Asked): Promise<unknown> {
  const { operation, whole = false } = context.config as { operation: TeamOperation; whole?: boolean }
  const bound = createOutputBound()
  const weigh = (value: Record<string, unknown>) => {
    bound(value)
    return value
  }
  const getWorkflow = async (id: string) => {
    const { nodes, edges, settings, version, ...rest } = await readWorkflow(scope, id)
    const { name, description, active, createdAt, updatedAt } = rest
    const head = { id, name, description, active, createdAt, updatedAt, version }
    return weigh(writeTimes({ ...head, nodes, edges, settings }))
  }
  const getExecution = async (id: string) => weigh(showExecution(await readExecution(scope, id), whole))
  switch (operation) {
    case 'getWorkflow':
      return findOne('workflow', () => getWorkflow(asked.id))
    case 'getExecution':
      return findOne('execution', () => getExecution(asked.id))
    case 'listWorkflows': {
      const { search, active } = asked
      const list = await listAll(context, asked, (page) =>
        listWorkflows(scope, { teamId, search, active, ...page }),
      )
      return whole
        ? showList('workflows', context, await eachOf(list, getWorkflow))
        : showList('workflows', context, list)
    }
    case 'listExecutions': {
      const { workflowId, status } = asked
      const list = await listAll(context, asked, (page) =>
        listTeamExecutions(scope, teamId, { workflowId, status, ...page }),
      )
      return whole
        ? showList('executions', context, await eachOf(list, getExecution))
        : showList('executions', context, list)
    }
  }
}

type Listed<T> = { entries: T[]; total: number }

/** The newest entries, each once: what is added meanwhile moves the others to later pages. */
async function listAll<T extends { id: string }>(
  { config, signal }: NodeContext,
  { limit }: Asked,
  readPage: (page: { page: number; size: number }) => Promise<Page<T>>,
): Promise<Listed<T>> {
  const most = config.whole === true ? MAX_WHOLE : MAX_LISTED
  const isAll = config.output === 'list' && limit === undefined
  const wanted = Math.min(limit ?? (isAll ? MAX_LISTED : DEFAULT_LIMIT), most)
  const found = new Map<string, T>()
  for (let page = 0; ; page++) {
    signal.throwIfAborted()
    const { content, totalElements: total } = await readPage({ page, size: PAGE })
    for (const one of content) found.set(one.id, one)
    if (isAll && total > most) {
      const message = `There are ${total}, and at most ${most} are read at once: set a limit`
      throw new NodeFailure(message, { type: 'TooManyItems' })
    }
    if (found.size < wanted && content.length === PAGE) continue
    return { entries: [...found.values()].slice(0, wanted), total }
  }
}

/** One after the other; what was deleted meanwhile is left out. */
async function eachOf<T extends { id: string }, R>(
  { entries, total }: Listed<T>,
  get: (id: string) => Promise<R>,
): Promise<Listed<R>> {
  const found: R[] = []
  for (const { id } of entries) {
    const one = await get(id).catch((error) => {
      if (error instanceof Fault && error.code === 'NOT_FOUND') return undefined
      throw error
    })
    if (one !== undefined) found.push(one)
  }
  return { entries: found, total }
}

function showList<T extends object>(
  name: string,
  { config }: NodeContext,
  { entries: found, total }: Listed<T>,
): unknown {
  const entries = found.map(writeTimes)
  return config.output === 'list' ? entries : { [name]: entries, count: entries.length, total }
}

/** What others have is not there: it fails as what does not exist. */
async function findOne<T>(what: string, get: () => Promise<T>): Promise<T> {
  try {
    return await get()
  } catch (error) {
    if (!(error instanceof Fault) || !['NOT_FOUND', 'FORBIDDEN'].includes(error.code)) throw error
    throw new NodeFailure(`id: the team has no such ${what}`, { type: 'InvalidInput' })
  }
}

function showExecution(execution: ExecutionDetail, whole: boolean): Record<string, unknown> {
  const { id, workflowId, workflowName, workflowVersion, status, trigger, hidden } = execution
  const { errorMessage, createdAt, startedAt, completedAt, durationMs, retriedFrom } = execution
  const head = { id, workflowId, workflowName, workflowVersion, status, trigger, hidden }
  const times = { errorMessage, createdAt, startedAt, completedAt, durationMs, retriedFrom }
  if (!whole) return writeTimes({ ...head, ...times })
  const { inputData, outputData, nodeExecutions } = execution
  const nodes = nodeExecutions.map((one) => {
    const { nodeId, nodeName, nodeType, iteration, errorMessage: error } = one
    const place = { nodeId, nodeName, nodeType, iteration, status: one.status, errorMessage: error }
    const values = { inputData: one.inputData, outputData: one.outputData }
    return writeTimes({ ...place, startedAt: one.startedAt, completedAt: one.completedAt, ...values })
  })
  return writeTimes({ ...head, ...times, inputData, outputData, nodes })
}

/** Times as JSON has them. */
function writeTimes(value: object): Record<string, unknown> {
  const entries = Object.entries(value)
  return Object.fromEntries(entries.map(([key, one]) => [key, one instanceof Date ? one.toISOString() : one]))
}

/** The settings with their values computed. Throws a NodeFailure (InvalidInput) that names all that is wrong. */
async function renderAsked({ config, bindings, evaluator }: NodeContext): Promise<Asked> {
  const asked: Record<string, unknown> = {}
  const wrong: string[] = []
  for (const [key, schema] of Object.entries(TEAM_VALUES)) {
    if (config[key] === undefined) continue
    const value = await evaluator.render(config[key], bindings)
    const parsed = v.safeParse(schema as v.GenericSchema, value)
    if (parsed.success) asked[key] = parsed.output
    else for (const { path, message } of describeIssues(parsed.issues, key)) wrong.push(`${path} ${message}`)
  }
  if (wrong.length > 0) throw new NodeFailure(wrong.join('; '), { type: 'InvalidInput' })
  return asked as Asked
}
