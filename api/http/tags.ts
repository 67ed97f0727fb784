import { hash } from 'node:crypto'
import type { Context } from 'hono'
import type { Rule } from './accept.ts'
import type { ResponseSpec } from './responses.ts'

/** Whether the client has this state already (If-None-Match; RFC 9110, 13.1.2). A tag made weak names the same state. */
export function hasState(c: Context, tag: string): boolean {
  const known = (c.req.header('if-none-match') ?? '').split(',').map(readTag)
  return known.includes('*') || known.includes(readTag(tag))
}

const readTag = (tag: string) => tag.trim().replace(/^W\//, '')

/** The request header of a route that responds with respondTagged, and the responses that it has besides the body. */
export const IF_NONE_MATCH_HEADER: Rule['headers'] = {
  'If-None-Match': {
    description: 'The ETag of an earlier response: 304 without a body if it would be the same',
  },
}
export const TAG_HEADER = { ETag: 'The tag of this response, for If-None-Match' }
export const UNCHANGED_RESPONSE: ResponseSpec = {
  description: 'Nothing has changed since the response with the tag that If-None-Match names',
  headers: TAG_HEADER,
}

/** Responds with JSON and its tag, or 304 to a client that has it. The tag is weak, as the body may be compressed. */
export function respondTagged<T>(c: Context, value: T) {
  const text = JSON.stringify(value)
  const tag = `W/"${hash('sha256', text, 'base64url').slice(0, 22)}"`
  c.header('ETag', tag)
  const known = hasState(c, tag)
  if (!known) c.header('Content-Type', 'application/json')
  const response = known ? c.body(null, 304) : c.body(text)
  return response as unknown as Awaited<ReturnType<typeof c.json<T, 200>>>
}
