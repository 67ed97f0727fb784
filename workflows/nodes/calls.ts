import * as v from 'valibot'
import { recordOf } from '../object.ts'
import { computed, duration, METHODS, node, record, text } from './fields.ts'

const scalar = v.union([v.string(), v.number(), v.boolean()], 'must be a text, a number or a boolean')

/** What calls the outside. */
export const CALLS = {
  HTTP_REQUEST: node('effect', {
    summary: 'Calls a URL; retries 429, 5xx and network errors; outputs {status, headers, body}.',
    config: v.object({
      url: text,
      method: v.optional(computed(v.picklist(METHODS, `must be one of ${METHODS.join(', ')}`)), 'GET'),
      headers: v.optional(recordOf(scalar)),
      query: v.optional(record),
      body: v.optional(v.unknown()),
      bodyType: v.optional(v.picklist(['json', 'form', 'text'], 'must be json, form or text'), 'json'),
      responseType: v.optional(v.picklist(['json', 'text'], 'must be json or text')),
      timeoutMs: v.optional(
        computed(
          v.pipe(
            duration,
            v.minValue(1, 'must be at least 1'),
            v.maxValue(3_600_000, 'must be at most an hour'),
          ),
        ),
      ),
    }),
    retry: { maxAttempts: 3, initialIntervalMs: 1_000, backoffCoefficient: 2, maxIntervalMs: 30_000 },
    timeoutMs: 300_000,
  }),
} as const
