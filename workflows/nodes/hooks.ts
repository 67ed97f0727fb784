import * as v from 'valibot'
import { object } from '../object.ts'
import { choice, computed, node, record, text, whole } from './fields.ts'

export const RESPONSE_MODES = ['immediate', 'lastNode', 'responseNode'] as const
export type ResponseMode = (typeof RESPONSE_MODES)[number]

/** What the connection, the service or the caller's own safety decides, a workflow does not. */
const KEPT =
  /^(connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|content-(length|encoding|security-policy)|set-cookie2?|clear-site-data|service-worker-allowed|strict-transport-security|alt-svc|date|x-content-type-options|x-frame-options|x-request-id|x-ratelimit-.*|traceresponse)$/

/** The name of an HTTP header. */
const headerName = v.pipe(
  v.string('must be a text'),
  v.regex(/^[\w!#$%&'*+.^`|~-]{1,200}$/, 'must be the name of a header'),
)

/** The status of an answer: informational ones belong to the connection. */
export const answerStatus = whole(200, 599)

/** What is wrong with a header of an answer; undefined where nothing is. Templates are checked once rendered. */
export function findHeaderFault(name: string, value: unknown): string | undefined {
  if (!v.is(headerName, name)) return 'is not the name of a header'
  if (KEPT.test(name.toLowerCase())) return 'is not for a workflow to set'
  if (!['string', 'number', 'boolean'].includes(typeof value)) return 'must be a text'
  const held = String(value)
  if (held.length > 8_000) return 'must have at most 8000 characters'
  return /^[\t\x20-\x7e\x80-\xff]*$/.test(held) ? undefined : 'holds characters that no header can hold'
}

const headers = v.pipe(
  record,
  v.rawCheck(({ dataset, addIssue }) => {
    if (!dataset.typed) return
    for (const [key, value] of Object.entries(dataset.value)) {
      const message = findHeaderFault(key, value)
      const path = { type: 'object', origin: 'value', input: dataset.value, key, value } as const
      if (message) addIssue({ message, path: [path] })
    }
  }),
)

/** How a webhook's caller proves who they are: an HMAC of the body. */
export const signature = object({
  header: headerName,
  secret: text,
  algorithm: v.optional(choice('sha256', 'sha1', 'sha512'), 'sha256'),
  encoding: v.optional(choice('hex', 'base64'), 'hex'),
  prefix: v.optional(v.string('must be a text')),
  timestampHeader: v.optional(headerName),
  toleranceSeconds: v.optional(whole(1, 86_400)),
})

/** How a webhook is answered, beside the trigger's other keys. */
export const response = {
  responseMode: v.optional(choice(...RESPONSE_MODES)),
  responseTimeoutMs: v.optional(whole(100, 300_000)),
}

/** What answers a webhook while its run goes on. */
export const HOOKS = {
  RESPOND_TO_WEBHOOK: node('pure', {
    summary:
      'Answers the webhook call that started the run, where its trigger waits for that (responseMode responseNode); ' +
      'the first one counts. Its output is {status, headers, body}; a text is sent as it is, null as no body, any ' +
      'other value as JSON.',
    config: v.object({
      status: v.optional(computed(answerStatus), 200),
      headers: v.optional(headers, {}),
      body: v.optional(v.unknown()),
    }),
  }),
} as const
