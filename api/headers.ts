import type { Context } from 'hono'
import { Fault } from '../db/fault.ts'
import { tagWorkflow, type WorkflowDetail } from '../db/workflows.ts'
import { findUnknown } from '../workflows/unknown.ts'
import type { Rule } from './accept.ts'
import type { AppEnv } from './app.ts'

/** The header of whatever starts a run. */
export const ONCE: Rule['headers'] = {
  'Idempotency-Key': {
    description: 'A second call with the same key and body starts no second run',
    pattern: '^[!-~]([ -~]{0,253}[!-~])?$',
  },
}

/** What the Idempotency-Key header says. Throws INVALID. */
export function readKey(c: Context): string | undefined {
  const key = c.req.header('idempotency-key')
  if (key === undefined || /^[\x20-\x7e]{1,255}$/.test(key)) return key
  const problem = { path: 'Idempotency-Key', message: 'must be 1 to 255 printable ASCII characters' }
  throw new Fault('INVALID', `${problem.path} ${problem.message}`, { problems: [problem] })
}

/** The header of whatever changes a workflow. */
export const MATCH: Rule['headers'] = {
  'If-Match': { description: 'The ETag of the state that is to be changed; 412 where another stands' },
}

/** The tags of the If-Match header; undefined where it is not sent, or is * (whatever stands is right). */
export function readTags(c: Context): string[] | undefined {
  const header = c.req.header('if-match')
  if (header === undefined || header.trim() === '*') return undefined
  // A proxy that compresses makes a tag weak; it still names the same state.
  return header.split(',').map((tag) =>
    tag
      .trim()
      .replace(/^W\//, '')
      .replace(/^"(.*)"$/, '$1'),
  )
}

export const TAGGED = { ETag: 'Names this state of the workflow' }

/** Answers a workflow with the tag of its state. */
export function answerTagged(c: Context<AppEnv>, workflow: WorkflowDetail) {
  c.header('ETag', `"${tagWorkflow(workflow)}"`)
  return c.json(workflow)
}

const MAX_UNKNOWN = 10
const MAX_SIGNS = 100

/** Tells of keys in configs that no node type knows; what was wrong with the rest has been refused. */
export function tellUnknown(c: Context, nodes: unknown): void {
  const paths = findUnknown(nodes).slice(0, MAX_UNKNOWN)
  if (paths.length === 0) return
  const code = (sign: string) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`
  const cut = paths.map((path) => path.slice(0, MAX_SIGNS))
  c.header('X-Unknown-Fields', JSON.stringify(cut).replace(/[^ -~]/g, code))
}
