import { v7 as uuid } from 'uuid'
import { NEWEST_RULES, type Rules } from '../../workflows/expressions/rules.ts'
import { listAddresses } from '../../workflows/graph/approvers.ts'
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
import { completeReport, type ImportProblem, type ImportReport } from '../../workflows/n8n/report.ts'
import type { Problem } from '../../workflows/problem.ts'
import { workInTurns } from '../../workflows/turns.ts'
import { change, write } from '../change.ts'
import { invalid, missing } from '../fault.ts'
import { readOwner } from '../owners.ts'
import { demandStill } from '../people/rights.ts'
import { demandTeam, type Scope } from '../scope.ts'
import { type Moved, type MovedSecret, moveSecrets } from '../secrets/moves.ts'
import { bindApprovers, findApprover } from './approvers.ts'
import { placeCredentials } from './importedcredentials.ts'
import { dropSecrets, listHidden } from './secrets.ts'
import type { WorkflowSettings } from './settings.ts'
import { createWorkflow, readWorkflow, type Workflow } from './workflows.ts'

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
type ImportedWorkflow = {
  name: string
  description: string | null
  graph: Graph
  settings: Partial<WorkflowSettings>
  report: ImportReport
}

type UnreportedWorkflow = Omit<ImportedWorkflow, 'report'> & {
  report: Omit<ImportReport, 'totals' | 'groups'>
}

/** Exports a workflow with its newest graph, but without its secrets (VIEWER; with an audit entry). Throws NOT_FOUND. */
export async function exportWorkflow(scope: Scope, id: string): Promise<WorkflowDocument> {
  const workflow = await readWorkflow(scope, id)
  const { teamId, name, description, settings, version, nodes, edges, expressions } = workflow
  await change(scope, 'WORKFLOW_EXPORTED', teamId, async () => ({
    result: undefined,
    resourceId: id,
    details: { name, version },
  }))
  const dropped = nodes.map(dropSecrets)
  return {
    format: EXPORT_FORMAT,
    formatVersion: 1,
    exportedAt: new Date(),
    name,
    description,
    settings,
    nodes: dropped.map(({ node }) => node),
    edges,
    expressions,
    secrets: dropped.flatMap(({ dropped }, i) => dropped.map((path) => `nodes[${i}].${path}`)),
  }
}

/**
 * Converts a document without creating a workflow (BUILDER): the report says which secrets would be moved into
 * credentials. Throws INVALID for an unknown format.
 */
export async function planImport(scope: Scope, input: WorkflowImport): Promise<ConvertedWorkflow> {
  const plan = await convertImport(scope, input)
  const options = { teamId: input.teamId, name: plan.name, requests: true, dryRun: true }
  const moved = await write(scope.store, (tx) => moveSecrets(tx, scope.store, plan.graph, options))
  return { ...plan, report: tellMoved(plan, moved) }
}

/** The input for a new workflow, and which of its secrets were made up because the document lacks them. */
type ConvertedWorkflow = ImportedWorkflow & { madeUp: ReadonlySet<string> }

async function convertImport(scope: Scope, input: WorkflowImport): Promise<ConvertedWorkflow> {
  await demandTeam(scope, input.teamId, 'BUILDER')
  // The body may have come long after its headers.
  await write(scope.store, (tx) => demandStill(tx, { scope, least: 'BUILDER' }, input.teamId))
  const { workflow } = input
  const plan = isDocument(workflow)
    ? await readDocument(scope, input, workflow)
    : await readN8nWorkflow(input, workflow)
  const name = (input.name ?? plan.name).trim().slice(0, 200).trim()
  const { nodes, dropped, madeUp } = await placeCredentials(scope.store, input, plan.graph.nodes)
  const strangers = await findStrangers(scope, input.teamId, nodes)
  const report = completeReport({
    ...plan.report,
    problems: [...plan.report.problems, ...dropped, ...strangers],
  })
  const secrets = isDocument(workflow) ? workflow.secrets : []
  return {
    ...plan,
    graph: { ...plan.graph, nodes },
    name: name === '' ? 'Imported workflow' : name,
    report,
    madeUp: new Set([...secrets, ...madeUp]),
  }
}

