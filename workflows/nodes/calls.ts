import * as v from 'valibot'
import { described, strictObject, strictRecord } from '../object.ts'
import {
  anyObject,
  computed,
  credentialField,
  durationField,
  HTTP_METHODS,
  LARGE_NUMBERS,
  largeNumbersField,
  nodeTypeRow,
  textField,
  wholeNumber,
} from './fields.ts'
import { MAX_FILE_BYTES } from './files.ts'
import { listPageConditions, paginationField, readPageText } from './pagination.ts'

const scalar = v.union([v.string(), v.number(), v.boolean()], 'must be a string, a number or a boolean')

/** The schema, or a text that begins with `=`, whose expressions give JSON. Other texts get the schema's message. */
function orScript<S extends v.GenericSchema>(schema: S) {
  const union = v.union([schema, v.string()])
  const run: (typeof union)['~run'] = (dataset, config) =>
    (typeof dataset.value === 'string' && dataset.value.startsWith('=') ? union : schema)['~run'](
      dataset,
      config,
    )
  return { ...union, '~run': run }
}

const flag = v.boolean('must be true or false')

/** What an HTTP_REQUEST outputs of a response: without it {status, headers, body}. */
const responseField = strictObject(
  described(
    {
      format: v.optional(v.picklist(['auto', 'json', 'text', 'file'], 'must be auto, json, text or file')),
      full: v.optional(flag),
      neverError: v.optional(flag),
      field: v.optional(textField),
    },
    {
      format: 'How the body is read: auto looks at the answer, and makes a file of what is no text.',
      full: 'Outputs {body, headers, statusCode, statusMessage} in place of the body.',
      neverError: 'Takes every status, also those of 400 and more.',
      field: 'The field that has the text of an answer that is no JSON, or the name of its file.',
    },
  ),
)
export type ResponseShape = v.InferOutput<typeof responseField>

/** The largest answer that a node may ask for, and what it gets if it does not say; a file may have more. */
export const MAX_ANSWER_BYTES = 8 * 1024 * 1024

/** A file may have more bytes than another answer, and is no items. */
function checkFileAnswer<
  T extends { responseType?: unknown; maxBytes?: unknown; response?: unknown; pagination?: unknown },
>() {
  return v.rawCheck<T>(({ dataset, addIssue }) => {
    if (!dataset.typed) return
    const { responseType, maxBytes, response, pagination } = dataset.value
    const add = (key: string, value: unknown, message: string) => {
      const path = { type: 'object', origin: 'value', input: dataset.value, key, value } as const
      addIssue({ message, path: [path as unknown as v.ObjectPathItem] })
    }
    if (responseType !== 'file' && Number(maxBytes) > MAX_ANSWER_BYTES)
      add('maxBytes', maxBytes, `must be at most ${MAX_ANSWER_BYTES} unless responseType is file`)
    if (responseType === 'file' && response !== undefined)
      add('response', response, 'cannot be given with the responseType file')
    if (pagination !== undefined && (responseType === 'file' || Object(response).format === 'file'))
      add('pagination', pagination, 'cannot be given with answers that become files')
  })
}

/** Which credential a request must have, in words. */
export const neededField = v.pipe(textField, v.maxLength(500, 'must have at most 500 characters'))
export const NEEDS_CREDENTIAL =
  'Which credential is needed, in words: while credentialId names none, nothing is sent, and this says why.'

/** The fields of a request over HTTP, for nodes and tools. */
export const requestFields = described(
  {
    url: textField,
    method: v.optional(
      computed(v.picklist(HTTP_METHODS, `must be one of ${HTTP_METHODS.join(', ')}`)),
      'GET',
    ),
    headers: v.optional(orScript(strictRecord(scalar))),
    query: v.optional(orScript(anyObject)),
    body: v.optional(v.unknown()),
    contentType: v.optional(textField),
    credentialId: v.optional(credentialField),
    needsCredential: v.optional(neededField),
    timeoutMs: v.optional(
      computed(
        v.pipe(
          durationField,
          v.minValue(1, 'must be at least 1'),
          v.maxValue(3_600_000, 'must be at most an hour'),
        ),
      ),
    ),
  },
  {
    url: 'The address, with expressions where parts of it are computed.',
    method: 'The method of the request.',
    headers: 'The headers of the request; one that is null is left out.',
    query: 'What is added to the address after the question mark; what is null is left out.',
    body: 'What is sent.',
    contentType: 'The Content-Type header, if the usual one is not wanted.',
    credentialId: 'How the request is signed in. Its secret is added when the request is sent.',
    needsCredential: NEEDS_CREDENTIAL,
    timeoutMs: 'How long a call may take with its redirects, in milliseconds. A minute unless it is set.',
  },
)

/** Node types that send requests to other services. */
export const CALL_NODES = {
  HTTP_REQUEST: nodeTypeRow('effect', {
    summary: 'Calls a URL; retries 429, 5xx and network errors; outputs {status, headers, body}.',
    config: v.pipe(
      v.object({
        ...requestFields,
        ...described(
          {
            bodyType: v.optional(
              v.picklist(
                ['json', 'form', 'text', 'jsonText', 'file', 'multipart'],
                'must be json, form, text, file, multipart or jsonText',
              ),
              'json',
            ),
            response: v.optional(responseField),
            responseType: v.optional(v.picklist(['json', 'text', 'file'], 'must be json, text or file')),
            // Not computed: it is read before anything else of the node.
            maxBytes: v.optional(wholeNumber(1, MAX_FILE_BYTES)),
            largeNumbers: v.optional(largeNumbersField),
            pagination: v.optional(paginationField),
          },
          {
            bodyType: 'How the body is sent.',
            response: 'Makes items of the answer.',
            responseType: 'How the answer is read. Without it as JSON where the answer says so.',
            maxBytes: 'The most bytes that the answer may have. Less lets more calls be made at once.',
            largeNumbers: LARGE_NUMBERS,
            pagination: 'Reads the pages that follow, and outputs {items, pages, more} of all of them.',
          },
        ),
      }),
      checkFileAnswer(),
    ),
    conditions: listPageConditions,
    texts: () => readPageText,
    main: ['method', 'url', 'credentialId', 'query', 'headers', 'bodyType', 'body'],
    credentialUses: ['HTTP'],
    retry: { maxAttempts: 3, initialIntervalMs: 1_000, backoffCoefficient: 2, maxIntervalMs: 30_000 },
    timeoutMs: 300_000,
  }),
} as const
