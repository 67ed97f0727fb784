import { v7 as uuid } from 'uuid'
import { NEWEST_RULES, type Rules } from '../../workflows/expressions/rules.ts'
import {
  type Graph,
  type GraphEdge,
  type GraphNode,
  MAX_EDGES,
  MAX_NODES,
} from '../../workflows/graph/graph.ts'
import { getOwn, isObject } from '../../workflows/json.ts'
import { convertWorkflow } from '../../workflows/n8n/convert.ts'
import { isN8nDocument, measureN8nDocument } from '../../workflows/n8n/document.ts'
import { repairGraph } from '../../workflows/n8n/repair.ts'
import type { ImportProblem, ImportReport } from '../../workflows/n8n/report.ts'
import type { Problem } from '../../workflows/problem.ts'
import { workInTurns } from '../../workflows/turns.ts'
import { invalid } from '../fault.ts'
import type { Scope } from '../scope.ts'
import { checkNeeded } from './importedcredentials.ts'
import { listHidden } from './secrets.ts'
import type { WorkflowSettings } from './settings.ts'

export const EXPORT_FORMAT = 'perdure.workflow'

/**
 * An exported workflow. `secrets` are the paths of the secrets that were left out. A document without `expressions` is
 * of a release that had only the first rules.
 */
export type WorkflowDocument = {
  format: typeof EXPORT_FORMAT
  formatVersion: 1
  exportedAt: Date
  name: string
  description: string | null
  settings: WorkflowSettings
  nodes: GraphNode[]
  edges: GraphEdge[]
  expressions: Rules
  secrets: string[]
}

export type WorkflowImport = {
  teamId: string
  name?: string | undefined
  /** A WorkflowDocument that the API has checked, or any value that may be a workflow exported by n8n. */
  workflow: unknown
  /** Ids of workflows here, by the ids of the workflows that they replace in the document. */
  workflows?: Record<string, string> | undefined
  /** Likewise for credentials. */
  credentials?: Record<string, string> | undefined
}

/** The input for the new workflow, and a report of what differs from the document. */
export type ImportedWorkflow = {
  name: string
  description: string | null
  graph: Graph
  settings: Partial<WorkflowSettings>
  report: ImportReport
}

type UnreportedWorkflow = Omit<ImportedWorkflow, 'report'> & {
  report: Omit<ImportReport, 'totals' | 'groups'>
}

/** Whether it is a document of Perdure's own format. */
export function isDocument(workflow: unknown): workflow is WorkflowDocument {
  return Object(workflow).format === EXPORT_FORMAT
}

/** Reads a workflow that n8n has exported. Throws INVALID, also for named credentials that do not fit. */
export async function readN8nWorkflow(
  { store }: Scope,
  input: WorkflowImport & { id: string },
  workflow: unknown,
): Promise<UnreportedWorkflow> {
  checkSize(workflow)
  const conversion = convertWorkflow(
    workflow,
    (key) => getOwn(input.workflows ?? {}, key),
    (key) => getOwn(input.credentials ?? {}, key),
    input.id,
  )
  const converted = await workInTurns(conversion, input.teamId)
  if (!converted) {
    throw invalid([
      { path: 'workflow', message: `must be a workflow exported by n8n, or of the format ${EXPORT_FORMAT}` },
    ])
  }
  const { name = '', settings, needs } = converted
  const report = { ...converted.report, credentials: await checkNeeded(store, input.teamId, needs) }
  const repair = repairGraph(
    { ...converted, expressions: NEWEST_RULES },
    (problem) => void report.problems.push(problem),
    uuid,
  )
  const { graph, problems } = await workInTurns(repair, input.teamId)
  if (problems.length > 0) {
    throw invalid(problems.map(({ path, message }) => ({ path: `workflow.${path}`, message })))
  }
  return { name, description: converted.description, graph, settings, report }
}

/** Refuses a graph that is too large to be saved, before any time is spent on converting it. */
function checkSize(workflow: unknown): void {
  if (!isN8nDocument(workflow)) return
  const { nodes, links } = measureN8nDocument(workflow)
  const problems: Problem[] = []
  if (nodes === 0) problems.push({ path: 'workflow.nodes', message: 'must not be empty' })
  if (nodes > MAX_NODES) {
    const message = `has ${nodes} nodes; at most ${MAX_NODES} are allowed`
    problems.push({ path: 'workflow.nodes', message })
  }
  if (links > MAX_EDGES) {
    const message = `has ${links} connections; at most ${MAX_EDGES} are allowed`
    problems.push({ path: 'workflow.connections', message })
  }
  if (problems.length > 0) throw invalid(problems)
}

/** Reads Perdure's own format: secrets have to be set again, and the team must have the error workflow. */
export async function readDocument(
  scope: Scope,
  input: WorkflowImport,
  document: WorkflowDocument,
): Promise<UnreportedWorkflow> {
  const problems: ImportProblem[] = []
  const hidden = document.nodes.flatMap((node, i) => listHidden(node).map((path) => `nodes[${i}].${path}`))
  for (const path of [...document.secrets, ...hidden]) {
    // A webhook has got a random secret and refuses every call, a request is not sent, until this one is set.
    const node = document.nodes[Number(/\d+/.exec(path)?.[0])]
    const message = 'The secret was not exported: set it on the node.'
    problems.push({ node: node?.name ?? null, path, kind: 'secret', message, original: null })
  }
  const nodes = document.nodes.map((node) => ({ ...node, config: replaceWorkflow(node, input.workflows) }))
  const settings = { ...document.settings }
  const { errorWorkflowId } = settings
  if (errorWorkflowId) {
    const replacement = input.workflows?.[errorWorkflowId] ?? errorWorkflowId
    const row = await scope.store.db
      .selectFrom('workflows')
      .select('teamId')
      .where('id', '=', replacement)
      .executeTakeFirst()
    settings.errorWorkflowId = row?.teamId === input.teamId ? replacement : null
    if (settings.errorWorkflowId === null) {
      const message =
        'The error workflow is not a workflow of this team, so it was left out: name its replacement in ' +
        '"workflows", or set errorWorkflowId.'
      problems.push({
        node: null,
        path: 'settings.errorWorkflowId',
        kind: 'setting',
        message,
        original: errorWorkflowId,
      })
    }
  }
  const mapped = document.nodes.map(({ name, type, id }) => {
    return { node: name, type, id, as: type, state: 'works' as const }
  })
  const { name, description = null, edges, expressions } = document
  const report = { mapped, problems, stickyNotes: 0, credentials: [] }
  return { name, description, graph: { nodes, edges, expressions }, settings, report }
}

function replaceWorkflow(
  { type, config }: Pick<GraphNode, 'type' | 'config'>,
  workflows: Record<string, string> = {},
): Record<string, unknown> {
  const { workflowId, tools } = config
  const found =
    typeof workflowId === 'string' && Object.hasOwn(workflows, workflowId) && workflows[workflowId]
  const replaced = found ? { ...config, workflowId: found } : config
  if (type !== 'AI_AGENT' || !Array.isArray(tools)) return replaced
  const within = (tool: unknown) =>
    isObject(tool) ? replaceWorkflow({ type: '', config: tool }, workflows) : tool
  return { ...config, tools: tools.map(within) }
}
