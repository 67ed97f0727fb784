import * as v from 'valibot'

type Schema = v.GenericSchema

/**
 * One answer of a route: JSON of `schema`, or another `type` of body, or none. `texts` are the types it may have in
 * place of JSON. `headers` by name, what each says.
 */
export type Answer = {
  description: string
  schema?: Schema
  type?: string
  texts?: string[]
  headers?: Record<string, string>
  links?: Record<string, Link>
}

/** What can be asked next, by operation: its parameters and body from this answer ($response.body#/id). */
export type Link = { parameters: Record<string, string>; requestBody?: Record<string, string> }

/** Error answers that a rule names; openapi.ts adds those that follow from the rest of it. */
export type FaultStatus = 401 | 403 | 404 | 405 | 409 | 412 | 413 | 415 | 503

/** The UUID in all examples. */
export const EXAMPLE_ID = '019aa1b2-3c4d-7e5f-8a6b-7c8d9e0f1a2b'

/** Pieces of the schemas that describe answers; a `v.title` makes one a component of the document. */
export const id = v.pipe(v.string(), v.metadata({ format: 'uuid' }))
export const time = v.pipe(v.string(), v.description('UTC, ISO 8601'), v.metadata({ format: 'date-time' }))
export const count = v.pipe(v.number(), v.integer(), v.minValue(0))

/** An answer that says what was done. */
export function said(message: string): Answer {
  return {
    description: 'It is done',
    schema: v.object({ message: v.pipe(v.string(), v.examples([message])) }),
  }
}

/** The envelope of a paged list; `title` names it in the document. */
export function pageOf<T extends Schema>(title: string, item: T) {
  return v.pipe(
    v.object({
      content: v.array(item),
      totalElements: v.pipe(count, v.examples([1])),
      totalPages: v.pipe(count, v.examples([1])),
      number: v.pipe(count, v.description('Counts from 0')),
      size: v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(100), v.examples([20])),
    }),
    v.title(title),
  )
}

/** The header that tells where what was made can be read. */
export const LOCATION = { Location: 'The path of what was made' }

export const ErrorAnswer = v.pipe(
  v.object({
    status: v.pipe(v.number(), v.integer(), v.description('The HTTP status'), v.examples([404])),
    error: v.pipe(v.string(), v.description("The status's phrase"), v.examples(['Not Found'])),
    message: v.pipe(v.string(), v.description('What is wrong'), v.examples(['There is no such workflow'])),
    timestamp: time,
    path: v.pipe(
      v.string(),
      v.description('Of the request, without its query'),
      v.examples(['/api/workflows']),
    ),
  }),
  v.title('Error'),
)

export const InputErrorAnswer = v.pipe(
  v.object({
    ...ErrorAnswer.entries,
    errors: v.optional(
      v.pipe(
        v.array(
          v.object({
            path: v.pipe(v.string(), v.examples(['nodes[2].config.url'])),
            message: v.pipe(v.string(), v.examples(['is required'])),
          }),
        ),
        v.description('Every field that is wrong'),
      ),
    ),
  }),
  v.title('InputError'),
)
