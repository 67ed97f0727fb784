import * as v from 'valibot'
import { strictObject } from '../object.ts'
import { anyObject, computed, nodeTypeRow, oneOf, textField, wholeNumber } from './fields.ts'
import { MAX_FILE_BYTES, MAX_RUN_FILES } from './files.ts'

export const RESPONSE_MODES = ['immediate', 'lastNode', 'responseNode'] as const
export type ResponseMode = (typeof RESPONSE_MODES)[number]

/**
 * The headers that a workflow may set: those that describe its answer. All others could change how a browser
 * treats the origin that the console shares, or belong to the connection or the service. New ones are refused
 * until they are added here, whatever browsers will make of them.
 */
const ALLOWED = new Set(
  `allow cache-control content-disposition content-language content-location content-type deprecation etag
  expires last-modified link location retry-after sunset vary`.split(/\s+/),
)

/** Headers of one's own, and those by which receivers of webhooks and CloudEvents answer a handshake. */
const OWN = /^(x|webhook|ce)-/

/** Headers that begin with `X-`, but mean something to browsers, to proxies in front, or to this service. */
const RESERVED =
  /^x-(accel|amz|amzn|apple|cdn|envoy|forwarded|frame|lighttpd|litespeed|middleware|nginx|original|proxy|ratelimit|reproxy|rewrite|sendfile|varnish|webkit|xss)(-|$)|^x-(content-(type-options|security-policy.*|encoding)|dns-prefetch-control|download-options|http-method.*|method-override|permitted-cross-domain-policies|real-ip|request-id|ua-compatible)$/

function isAllowed(name: string): boolean {
  return ALLOWED.has(name) || (OWN.test(name) && !RESERVED.test(name))
}

/** The name of an HTTP header. */
const headerName = v.pipe(
  v.string('must be a string'),
  v.regex(/^[\w!#$%&'*+.^`|~-]{1,200}$/, 'must be the name of a header'),
)

/** The status of a response. Those below 200 are informational and belong to the connection. */
export const responseStatusField = wholeNumber(200, 599)

/** What is wrong with a header of a response, undefined if valid. Templates are checked once rendered. */
export function findHeaderFault(name: string, value: unknown): string | undefined {
  if (!v.is(headerName, name)) return 'is not the name of a header'
  if (!isAllowed(name.toLowerCase())) {
    const own = 'and headers of your own that begin with X-'
    return `cannot be set by a workflow; it may set ${[...ALLOWED].join(', ')} ${own}`
  }
  if (!['string', 'number', 'boolean'].includes(typeof value)) return 'must be a string'
  const held = String(value)
  if (held.length > 8_000) return 'must have at most 8000 characters'
  return /^[\t\x20-\x7e\x80-\xff]*$/.test(held) ? undefined : 'has characters that a header cannot have'
}

const headers = v.pipe(
  anyObject,
  v.rawCheck(({ dataset, addIssue }) => {
    if (!dataset.typed) return
    for (const [key, value] of Object.entries(dataset.value)) {
      const message = findHeaderFault(key, value)
      const path = { type: 'object', origin: 'value', input: dataset.value, key, value } as const
      if (message) addIssue({ message, path: [path] })
    }
  }),
)

/** How a webhook's caller proves its identity: by an HMAC of the body. */
export const signatureField = strictObject({
  header: headerName,
  secret: textField,
  algorithm: v.optional(oneOf('sha256', 'sha1', 'sha512'), 'sha256'),
  encoding: v.optional(oneOf('hex', 'base64'), 'hex'),
  prefix: v.optional(v.string('must be a string')),
  timestampHeader: v.optional(headerName),
  toleranceSeconds: v.optional(wholeNumber(1, 86_400)),
  deliveryHeader: v.optional(headerName),
})

/** What the caller gets whose answer no RESPOND_TO_WEBHOOK defines. Without it the execution's whole output. */
const respondField = strictObject({
  data: v.optional(oneOf('first', 'all', 'none')),
  status: v.optional(responseStatusField),
  headers: v.optional(headers),
  field: v.optional(v.string('must be a string')),
  contentType: v.optional(v.string('must be a string')),
  text: v.optional(v.string('must be a string')),
  ends: v.optional(v.pipe(v.array(v.string('must be a string'), 'must be an array'), v.maxLength(500))),
})
export type WebhookRespond = v.InferOutput<typeof respondField>

/** Which bodies of requests become files, and their limits. */
export const webhookFilesField = strictObject({
  maxBytes: v.optional(wholeNumber(1, MAX_FILE_BYTES)),
  maxCount: v.optional(wholeNumber(1, MAX_RUN_FILES)),
})
export type WebhookFiles = v.InferOutput<typeof webhookFilesField>

/** The keys of a WEBHOOK_TRIGGER's config that say when to respond, and how long to wait for the response. */
export const responseFields = {
  responseMode: v.optional(oneOf(...RESPONSE_MODES)),
  responseTimeoutMs: v.optional(wholeNumber(100, 300_000)),
  shape: v.optional(v.literal('n8n', 'must be n8n')),
  respond: v.optional(respondField),
}

/** Node types that respond to a webhook request while its execution goes on. */
export const WEBHOOK_NODES = {
  RESPOND_TO_WEBHOOK: nodeTypeRow('pure', {
    summary:
      'Responds to the webhook request that started the execution, if its trigger waits for that ' +
      '(responseMode responseNode); the first response counts. Its output is {status, headers, body}; a ' +
      'string is sent as it is, null as no body, any other value as JSON; with as: file, the bytes of a file.',
    config: v.object({
      status: v.optional(computed(responseStatusField), 200),
      headers: v.optional(headers, {}),
      body: v.optional(v.unknown()),
      as: v.optional(oneOf('json', 'text', 'first', 'all', 'file')),
      key: v.optional(textField),
      passOn: v.optional(v.boolean('must be true or false')),
    }),
  }),
} as const
