import { v7 as uuid } from 'uuid'
import { type GraphEdge, type GraphNode, MAX_EDGES, MAX_NODES } from '../workflows/graph.ts'
import { convertWorkflow } from '../workflows/n8n/convert.ts'
import { isDocument as isForeign, measureDocument } from '../workflows/n8n/document.ts'
import { mendGraph } from '../workflows/n8n/mend.ts'
import type { ImportProblem, ImportReport } from '../workflows/n8n/report.ts'
import { dropSecrets } from '../workflows/secrets.ts'
import { invalid } from './fault.ts'
import { demandTeam, type Scope } from './scope.ts'
import type { Settings } from './settings.ts'
import { createWorkflow, readWorkflow, type Workflow } from './workflows.ts'

export const FORMAT = 'perdure.workflow'

/** A workflow as it is taken elsewhere. `secrets` are the paths that were left out. */
export type WorkflowDocument = {
  format: typeof FORMAT
  formatVersion: 1
  exportedAt: Date
  name: string
  description: string | null
  settings: Settings
  nodes: GraphNode[]
  edges: GraphEdge[]
  secrets: string[]
}

export type Import = {
  teamId: string
  name?: string | undefined
  /** A WorkflowDocument as it was checked, or whatever may be a workflow of n8n's. */
  workflow: unknown
  /** The workflow here that stands for one there, by its id there. */
  workflows?: Record<string, string> | undefined
}

/** What an import makes: all that a new workflow takes, and what of it is not as it was. */
export type Imported = {
  name: string
  description: string | null
  nodes: unknown[]
  edges: unknown[]
  settings: Partial<Settings>
  report: ImportReport
}

/** A workflow with its newest graph, for another team or instance. Its secrets stay here. */
export async function exportWorkflow(scope: Scope, id: string): Promise<WorkflowDocument> {
  const { name, description, settings, nodes, edges } = await readWorkflow(scope, id)
  const dropped = nodes.map(dropSecrets)
  return {
    format: FORMAT,
    formatVersion: 1,
    exportedAt: new Date(),
    name,
    description,
    settings,
    nodes: dropped.map(({ node }) => node),
    edges,
    secrets: dropped.flatMap(({ dropped }, i) => dropped.map((path) => `nodes[${i}].${path}`)),
  }
}

/** What an import would make (BUILDER). Throws INVALID where it is no workflow of a kind that is known. */
export async function planImport(scope: Scope, input: Import): Promise<Imported> {
  await demandTeam(scope, input.teamId, 'BUILDER')
  const { workflow } = input
  const plan = isDocument(workflow)
    ? await readDocument(scope, input, workflow)
    : readForeign(workflow, (id) => input.workflows?.[id])
  const name = (input.name ?? plan.name).trim().slice(0, 200).trim()
  return { ...plan, name: name === '' ? 'Imported workflow' : name }
}

/** Makes an inactive workflow of what planImport says. Throws as createWorkflow does. */
export async function importWorkflow(
  scope: Scope,
  input: Import,
): Promise<{ workflow: Workflow; report: ImportReport }> {
  const { report, ...plan } = await planImport(scope, input)
  return { workflow: await createWorkflow(scope, { ...plan, teamId: input.teamId }), report }
}

function isDocument(workflow: unknown): workflow is WorkflowDocument {
  return Object(workflow).format === FORMAT
}

function readForeign(workflow: unknown, findWorkflow: (id: string) => string | undefined): Imported {
  checkSize(workflow)
  const converted = convertWorkflow(workflow, findWorkflow)
  if (!converted) {
    throw invalid([
      { path: 'workflow', message: `must be a workflow exported by n8n, or of the format ${FORMAT}` },
    ])
  }
  const { report } = converted
  const mended = mendGraph(converted, (problem) => void report.problems.push(problem), uuid)
  if (mended.problems.length > 0) {
    throw invalid(mended.problems.map(({ path, message }) => ({ path: `workflow.${path}`, message })))
  }
  const { name = '', settings } = converted
  return { name, description: null, nodes: mended.nodes, edges: mended.edges, settings, report }
}

/** Refuses what cannot be saved anyway before any time goes into it. */
function checkSize(workflow: unknown): void {
  if (!isForeign(workflow)) return
  const { nodes, links } = measureDocument(workflow)
  const problems = [
    ...(nodes === 0 ? [{ path: 'workflow.nodes', message: 'must not be empty' }] : []),
    ...(nodes > MAX_NODES
      ? [{ path: 'workflow.nodes', message: `has ${nodes} entries; at most ${MAX_NODES} are allowed` }]
      : []),
    ...(links > MAX_EDGES
      ? [{ path: 'workflow.connections', message: `has ${links} of them; at most ${MAX_EDGES} are allowed` }]
      : []),
  ]
  if (problems.length > 0) throw invalid(problems)
}

/** Our own document: secrets must be set anew, other workflows be there. */
async function readDocument(scope: Scope, input: Import, document: WorkflowDocument): Promise<Imported> {
  const problems: ImportProblem[] = []
  for (const path of document.secrets) {
    // Nobody knows the one that was filled in: a webhook refuses everybody until it is set.
    const node = document.nodes[Number(/\d+/.exec(path)?.[0])]
    const message = 'The secret was not exported: set it here'
    problems.push({ node: node?.name ?? null, path, kind: 'secret', message, original: null })
  }
  const nodes = document.nodes.map((node) => ({ ...node, config: replaceWorkflow(node, input.workflows) }))
  const settings = { ...document.settings }
  const { errorWorkflowId } = settings
  if (errorWorkflowId) {
    const stands = input.workflows?.[errorWorkflowId] ?? errorWorkflowId
    const row = await scope.store.db
      .selectFrom('workflows')
      .select('teamId')
      .where('id', '=', stands)
      .executeTakeFirst()
    settings.errorWorkflowId = row?.teamId === input.teamId ? stands : null
    if (settings.errorWorkflowId === null) {
      const message = 'It is no workflow of this team'
      problems.push({
        node: null,
        path: 'settings.errorWorkflowId',
        kind: 'setting',
        message,
        original: errorWorkflowId,
      })
    }
  }
  const mapped = document.nodes.map(({ name, type, id }) => ({ node: name, type, id, as: type }))
  const { name, description = null, edges } = document
  return { name, description, nodes, edges, settings, report: { mapped, problems, stickyNotes: 0 } }
}

function replaceWorkflow(
  { config }: GraphNode,
  workflows: Record<string, string> = {},
): Record<string, unknown> {
  const { workflowId } = config
  const found =
    typeof workflowId === 'string' && Object.hasOwn(workflows, workflowId) && workflows[workflowId]
  return found ? { ...config, workflowId: found } : config
}
