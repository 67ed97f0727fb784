import { Hono } from 'hono'
import * as v from 'valibot'
import { extractCredentials } from '../../db/secrets/extract.ts'
import type { AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { uuidField } from '../http/fields.ts'
import { EXAMPLE_ID, idSchema, ProblemSchema, versionSchema } from '../http/responses.ts'
import { PlannedSecretSchema } from '../workflows/moved.ts'

const Extract = v.object({
  workflowId: uuidField,
  dryRun: v.optional(v.boolean('must be true or false'), false),
})

const ExtractionSchema = v.pipe(
  v.object({
    workflowId: idSchema,
    version: versionSchema,
    draftVersion: v.nullable(versionSchema),
    credentials: v.pipe(
      v.array(PlannedSecretSchema),
      v.description('The new credentials; with `dryRun` those that would be made, without an id'),
    ),
    problems: v.pipe(
      v.array(ProblemSchema),
      v.description(
        'The secrets that stay in the graph, and why; with `draft.` before the path those of the draft',
      ),
    ),
  }),
  v.title('Extraction'),
)

/** Moving secrets out of graphs. */
export function createExtractRoutes() {
  return new Hono<AppEnv>().post(
    '/api/credentials/extract',
    accept({
      id: 'extractCredentials',
      tag: 'Credentials',
      summary: "Move the secrets of a workflow's graph into credentials",
      description:
        'Makes a credential of each secret that is written into the published graph or into the draft (equal ones share ' +
        'one), and new versions of them whose nodes name them by `credentialId`. Requests stay the same. A credential for HTTP may ' +
        'only be sent to the host that the node names. With `dryRun` nothing is changed.',
      role: 'BUILDER',
      json: Extract,
      example: { workflowId: EXAMPLE_ID, dryRun: true },
      responses: { 200: { description: 'What was moved', schema: ExtractionSchema } },
      faults: [409],
    }),
    async (c) => {
      const { workflowId, dryRun } = c.req.valid('json')
      const { credentials, ...rest } = await extractCredentials(c.get('scope'), workflowId, { dryRun })
      const named = credentials.map(({ id, ...one }) => ({ id: id === '' ? null : id, ...one }))
      return c.json({ ...rest, credentials: named })
    },
  )
}
