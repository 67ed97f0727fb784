import * as v from 'valibot'
import type { FaultCode } from '../../db/fault.ts'
import type { Problem } from '../../workflows/problem.ts'

type Schema = v.GenericSchema

/**
 * One response of a route: JSON as in `schema`, a body of another media `type`, or no body. `texts` are the
 * media types of text that may be sent instead. `headers` has a description for each header, by name.
 */
export type ResponseSpec = {
  description: string
  schema?: Schema
  type?: string
  texts?: string[]
  headers?: Record<string, string>
  links?: Record<string, ResponseLink>
}

/** A follow-up operation, whose parameters and body are taken from this response (`$response.body#/id`). */
export type ResponseLink = { parameters: Record<string, string>; requestBody?: Record<string, string> }

/** The error statuses that a rule may list. openapi.ts adds those that follow from the rest of the rule. */
export type FaultStatus = 401 | 403 | 404 | 405 | 409 | 412 | 413 | 415 | 421 | 422 | 503

/** The UUID in all examples. */
export const EXAMPLE_ID = '019aa1b2-3c4d-7e5f-8a6b-7c8d9e0f1a2b'

/** Parts of response schemas. A schema with a `v.title` becomes a component of the OpenAPI document. */
export const idSchema = v.pipe(v.string(), v.metadata({ format: 'uuid' }))
export const timeSchema = v.pipe(
  v.string(),
  v.description('UTC, ISO 8601'),
  v.metadata({ format: 'date-time' }),
)
export const countSchema = v.pipe(v.number(), v.integer(), v.minValue(0))
export const versionSchema = v.pipe(v.number(), v.integer(), v.minValue(1))

/** A response with a message about what was done. */
export function messageResponse(message: string): ResponseSpec {
  return {
    description: 'Done',
    schema: v.object({ message: v.pipe(v.string(), v.examples([message])) }),
  }
}

/** One page of a list. `title` is the schema's name in the OpenAPI document. */
export function pageSchema<T extends Schema>(title: string, item: T) {
  return v.pipe(
    v.object({
      content: v.array(item),
      totalElements: v.pipe(countSchema, v.examples([1])),
      totalPages: v.pipe(countSchema, v.examples([1])),
      number: v.pipe(countSchema, v.description('The number of this page, counted from 0')),
      size: v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(100), v.examples([20])),
    }),
    v.title(title),
  )
}

/** The header with the path of a new resource. */
export const LOCATION_HEADER = { Location: 'The path of the new resource' }

/**
 * The body of every error response. Only a 400 has `errors`, only some a `code`. `path` does not include the
 * query.
 */
export type ErrorBody = {
  status: number
  error: string
  message: string
  timestamp: string
  path: string
  code?: FaultCode
  errors?: Problem[]
}

export const ErrorSchema = v.pipe(
  v.object({
    status: v.pipe(v.number(), v.integer(), v.description('The HTTP status'), v.examples([404])),
    error: v.pipe(v.string(), v.description('The reason phrase of the status'), v.examples(['Not Found'])),
    message: v.pipe(v.string(), v.description('What is wrong'), v.examples(['There is no such workflow'])),
    timestamp: timeSchema,
    path: v.pipe(
      v.string(),
      v.description('The path of the request, without its query'),
      v.examples(['/api/workflows']),
    ),
  }),
  v.title('Error'),
)

export const UnavailableSchema = v.pipe(
  v.object({
    ...ErrorSchema.entries,
    code: v.optional(
      v.pipe(
        v.literal('AUDIT_CHAIN_BROKEN'),
        v.description(
          'There if it is the audit chain: trying again helps only once its operator has reopened it',
        ),
      ),
    ),
  }),
  v.title('UnavailableError'),
)

export const ProblemSchema = v.object({
  path: v.pipe(v.string(), v.examples(['nodes[2].config.url'])),
  message: v.pipe(v.string(), v.examples(['is required'])),
  line: v.optional(v.pipe(v.number(), v.integer(), v.description('Of a part of a text, from 1'))),
  column: v.optional(v.pipe(v.number(), v.integer(), v.description('Of a part of a text, from 1'))),
  excerpt: v.optional(
    v.pipe(
      v.array(v.string()),
      v.description('The line of the text, and a line with carets under the part'),
      v.examples([['{{ $input.a === 1 }}', '            ^^^']]),
    ),
  ),
})

export const InputErrorSchema = v.pipe(
  v.object({
    ...ErrorSchema.entries,
    errors: v.optional(v.pipe(v.array(ProblemSchema), v.description('One entry for each invalid field'))),
  }),
  v.title('InputError'),
)

/** The warnings about a request that was carried out, but may not do what was meant. */
export const warningsEntry = {
  warnings: v.optional(
    v.pipe(
      v.array(v.pipe(ProblemSchema, v.title('Warning'))),
      v.description(
        'What was accepted although it may not do what was meant, such as unknown keys. Left out if there is nothing',
      ),
    ),
  ),
}
