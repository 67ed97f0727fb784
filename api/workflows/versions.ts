import { Hono } from 'hono'
import * as v from 'valibot'
import { updateWorkflow } from '../../db/workflows/update.ts'
import {
  compareVersions,
  deleteVersion,
  listVersions,
  readVersionDetail,
} from '../../db/workflows/versions.ts'
import { findOpenWebhooks } from '../../workflows/graph/advice/open.ts'
import type { ApiDeps, AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { ById, boundedInteger, uuidField } from '../http/fields.ts'
import { paging, queryInteger } from '../http/query.ts'
import {
  countSchema,
  idSchema,
  messageResponse,
  pageSchema,
  timeSchema,
  versionSchema,
} from '../http/responses.ts'
import { carryOutEach } from '../outbox.ts'
import { WorkflowDetailSchema } from './fields.ts'
import { edgesSchema, nodesSchema, rulesSchema } from './graph.ts'
import { ETAG_HEADER, IF_MATCH_HEADER, readIfMatch, respondWithWorkflow } from './headers.ts'
import { notesSchema } from './settings.ts'

/** The number of a version in a body. */
export const versionNumber = boundedInteger(1, 2_147_483_647)

const versionField = queryInteger(1, 2_147_483_647)
const OneVersion = v.object({ id: uuidField, version: versionField })
const TwoVersions = v.object({ id: uuidField, version: versionField, other: versionField })

const person = v.nullable(v.object({ id: idSchema, name: v.pipe(v.string(), v.examples(['Ada Byron'])) }))

const itemEntries = {
  version: versionSchema,
  createdAt: timeSchema,
  createdBy: person,
  nodeCount: countSchema,
  current: v.pipe(v.boolean(), v.description('Whether it is the published version')),
  draft: v.pipe(v.boolean(), v.description('Whether it is the draft')),
  published: v.pipe(v.boolean(), v.description('Whether it is or was the published version')),
  publishedAt: v.nullable(timeSchema),
  publishedBy: person,
  note: v.pipe(v.nullable(v.string()), v.description('What was said when it was published')),
  inUse: v.pipe(v.boolean(), v.description('Whether there are executions of this version')),
  restoredFrom: v.nullable(versionSchema),
  expressions: rulesSchema,
  strict: v.pipe(v.boolean(), v.description('The setting of that name, which is kept with the version')),
}

const VersionItemSchema = v.pipe(v.object(itemEntries), v.title('VersionItem'))
const VersionDetailSchema = v.pipe(
  v.object({
    ...{ workflowId: idSchema, ...itemEntries },
    ...{ nodes: nodesSchema, edges: edgesSchema, notes: notesSchema },
  }),
  v.title('VersionDetail'),
)
const reordered = v.pipe(
  v.boolean(),
  v.description('Whether the entries that both versions have are in a different order'),
)
const changeSchema = v.object({
  path: v.pipe(v.string(), v.examples(['config.url'])),
  from: v.optional(v.pipe(v.unknown(), v.description('The old value; missing if `path` was added'))),
  to: v.optional(v.pipe(v.unknown(), v.description('The new value; missing if `path` was removed'))),
})
const VersionDiffSchema = v.pipe(
  v.object({
    from: versionSchema,
    to: versionSchema,
    nodes: v.object({
      added: nodesSchema,
      removed: nodesSchema,
      changed: v.array(
        v.object({
          id: v.string(),
          name: v.string(),
          changes: v.array(changeSchema),
        }),
      ),
      reordered,
    }),
    edges: v.object({ added: edgesSchema, removed: edgesSchema, reordered }),
    notes: v.object({
      added: notesSchema,
      removed: notesSchema,
      changed: v.array(v.object({ id: v.string(), changes: v.array(changeSchema) })),
    }),
    expressions: v.optional(v.object({ from: rulesSchema, to: rulesSchema })),
    strict: v.optional(v.object({ from: v.boolean(), to: v.boolean() })),
  }),
  v.title('VersionDiff'),
)

/** The versions of a workflow's graph. */
export function createVersionRoutes(deps: ApiDeps) {
  return new Hono<AppEnv>().route('/', createVersionReadRoutes()).route('/', createVersionChangeRoutes(deps))
}

function createVersionReadRoutes() {
  return new Hono<AppEnv>()
    .get(
      '/api/workflows/:id/versions',
      accept({
        id: 'listVersions',
        tag: 'Workflows',
        summary: "List a workflow's versions",
        description:
          'Newest first. Each change of the graph, of `expressions`, `settings.strict` or `settings.notes` creates a version; ' +
          'name, description and the other settings are not versioned.',
        role: 'member',
        of: 'workflows',
        params: ById,
        query: v.object(paging),
        responses: { 200: { description: 'One page', schema: pageSchema('VersionPage', VersionItemSchema) } },
      }),
      async (c) => c.json(await listVersions(c.get('scope'), c.req.valid('param').id, c.req.valid('query'))),
    )
    .get(
      '/api/workflows/:id/versions/:version',
      accept({
        id: 'readVersion',
        tag: 'Workflows',
        summary: 'Read a version with its graph',
        description: 'Secrets of webhooks are only shown to BUILDER and higher roles.',
        role: 'member',
        of: 'workflows',
        params: OneVersion,
        responses: { 200: { description: 'The version', schema: VersionDetailSchema } },
      }),
      async (c) => {
        const { id, version } = c.req.valid('param')
        return c.json(await readVersionDetail(c.get('scope'), id, version))
      },
    )
    .get(
      '/api/workflows/:id/versions/:version/diff/:other',
      accept({
        id: 'compareVersions',
        tag: 'Workflows',
        summary: 'Compare two versions',
        description:
          'Lists what changed from `version` to `other`. Nodes are matched by their ids, and each path ' +
          'that differs is listed with both values; a field that differs in very many is shown as a whole. ' +
          'Edges are matched by their ends and handles. A changed ' +
          'secret is listed, but its values are only shown to BUILDER and higher roles.',
        role: 'member',
        of: 'workflows',
        params: TwoVersions,
        responses: { 200: { description: 'What changed', schema: VersionDiffSchema } },
      }),
      async (c) => {
        const { id, version, other } = c.req.valid('param')
        return c.json(await compareVersions(c.get('scope'), id, version, other))
      },
    )
}

function createVersionChangeRoutes(deps: ApiDeps) {
  return new Hono<AppEnv>()
    .post(
      '/api/workflows/:id/versions/:version/restore',
      accept({
        id: 'restoreVersion',
        tag: 'Workflows',
        summary: 'Restore a version',
        description:
          'Publishes the graph and the notes of this version again, as a new version (unless they are ' +
          "the published ones), and leaves a draft alone. The workflow's name, description and settings, but for `strict` and `notes`, are kept. If the " +
          'workflow is active, the graph must be valid for an active workflow. Without If-Match the last ' +
          'write wins.',
        role: 'BUILDER',
        of: 'workflows',
        params: OneVersion,
        headers: IF_MATCH_HEADER,
        responses: {
          200: { description: 'The workflow', schema: WorkflowDetailSchema, headers: ETAG_HEADER },
        },
        faults: [409, 412],
      }),
      async (c) => {
        const { id, version } = c.req.valid('param')
        const workflow = await updateWorkflow(c.get('scope'), id, { restore: version }, readIfMatch(c))
        await carryOutEach(deps, 'SCHEDULE', [id])
        const open = workflow.active ? findOpenWebhooks(workflow.nodes) : []
        return respondWithWorkflow(c, { ...workflow, warnings: [...open, ...workflow.warnings] })
      },
    )
    .delete(
      '/api/workflows/:id/versions/:version',
      accept({
        id: 'deleteVersion',
        tag: 'Workflows',
        summary: 'Delete a version',
        description:
          'Cannot be undone. The published version, the draft, and a version that has executions cannot be deleted ' +
          '(409). Of older drafts that were never executed the last 50 stay.',
        role: 'BUILDER',
        of: 'workflows',
        params: OneVersion,
        responses: { 200: messageResponse('Version deleted') },
        faults: [409],
      }),
      async (c) => {
        const { id, version } = c.req.valid('param')
        await deleteVersion(c.get('scope'), id, version)
        return c.json({ message: 'Version deleted' })
      },
    )
}
