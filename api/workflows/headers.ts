import type { Context } from 'hono'
import { tagWorkflow, type WorkflowDetail } from '../../db/workflows/workflows.ts'
import { findUnknownKeys } from '../../workflows/graph/advice/unknown.ts'
import type { AppEnv } from '../env.ts'
import type { Rule } from '../http/accept.ts'

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

/** Responds with a workflow, and with the tag of its state in the ETag header. */
export function respondWithWorkflow(c: Context<AppEnv>, workflow: WorkflowDetail) {
  c.header('ETag', `"${tagWorkflow(workflow)}"`)
  return c.json(workflow)
}

const MAX_UNKNOWN = 10
const MAX_PATH_CHARACTERS = 100

/**
 * Lists in the X-Unknown-Fields header the paths of config keys that the node's type does not know, at most
 * 10. Such keys are dropped rather than refused.
 */
export function nameUnknownFields(c: Context, nodes: unknown): void {
  const paths = findUnknownKeys(nodes).slice(0, MAX_UNKNOWN)
  if (paths.length === 0) return
  const encode = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  const cut = paths.map((path) => path.slice(0, MAX_PATH_CHARACTERS))
  c.header('X-Unknown-Fields', JSON.stringify(cut).replace(/[^ -~]/g, encode))
}
