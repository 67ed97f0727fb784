import { randomBytes } from 'node:crypto'
import { Hono } from 'hono'
import * as v from 'valibot'
import { EXPORT_FORMAT } from '../../db/workflows/documents.ts'
import { exportWorkflow, importWorkflow, planImport, readImportReport } from '../../db/workflows/transfer.ts'
import { isRules, type Rules } from '../../workflows/expressions/rules.ts'
import { fillSecrets } from '../../workflows/graph/secrets.ts'
import { NODE_STATES, PROBLEM_KINDS } from '../../workflows/n8n/report.ts'
import { strictRecord } from '../../workflows/object.ts'
import { describeIssues, type Problem } from '../../workflows/problem.ts'
import type { AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { ById, boundedString, documentAs, trimmedString, uuidField } from '../http/fields.ts'
import { countSchema, EXAMPLE_ID, LOCATION_HEADER, timeSchema, warningsEntry } from '../http/responses.ts'
import { listWarnings } from '../warnings.ts'
import { WorkflowQuery, WorkflowSchema } from './fields.ts'
import {
  addProblemIssues,
  EXAMPLE_GRAPH,
  edgesSchema,
  nodesSchema,
  rulesField,
  rulesSchema,
} from './graph.ts'
import { listMovedSecrets, movedEntry } from './moved.ts'
import { settingsField, settingsSchema } from './settings.ts'
import { findUnread, tellUnread, unknownKeysQuery } from './unknown.ts'

/** An export of this service without its graph, which readGraph checks as a whole. */
const TransferDocument = v.object({
  format: v.literal(EXPORT_FORMAT),
  formatVersion: v.literal(1, 'must be 1'),
  name: v.optional(trimmedString(200), 'Imported workflow'),
  description: v.optional(v.nullable(boundedString(5_000, 0)), null),
  settings: v.optional(settingsField, {}),
  // A document of a release that had only the first rules does not name them.
  expressions: v.optional(rulesField, 1),
})

const workflow = v.pipe(
  v.custom<object>((value) => typeof value === 'object' && value !== null, 'must be an object or an array'),
  documentAs<object>({ type: ['object', 'array'], items: {} }),
  v.rawTransform(({ dataset, addIssue, NEVER }) => {
    if (!isOwnDocument(dataset.value)) return dataset.value
    const parsed = v.safeParse(TransferDocument, dataset.value)
    const noNodes = dataset.value.nodes === undefined ? [{ path: 'nodes', message: 'is required' }] : []
    addProblemIssues([...(parsed.success ? [] : describeIssues(parsed.issues, '')), ...noNodes], addIssue)
    if (!parsed.success || noNodes.length > 0) return NEVER
    return { ...parsed.output, secrets: fillIn(dataset.value).filled }
  }),
)

type GivenDocument = { format: typeof EXPORT_FORMAT } & Partial<
  Record<'nodes' | 'edges' | 'secrets' | 'expressions', unknown>
>

function isOwnDocument(given: unknown): given is GivenDocument {
  return Object(given).format === EXPORT_FORMAT
}

/** The nodes of a document with new secrets in the place of those that were left out. */
function fillIn({ nodes, secrets }: GivenDocument) {
  const list = Array.isArray(nodes) ? nodes : []
  const omitted = Array.isArray(secrets) ? secrets.filter((path) => typeof path === 'string') : []
  return fillSecrets(list, omitted, () => randomBytes(24).toString('base64url'))
}

/** The graph of an export of this service. `planImport` makes and reads that of an export of n8n. */
function findGraph({ workflow }: Record<string, unknown>) {
  if (!isOwnDocument(workflow)) return undefined
  const { nodes, edges, expressions: given } = workflow
  const expressions: Rules = isRules(given) ? given : 1
  return {
    nodes: Array.isArray(nodes) ? fillIn(workflow).nodes : nodes,
    edges,
    expressions,
    path: 'workflow',
    imported: true as const,
  }
}

const NewImport = v.object({
  teamId: uuidField,
  name: v.optional(trimmedString(200)),
  workflow,
  workflows: v.optional(strictRecord(uuidField)),
  credentials: v.optional(strictRecord(uuidField)),
})
const ImportQuery = v.object({
  ...unknownKeysQuery,
  dryRun: v.optional(
    v.pipe(
      v.picklist(['true', 'false'], 'must be true or false'),
      v.transform((value) => value === 'true'),
    ),
    'false',
  ),
})

const ImportReportSchema = v.pipe(
  v.object({
    mapped: v.array(
      v.object({
        node: v.string(),
        type: v.string(),
        id: v.string(),
        as: v.string(),
        state: v.picklist(NODE_STATES),
      }),
    ),
    problems: v.array(
      v.object({
        node: v.nullable(v.string()),
        path: v.string(),
        kind: v.picklist(PROBLEM_KINDS),
        message: v.string(),
        original: v.unknown(),
      }),
    ),
    stickyNotes: countSchema,
    totals: v.object({ nodes: countSchema, works: countSchema, noted: countSchema, stopped: countSchema }),
    groups: v.array(
      v.object({
        kind: v.picklist(PROBLEM_KINDS),
        action: v.string(),
        nodes: v.array(v.string()),
        count: countSchema,
        causes: v.optional(
          v.pipe(
            v.array(
              v.object({
                cause: v.pipe(v.string(), v.description('What is not the same, and the way out')),
                types: v.pipe(v.array(v.string()), v.description('The types of its nodes in n8n')),
                nodes: v.array(v.string()),
                count: countSchema,
              }),
            ),
            v.description(
              'The problems that differ only in names, the most frequent ones first; reports of older releases have none',
            ),
          ),
        ),
      }),
    ),
    credentials: v.array(
      v.object({
        key: v.pipe(v.string(), v.description('What names it in `credentials` of the request')),
        id: v.nullable(v.string()),
        name: v.nullable(v.string()),
        type: v.pipe(v.string(), v.description('Its type in n8n')),
        as: v.pipe(v.nullable(v.string()), v.description('The type to make for it here, if there is one')),
        accepts: v.pipe(v.array(v.string()), v.description('All types that will do; none if none can')),
        data: v.pipe(v.record(v.string(), v.string()), v.description('What is known of the data to enter')),
        enter: v.pipe(v.string(), v.description('What else is to be entered')),
        nodes: v.pipe(v.array(v.string()), v.description('The nodes that need it, by their names')),
        credentialId: v.pipe(v.nullable(v.string()), v.description('The one that the request names for it')),
      }),
    ),
  }),
  v.title('ImportReport'),
)
const ImportPlanSchema = v.pipe(
  v.object({
    name: v.string(),
    description: v.nullable(v.string()),
    nodes: v.array(v.record(v.string(), v.unknown())),
    edges: v.array(v.record(v.string(), v.unknown())),
    expressions: rulesSchema,
    settings: v.record(v.string(), v.unknown()),
    report: ImportReportSchema,
    ...warningsEntry,
  }),
  v.title('ImportPlan'),
)
const ImportSchema = v.pipe(
  v.object({ ...WorkflowSchema.entries, report: ImportReportSchema, ...warningsEntry, ...movedEntry }),
  v.title('Import'),
)
const WorkflowExportSchema = v.pipe(
  v.object({
    format: v.literal(EXPORT_FORMAT),
    formatVersion: v.literal(1),
    exportedAt: timeSchema,
    name: v.string(),
    description: v.nullable(v.string()),
    settings: settingsSchema,
    nodes: nodesSchema,
    edges: edgesSchema,
    expressions: rulesSchema,
    secrets: v.pipe(
      v.array(v.string()),
      v.description('The paths of the secrets that were left out'),
      v.examples([['nodes[0].config.secretHeader.value']]),
    ),
  }),
  v.title('WorkflowExport'),
)

/** The export and import of workflows. */
export function createTransferRoutes() {
  return new Hono<AppEnv>()
    .get(
      '/api/workflows/:id/export',
      accept({
        id: 'exportWorkflow',
        tag: 'Workflows',
        summary: 'Export a workflow',
        description:
          'A document with the published graph or the draft, to be imported here or in another installation. Secrets are ' +
          'left out; `secrets` lists their paths.',
        role: 'member',
        of: 'workflows',
        params: ById,
        query: WorkflowQuery,
        responses: { 200: { description: 'The document', schema: WorkflowExportSchema } },
      }),
      async (c) => {
        const which = { draft: c.req.valid('query').version === 'draft' }
        return c.json(await exportWorkflow(c.get('scope'), c.req.valid('param').id, which))
      },
    )
    .get(
      '/api/workflows/:id/import-report',
      accept({
        id: 'readImportReport',
        tag: 'Workflows',
        summary: 'Read what the import of a workflow said',
        description:
          'The report that the import of this workflow gave: how many nodes work, work with a note, or stop the ' +
          'execution; and the problems, one by one and grouped by what there is to do.',
        role: 'member',
        of: 'workflows',
        params: ById,
        responses: { 200: { description: 'The report', schema: ImportReportSchema } },
      }),
      async (c) => c.json(await readImportReport(c.get('scope'), c.req.valid('param').id)),
    )
    .post(
      '/api/workflows/import',
      accept({
        id: 'importWorkflow',
        tag: 'Workflows',
        summary: 'Import a workflow',
        description:
          'Creates an inactive workflow from an export of this service, or from an n8n workflow (an export ' +
          'of version 1 or 2, or the JSON that its editor copies to the clipboard). `report.problems` ' +
          'lists everything that differs from the original. A node without a counterpart becomes a ' +
          'STOP_AND_ERROR, so that no execution passes over work that was not done. Every other node becomes ' +
          'one node that works on items as it did in n8n, and texts that begin with `=` stay as they were ' +
          'written. If the document refers to other workflows, ' +
          '`workflows` maps their ids to the ids of the workflows here that replace them, and `credentials` those of ' +
          'credentials. A node loses a credential that is none of the team, which the report says. Secrets ' +
          'that are written into the graph are moved into credentials. With ' +
          '`dryRun=true` nothing is created, and the response is the converted graph.',
        role: 'BUILDER',
        query: ImportQuery,
        json: NewImport,
        graph: findGraph,
        example: {
          teamId: EXAMPLE_ID,
          workflow: { format: EXPORT_FORMAT, formatVersion: 1, name: 'Imported orders', ...EXAMPLE_GRAPH },
        },
        responses: {
          200: {
            description: 'With `dryRun=true`: the workflow that would be created',
            schema: ImportPlanSchema,
          },
          201: {
            description: 'The workflow, and the report of what differs from the original',
            schema: ImportSchema,
            headers: LOCATION_HEADER,
            links: { readWorkflow: { parameters: { id: '$response.body#/id' } } },
          },
        },
        faults: [409],
      }),
      async (c) => {
        const { workflow: document, ...rest } = c.req.valid('json')
        const own = c.get('graph')
        const input = { ...rest, workflow: own ? { ...document, ...own } : document }
        const unread = findUnread(c, c.get('givenGraph') ?? {}, { path: 'workflow' })
        const warn = (more: Problem[] = []) =>
          listWarnings(tellUnread(c, unread, [...(c.get('graphWarnings') ?? []), ...more]))
        if (c.req.valid('query').dryRun) {
          const { graph, madeUp: _, id: __, ...plan } = await planImport(c.get('scope'), input)
          return c.json({ ...plan, ...graph, ...warn() }, 200)
        }
        const { workflow, report, warnings, credentials } = await importWorkflow(c.get('scope'), input)
        c.header('Location', `/api/workflows/${workflow.id}`)
        return c.json({ ...workflow, report, ...warn(warnings), ...listMovedSecrets(credentials) }, 201)
      },
    )
}
