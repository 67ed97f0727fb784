import * as v from 'valibot'
import { described, strictObject } from '../object.ts'
import {
  anyObject,
  computed,
  credentialField,
  demandSecret,
  nodeTypeRow,
  oneOf,
  textField,
  wholeNumber,
} from './fields.ts'
import { MAX_FILE_BYTES, MAX_RUN_FILES } from './files.ts'

const RESPONSE_MODES = ['immediate', 'lastNode', 'responseNode'] as const
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

/** The fault of a header of a response, undefined if it is valid. Templates are checked once rendered. */
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
export const signatureField = v.pipe(
  strictObject(
    described(
      {
        header: headerName,
        secret: v.optional(textField),
        credentialId: v.optional(credentialField),
        algorithm: v.optional(oneOf('sha256', 'sha1', 'sha512'), 'sha256'),
        encoding: v.optional(oneOf('hex', 'base64'), 'hex'),
        prefix: v.optional(v.string('must be a string')),
        timestampHeader: v.optional(headerName),
        toleranceSeconds: v.optional(wholeNumber(1, 86_400)),
        deliveryHeader: v.optional(headerName),
      },
      {
        header: 'The header that has the signature.',
        secret: 'The secret of the HMAC. It is moved into a credential when the workflow is saved.',
        credentialId: 'A credential that has the secret.',
        algorithm: 'The hash of the HMAC.',
        encoding: 'How the signature is written.',
        prefix: 'What stands before the signature, such as sha256=.',
        timestampHeader:
          'The header that has the time in Unix seconds; the signature is then of the time, a dot and the body.',
        toleranceSeconds: 'How old the time may be, in seconds. 300 unless it is set.',
        deliveryHeader:
          'The header that has an id of the delivery, so that one that is repeated starts nothing.',
      },
    ),
  ),
  demandSecret('secret'),
)

/** A header that must hold a secret. */
export const secretHeaderField = v.pipe(
  strictObject(
    described(
      { name: textField, value: v.optional(textField), credentialId: v.optional(credentialField) },
      {
        name: 'The name of the header.',
        value: 'What it must hold. It is moved into a credential when the workflow is saved.',
        credentialId: 'A credential that has the value.',
      },
    ),
  ),
  demandSecret('value'),
)

/** The answer to a caller if no RESPOND_TO_WEBHOOK defines it. Without it the execution's whole output. */
const respondField = strictObject(
  described(
    {
      data: v.optional(oneOf('first', 'all', 'none', 'file')),
      status: v.optional(responseStatusField),
      headers: v.optional(headers),
      field: v.optional(v.string('must be a string')),
      contentType: v.optional(v.string('must be a string')),
      text: v.optional(v.string('must be a string')),
      ends: v.optional(v.pipe(v.array(v.string('must be a string'), 'must be an array'), v.maxLength(500))),
    },
    {
      data: 'The first item of the node that ended last, all of its items, nothing, or a file of the first item.',
      status: 'The status of the answer.',
      headers: 'Headers of the answer.',
      field: 'The only field of the first item that is sent, or the name of its file.',
      contentType: 'The Content-Type of the answer.',
      text: 'What a caller gets who is answered at once.',
      ends: 'The ids of the nodes that may be the last one, in their order.',
    },
  ),
)
export type WebhookRespond = v.InferOutput<typeof respondField>

/** Which bodies of requests become files, and their limits. */
export const webhookFilesField = strictObject(
  described(
    {
      maxBytes: v.optional(wholeNumber(1, MAX_FILE_BYTES)),
      maxCount: v.optional(wholeNumber(1, MAX_RUN_FILES)),
      name: v.optional(v.pipe(textField, v.maxLength(100, 'must have at most 100 characters'))),
    },
    {
      maxBytes: 'The most bytes that a file may have.',
      maxCount: 'The most files that a call may have.',
      name: 'With the shape n8n: the name of the file, and with a number those of a form.',
    },
  ),
)
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
    config: v.object(
      described(
        {
          status: v.optional(computed(responseStatusField), 200),
          headers: v.optional(headers, {}),
          body: v.optional(v.unknown()),
          as: v.optional(oneOf('json', 'text', 'first', 'all', 'file')),
          key: v.optional(textField),
          passOn: v.optional(v.boolean('must be true or false')),
        },
        {
          status: 'The status of the answer.',
          headers: 'Headers of the answer; one that is null is left out.',
          body: 'What the caller gets: a text as it is, nothing as no body, any other value as JSON.',
          as: 'What the body is: JSON (also from a text), a text, the first or all of its items, or the bytes of a file.',
          key: 'Of items: puts them into an object under this key.',
          passOn: 'The node outputs its items, and not the answer.',
        },
      ),
    ),
    main: ['status', 'body', 'headers'],
  }),
} as const
