import { Hono } from 'hono'
import * as v from 'valibot'
import { compareVersions, deleteVersion, listVersions, readVersionDetail } from '../db/versions.ts'
import { updateWorkflow } from '../db/workflows.ts'
import { accept, ById, uuid, whole } from './accept.ts'
import { count, id, pageOf, said, time } from './answers.ts'
import type { ApiDeps, AppEnv } from './app.ts'
import { runErrands } from './errands.ts'
import { edges, nodes } from './graph.ts'
import { answerTagged, MATCH, readTags, TAGGED } from './headers.ts'
import { paging } from './query.ts'
import { WorkflowDetail } from './workflows.ts'

const number = whole(1, 2_147_483_647)
const OneVersion = v.object({ id: uuid, version: number })
const TwoVersions = v.object({ id: uuid, version: number, other: number })

const version = v.pipe(v.number(), v.integer(), v.minValue(1))
const item = {
  version,
  createdAt: time,
  createdBy: v.nullable(v.object({ id, name: v.pipe(v.string(), v.examples(['Ada Byron'])) })),
  nodeCount: count,
  current: v.boolean(),
  inUse: v.pipe(v.boolean(), v.description('There are runs of it')),
  restoredFrom: v.nullable(version),
}
const VersionItem = v.pipe(v.object(item), v.title('VersionItem'))
const VersionDetail = v.pipe(v.object({ workflowId: id, ...item, nodes, edges }), v.title('VersionDetail'))
const reordered = v.pipe(v.boolean(), v.description('What both have stands in another order'))
const VersionDiff = v.pipe(
  v.object({
    from: version,
    to: version,
    nodes: v.object({
      added: nodes,
      removed: nodes,
      changed: v.array(
        v.object({
          id: v.string(),
          name: v.string(),
          changes: v.array(
            v.object({
              path: v.pipe(v.string(), v.examples(['config.url'])),
              from: v.optional(v.pipe(v.unknown(), v.description('Missing where it was added'))),
              to: v.optional(v.pipe(v.unknown(), v.description('Missing where it was removed'))),
            }),
          ),
        }),
      ),
      reordered,
    }),
    edges: v.object({ added: edges, removed: edges, reordered }),
  }),
  v.title('VersionDiff'),
)

/** The versions of a workflow's graph. */
export function createVersionRoutes(deps: ApiDeps) {
  return new Hono<AppEnv>()
    .get(
      '/api/workflows/:id/versions',
      accept({
        id: 'listVersions',
        tag: 'Workflows',
        summary: "List a workflow's versions",
        description:
          'The newest first. Each change of the graph made one; name, description and settings are not versioned.',
        role: 'member',
        of: 'workflows',
        params: ById,
        query: v.object(paging),
        responses: { 200: { description: 'One page', schema: pageOf('VersionPage', VersionItem) } },
      }),
      async (c) => c.json(await listVersions(c.get('scope'), c.req.valid('param').id, c.req.valid('query'))),
    )
    .get(
      '/api/workflows/:id/versions/:version',
      accept({
        id: 'readVersion',
        tag: 'Workflows',
        summary: 'Read a version with its graph',
        description: 'Secrets of webhooks are hidden from those below BUILDER.',
        role: 'member',
        of: 'workflows',
        params: OneVersion,
        responses: { 200: { description: 'The version', schema: VersionDetail } },
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
          'What changed from `version` to `other`: nodes by their ids, with each path that differs and both values, ' +
          'and edges by their ends and handles. A secret is told as changed; its values only to a BUILDER.',
        role: 'member',
        of: 'workflows',
        params: TwoVersions,
        responses: { 200: { description: 'What changed', schema: VersionDiff } },
      }),
      async (c) => {
        const { id, version, other } = c.req.valid('param')
        return c.json(await compareVersions(c.get('scope'), id, version, other))
      },
    )
    .post(
      '/api/workflows/:id/versions/:version/restore',
      accept({
        id: 'restoreVersion',
        tag: 'Workflows',
        summary: 'Restore a version',
        description:
          "Makes the version's graph the workflow's again, as a new version (none where it is the same graph); name, " +
          'description and settings stay. An active workflow must be fit to be active with it. Without If-Match the ' +
          'last write wins.',
        role: 'BUILDER',
        of: 'workflows',
        params: OneVersion,
        headers: MATCH,
        responses: { 200: { description: 'The workflow', schema: WorkflowDetail, headers: TAGGED } },
        faults: [409, 412],
      }),
      async (c) => {
        const { id, version } = c.req.valid('param')
        const workflow = await updateWorkflow(c.get('scope'), id, { restore: version }, readTags(c))
        await runErrands(deps, 'SCHEDULE', [id])
        return answerTagged(c, workflow)
      },
    )
    .delete(
      '/api/workflows/:id/versions/:version',
      accept({
        id: 'deleteVersion',
        tag: 'Workflows',
        summary: 'Delete a version',
        description: 'For good. The current one, and one that has runs, stays: 409.',
        role: 'BUILDER',
        of: 'workflows',
        params: OneVersion,
        responses: { 200: said('Version deleted') },
        faults: [409],
      }),
      async (c) => {
        const { id, version } = c.req.valid('param')
        await deleteVersion(c.get('scope'), id, version)
        return c.json({ message: 'Version deleted' })
      },
    )
}
