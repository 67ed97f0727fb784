import type { Context } from 'hono'
import type { MovedSecret } from '../../db/secrets/keeping.ts'
import { tagWorkflow } from '../../db/workflows/drafts/tags.ts'
import type { WorkflowDetail } from '../../db/workflows/workflows.ts'
import type { Problem } from '../../workflows/problem.ts'
import type { AppEnv } from '../env.ts'
import type { Rule } from '../http/accept.ts'
import { listWarnings } from '../warnings.ts'
import { listMovedSecrets } from './moved.ts'

/** The request header of every route that changes a workflow. */
export const IF_MATCH_HEADER: Rule['headers'] = {
  'If-Match': {
    description: 'The ETag of the state to be changed; 412 if the workflow has changed since',
  },
}

/** The tags in the If-Match header; undefined if the header is missing or is `*`, which allows any state. */
export function readIfMatch(c: Context): string[] | undefined {
  const header = c.req.header('if-match')
  if (header === undefined || header.trim() === '*') return undefined
  // A proxy that compresses the response makes its tag weak (W/), but the tag still names the same state.
  return header.split(',').map((tag) =>
    tag
      .trim()
      .replace(/^W\//, '')
      .replace(/^"(.*)"$/, '$1'),
  )
}

/** The response header that respondWithWorkflow sets. */
export const ETAG_HEADER = { ETag: 'The tag of this state of the workflow, for If-Match' }

/** Responds with a workflow, and with the tag of its state in the ETag header. Warnings are left out if there are none. */
export function respondWithWorkflow(
  c: Context<AppEnv>,
  {
    warnings = [],
    credentials = [],
    ...workflow
  }: WorkflowDetail & { warnings?: Problem[]; credentials?: MovedSecret[] },
) {
  c.header('ETag', `"${tagWorkflow(workflow)}"`)
  return c.json({ ...workflow, ...listWarnings(warnings), ...listMovedSecrets(credentials) })
}
