import { v7 as uuid } from 'uuid'
import { listAddresses } from '../../workflows/graph/approvers.ts'
import type { GraphNode } from '../../workflows/graph/graph.ts'
import { completeReport, type ImportProblem, type ImportReport } from '../../workflows/n8n/report.ts'
import { joinPath, type Problem } from '../../workflows/problem.ts'
import { change, write } from '../change.ts'
import type { Saved } from '../connectors/kept.ts'
import { findMissingConnectors, nameConnectors } from '../connectors/references.ts'
import { missing } from '../fault.ts'
import { readOwner } from '../owners.ts'
import { demandStill } from '../people/rights.ts'
import { demandTeam, type Scope } from '../scope.ts'
import type { MovedSecret } from '../secrets/keeping.ts'
import { type Moved, moveSecrets } from '../secrets/moves.ts'
import { findMissingTables, nameTables } from '../tables/users.ts'
import { bindApprovers, findApprover } from './approvers.ts'
import {
  EXPORT_FORMAT,
  type ImportedWorkflow,
  isDocument,
  readDocument,
  readN8nWorkflow,
  type WorkflowDocument,
  type WorkflowImport,
} from './documents.ts'
import { placeCredentials } from './importedcredentials.ts'
import { dropSecrets } from './secrets.ts'
import { createWorkflow, readWorkflow, type Workflow } from './workflows.ts'

/**
 * Exports a workflow with its published graph or that of its draft, but without its secrets (VIEWER; with an audit entry).
 * Throws NOT_FOUND.
 */
export async function exportWorkflow(
  scope: Scope,
  id: string,
  which: { draft?: boolean } = {},
): Promise<WorkflowDocument> {
  const workflow = await readWorkflow(scope, id, which)
  const { teamId, name, description, settings, version, nodes, edges, expressions } = workflow
  await change(scope, 'WORKFLOW_EXPORTED', teamId, async () => ({
    result: undefined,
    resourceId: id,
    details: { name, version },
  }))
  const { db } = scope.store
  const saved = { teamId, workflowId: id, from: version }
  const named = await nameConnectors(db, saved, await nameTables(db, teamId, nodes))
  const dropped = named.map(dropSecrets)
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

/** The input for a new workflow, the id that it will have, and which of its secrets were made up because the document lacks them. */
type ConvertedWorkflow = ImportedWorkflow & { id: string; madeUp: ReadonlySet<string> }

async function convertImport(scope: Scope, input: WorkflowImport): Promise<ConvertedWorkflow> {
  await demandTeam(scope, input.teamId, 'BUILDER')
  // The body may have come long after its headers.
  await write(scope.store, (tx) => demandStill(tx, { scope, least: 'BUILDER' }, input.teamId))
  const { workflow } = input
  const id = uuid()
  const plan = isDocument(workflow)
    ? await readDocument(scope, input, workflow)
    : await readN8nWorkflow(scope, { ...input, id }, workflow)
  const name = (input.name ?? plan.name).trim().slice(0, 200).trim()
  const { nodes, dropped, madeUp } = await placeCredentials(scope.store, input, plan.graph.nodes, {
    mends: !isDocument(workflow),
  })
  const strangers = await findStrangers(scope, input.teamId, nodes)
  const report = completeReport({
    ...plan.report,
    problems: [
      ...plan.report.problems,
      ...dropped,
      ...strangers,
      ...(await reportTables(scope, input.teamId, nodes)),
      ...(await reportConnectors(scope, { teamId: input.teamId, workflowId: id }, nodes)),
    ],
  })
  const secrets = isDocument(workflow) ? workflow.secrets : []
  return {
    ...plan,
    id,
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
  const { report: _, madeUp: __, id, ...rest } = plan
  let report = plan.report
  const imported = (moved: Moved) => {
    report = tellMoved(plan, moved)
    return report
  }
  const given = { ...rest, teamId: input.teamId }
  const { warnings, credentials, ...workflow } = await createWorkflow(scope, given, {
    id,
    requests,
    imported,
  })
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
  // Reports of earlier releases did not name credentials.
  return { ...{ credentials: [] }, ...(row.report as unknown as ImportReport) }
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

/** Reports the data tables that the team does not have: one of that name is found as soon as there is one. */
async function reportTables(scope: Scope, teamId: string, nodes: GraphNode[]): Promise<ImportProblem[]> {
  const missing = await findMissingTables(scope.store.db, teamId, nodes)
  return missing.map(({ at, named, path }) => {
    const within = path.reduce<string>(joinPath, `nodes[${at}].config`)
    const message = 'The team has no data table of this name: create one, or name another.'
    return { node: nodes[at]!.name, path: within, kind: 'parameter', message, original: named } as const
  })
}

/** Reports the connectors that the team does not have: one of that name is found as soon as there is one. */
async function reportConnectors(scope: Scope, saved: Saved, nodes: GraphNode[]): Promise<ImportProblem[]> {
  const missing = await findMissingConnectors(scope.store.db, saved, nodes)
  return missing.map(({ at, named, path }) => {
    const within = [...path, 'connector'].reduce<string>(joinPath, `nodes[${at}].config`)
    const message = 'The team has no connector of this name: add one, or name another.'
    return { node: nodes[at]!.name, path: within, kind: 'parameter', message, original: named } as const
  })
}
