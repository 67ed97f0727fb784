import * as v from 'valibot'
import { object } from '../object.ts'
import { METHODS, name, node, text } from './fields.ts'

/** What starts a run; the output is what it was started with. */
export const TRIGGERS = {
  MANUAL_TRIGGER: node('trigger', {
    summary: 'Starts a run by hand or over the API; its output is the data of the call.',
    config: v.object({}),
  }),
  WEBHOOK_TRIGGER: node('trigger', {
    summary:
      'Starts a run for each call of /hooks/:workflowId/:path; its output is {body, query, headers, method}.',
    config: v.object({
      path: name,
      method: v.optional(v.picklist(METHODS, `must be one of ${METHODS.join(', ')}`), 'POST'),
      secretHeader: v.optional(object({ name: text, value: text })),
    }),
  }),
} as const
