import { Hono } from 'hono'
import * as v from 'valibot'
import { discardDraft } from '../../db/workflows/drafts/drafts.ts'
import { publishVersion } from '../../db/workflows/drafts/publish.ts'
import { findOpenWebhooks } from '../../workflows/graph/advice/open.ts'
import type { ApiDeps, AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { ById, boundedString } from '../http/fields.ts'
import { messageResponse } from '../http/responses.ts'
import { carryOutEach } from '../outbox.ts'
import { WorkflowDetailSchema } from './fields.ts'
import { ETAG_HEADER, IF_MATCH_HEADER, readIfMatch, respondWithWorkflow } from './headers.ts'
import { versionNumber } from './versions.ts'

const NewPublication = v.object({
  version: v.pipe(v.optional(versionNumber), v.description('The version to publish; default: the draft')),
  note: v.pipe(
    v.optional(v.nullable(boundedString(2_000, 0))),
    v.description('What is new; it is kept with the version, and in the audit'),
    v.examples(['Orders over 100 go to Ada']),
  ),
  active: v.optional(v.boolean('must be true or false')),
})

/** A workflow's draft: published, or discarded. */
export function createDraftRoutes(deps: ApiDeps) {
  return new Hono<AppEnv>()
    .post(
      '/api/workflows/:id/publish',
      accept({
        id: 'publishWorkflow',
        tag: 'Workflows',
        summary: 'Publish the draft or another version',
        description:
          'From now on triggers, chats, widgets and other workflows execute this version; executions that have begun keep ' +
          'theirs. The response is 409 if there is no draft. Another version, and a draft that is older than the ' +
          'published version, becomes a new version with `restoredFrom`, unless it is the same as the published one. ' +
          'With `active` the workflow is switched on or off with it. If it is active, the graph must be valid for an ' +
          'active workflow: all problems are reported at once. Without If-Match the last write wins; to publish the ' +
          'draft it is the ETag of the draft.',
        role: 'BUILDER',
        of: 'workflows',
        params: ById,
        json: NewPublication,
        headers: IF_MATCH_HEADER,
        example: { note: 'Orders over 100 go to Ada' },
        responses: {
          200: { description: 'The workflow', schema: WorkflowDetailSchema, headers: ETAG_HEADER },
        },
        faults: [409, 412],
      }),
      async (c) => {
        const { id } = c.req.valid('param')
        const workflow = await publishVersion(c.get('scope'), id, c.req.valid('json'), readIfMatch(c))
        await carryOutEach(deps, 'SCHEDULE', [id])
        const open = workflow.active ? findOpenWebhooks(workflow.nodes) : []
        return respondWithWorkflow(c, { ...workflow, warnings: [...open, ...workflow.warnings] })
      },
    )
    .delete(
      '/api/workflows/:id/draft',
      accept({
        id: 'discardDraft',
        tag: 'Workflows',
        summary: 'Discard the draft',
        description:
          'What is published stays as it is. The version that was the draft stays among the others, of which those that ' +
          'were never published or executed are deleted but for the last 50.',
        role: 'BUILDER',
        of: 'workflows',
        params: ById,
        headers: IF_MATCH_HEADER,
        responses: { 200: messageResponse('Draft discarded') },
        faults: [412],
      }),
      async (c) => {
        await discardDraft(c.get('scope'), c.req.valid('param').id, readIfMatch(c))
        return c.json({ message: 'Draft discarded' })
      },
    )
}
