import { randomBytes } from 'node:crypto'
import { Hono } from 'hono'
import * as v from 'valibot'
import { exportWorkflow, FORMAT, importWorkflow, planImport } from '../db/transfer.ts'
import { readGraph } from '../workflows/graph.ts'
import { PROBLEM_KINDS } from '../workflows/n8n/report.ts'
import { recordOf } from '../workflows/object.ts'
import { describeIssues } from '../workflows/problem.ts'
import { fillSecrets } from '../workflows/secrets.ts'
import { accept, ById, line, shown, text, uuid } from './accept.ts'
import { count, EXAMPLE_ID, LOCATION, time } from './answers.ts'
import type { AppEnv } from './app.ts'
import { addProblems, EXAMPLE, edges, nodes } from './graph.ts'
import { settings, settingsShown } from './settings.ts'
import { WorkflowAnswer } from './workflows.ts'

/** Our own document but for its graph, which is checked as a whole. */
const Document = v.object({
  format: v.literal(FORMAT),
  formatVersion: v.literal(1, 'must be 1'),
  name: v.optional(line(200), 'Imported workflow'),
  description: v.optional(v.nullable(text(5_000, 0)), null),
  settings: v.optional(settings, {}),
})

const workflow = v.pipe(
  v.custom<object>((value) => typeof value === 'object' && value !== null, 'must be an object or an array'),
  shown<object>({ type: ['object', 'array'] }),
  v.rawTransform(({ dataset, addIssue, NEVER }) => {
    const given = dataset.value as { format?: unknown; nodes?: unknown; edges?: unknown; secrets?: unknown[] }
    if (given.format !== FORMAT) return dataset.value
    const parsed = v.safeParse(Document, given)
    const left = given.secrets?.filter?.((path) => typeof path === 'string') ?? []
    const list = Array.isArray(given.nodes) ? given.nodes : []
    const { nodes, filled } = fillSecrets(list, left, () => randomBytes(24).toString('base64url'))
    const { graph, problems } = readGraph(
      { nodes: Array.isArray(given.nodes) ? nodes : given.nodes, edges: given.edges },
      () => crypto.randomUUID(),
    )
    const lost = given.nodes === undefined ? [{ path: 'nodes', message: 'is required' }] : []
    const all = [...(parsed.success ? [] : describeIssues(parsed.issues, '')), ...lost, ...problems]
    addProblems(all, addIssue)
    if (!parsed.success || all.length > 0) return NEVER
    return { ...parsed.output, ...graph, secrets: filled }
  }),
)

const NewImport = v.object({
  teamId: uuid,
  name: v.optional(line(200)),
  workflow,
  workflows: v.optional(recordOf(uuid)),
})
const ImportQuery = v.object({
  dryRun: v.optional(
    v.pipe(
      v.picklist(['true', 'false'], 'must be true or false'),
      v.transform((value) => value === 'true'),
    ),
    'false',
  ),
})

const ImportReport = v.pipe(
  v.object({
    mapped: v.array(v.object({ node: v.string(), type: v.string(), id: v.string(), as: v.string() })),
    problems: v.array(
      v.object({
        node: v.nullable(v.string()),
        path: v.string(),
        kind: v.picklist(PROBLEM_KINDS),
        message: v.string(),
        original: v.unknown(),
      }),
    ),
    stickyNotes: count,
  }),
  v.title('ImportReport'),
)
const ImportPlan = v.pipe(
  v.object({
    name: v.string(),
    description: v.nullable(v.string()),
    nodes: v.array(v.record(v.string(), v.unknown())),
    edges: v.array(v.record(v.string(), v.unknown())),
    settings: v.record(v.string(), v.unknown()),
    report: ImportReport,
  }),
  v.title('ImportPlan'),
)
const ImportAnswer = v.pipe(v.object({ ...WorkflowAnswer.entries, report: ImportReport }), v.title('Import'))
const ExportAnswer = v.pipe(
  v.object({
    format: v.literal(FORMAT),
    formatVersion: v.literal(1),
    exportedAt: time,
    name: v.string(),
    description: v.nullable(v.string()),
    settings: settingsShown,
    nodes,
    edges,
    secrets: v.pipe(
      v.array(v.string()),
      v.description('What was left out, by its path'),
      v.examples([['nodes[0].config.secretHeader.value']]),
    ),
  }),
  v.title('WorkflowExport'),
)

/** Workflows taken elsewhere, and brought in. */
export function createTransferRoutes() {
  return new Hono<AppEnv>()
    .get(
      '/api/workflows/:id/export',
      accept({
        id: 'exportWorkflow',
        tag: 'Workflows',
        summary: 'Export a workflow',
        description:
          'With its newest graph, for the import here or elsewhere. Secrets are left out and named.',
        role: 'member',
        of: 'workflows',
        params: ById,
        responses: { 200: { description: 'The document', schema: ExportAnswer } },
      }),
      async (c) => c.json(await exportWorkflow(c.get('scope'), c.req.valid('param').id)),
    )
    .post(
      '/api/workflows/import',
      accept({
        id: 'importWorkflow',
        tag: 'Workflows',
        summary: 'Import a workflow',
        description:
          'Takes an export of this service, or a workflow of n8n (an export of version 1 or 2, or what its editor ' +
          'puts on the clipboard) and makes an inactive workflow of it. `report.problems` names all that is not as ' +
          'it was: a node without counterpart becomes a STOP_AND_ERROR, so that no run goes past work not done; an ' +
          'expression without one fails where it is asked for. Nodes that n8n runs for each item of a list become ' +
          'the body of a FOR_EACH; the answer of an HTTP call counts as one item, also where it is a list, unless a ' +
          'node for lists is next. `workflows` tells by its id there which workflow here stands for another one. ' +
          'With `dryRun=true` nothing is made, and the graph is answered.',
        role: 'BUILDER',
        query: ImportQuery,
        json: NewImport,
        example: {
          teamId: EXAMPLE_ID,
          workflow: { format: FORMAT, formatVersion: 1, name: 'Brought in', ...EXAMPLE },
        },
        responses: {
          200: { description: 'What would be made', schema: ImportPlan },
          201: {
            description: 'The workflow, and what is not as it was',
            schema: ImportAnswer,
            headers: LOCATION,
            links: { readWorkflow: { parameters: { id: '$response.body#/id' } } },
          },
        },
        faults: [409],
      }),
      async (c) => {
        const input = c.req.valid('json')
        if (c.req.valid('query').dryRun) return c.json(await planImport(c.get('scope'), input), 200)
        const { workflow, report } = await importWorkflow(c.get('scope'), input)
        c.header('Location', `/api/workflows/${workflow.id}`)
        return c.json({ ...workflow, report }, 201)
      },
    )
}
