import * as v from 'valibot'
import { computed, condition, conditionAt, items, node, record } from './fields.ts'

/** What makes values of values. */
export const DATA = {
  SET: node('pure', {
    summary: 'Outputs exactly its values.',
    config: v.object({ values: record }),
  }),
  FILTER: node('pure', {
    summary: 'Outputs {items}: those of its items for which the condition holds ($item, $index).',
    config: v.object({
      items: computed(items),
      condition,
    }),
    conditions: (config) => conditionAt('condition', config.condition),
  }),
} as const