/**
 * Creates an inactive workflow from a document (BUILDER). Secrets that are written into it are moved into credentials.
 * Throws what planImport and createWorkflow throw.
 */
export async function importWorkflow(
  scope: Scope,
  input: WorkflowImport,
): Promise<{ workflow: Workflow; report: ImportReport; warnings: Problem[]; credentials: MovedSecret[] }> {
  const plan = await convertImport(scope, input)
  // Requests keep the [hidden] of their export, and refuse to be sent until their secrets are set. As the secret of a
  // webhook, a [hidden] would let anyone in.
  const requests = plan.graph.nodes.filter(({ type }) => type === 'HTTP_REQUEST')
  const { report: _, madeUp: __, ...rest } = plan
  let report = plan.report
  const imported = (moved: Moved) => {
    report = tellMoved(plan, moved)
    return report
  }
  const given = { ...rest, teamId: input.teamId }
  const { warnings, credentials, ...workflow } = await createWorkflow(scope, given, { requests, imported })
  return { workflow, report, warnings, credentials }
}

/** The report with the secrets that are in credentials now, and with those that could not be moved. */
function tellMoved({ report, graph, madeUp }: ConvertedWorkflow, { made, left }: Moved): ImportReport {
  const nameNode = (path: string) => graph.nodes[Number(/\d+/.exec(path)?.[0])]?.name ?? null
  const moved = made.flatMap(({ name, type, paths }) =>
    paths
      .filter((path) => !madeUp.has(path))
      .map((path) => {
        const message = `The secret is now in the credential "${name}" of the type ${type}, which the node names.`
        return { node: nameNode(path), path, kind: 'moved', message, original: null } as const
      }),
  )
  const kept = left.map(({ path, message }) => {
    return { node: nameNode(path), path, kind: 'note', message, original: null } as const
  })
  return completeReport({ ...report, problems: [...report.problems, ...moved, ...kept] })
}

/** What the import of a workflow said about it (VIEWER). Throws NOT_FOUND, also for one that was not imported. */
export async function readImportReport(scope: Scope, id: string): Promise<ImportReport> {
  await demandTeam(scope, await readOwner(scope.store, 'workflows', id), 'VIEWER')
  const row = await scope.store.db
    .selectFrom('importReports')
    .select('report')
    .where('workflowId', '=', id)
    .executeTakeFirst()
  if (!row) throw missing('import report')
  return row.report as unknown as ImportReport
}

function isDocument(workflow: unknown): workflow is WorkflowDocument {
  return Object(workflow).format === EXPORT_FORMAT
}

async function readN8nWorkflow(input: WorkflowImport, workflow: unknown): Promise<UnreportedWorkflow> {
  checkSize(workflow)
  const conversion = convertWorkflow(
    workflow,
    (id) => input.workflows?.[id],
    (key) => getOwn(input.credentials ?? {}, key),
  )
  const converted = await workInTurns(conversion, input.teamId)
  if (!converted) {
    throw invalid([
      { path: 'workflow', message: `must be a workflow exported by n8n, or of the format ${EXPORT_FORMAT}` },
    ])
  }
  const { name = '', settings, report } = converted
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

/** Reports the approvers whose addresses no member of the team has confirmed. */
async function findStrangers(scope: Scope, teamId: string, nodes: GraphNode[]): Promise<ImportProblem[]> {
  const ids = await bindApprovers(scope.store, teamId, { nodes, edges: [] })
  return nodes.flatMap((node, at) =>
    listAddresses(node)
      .filter((address) => findApprover(ids, address) === undefined)
      .map((address) => {
        const path = `nodes[${at}].config.approvers`
        const message =
          'No member of the team has confirmed this e-mail: name somebody else, or add them to the team and save ' +
          'the workflow again.'
        return { node: node.name, path, kind: 'parameter', message, original: address } as const
      }),
  )
}

/** Reads Perdure's own format: secrets have to be set again, and the team must have the error workflow. */
async function readDocument(
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
  const report = { mapped, problems, stickyNotes: 0 }
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
