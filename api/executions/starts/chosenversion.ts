import * as v from 'valibot'
import { versionNumber } from '../../workflows/versions.ts'

/** The version that a request wants to be executed. */
export const chosenVersionField = v.pipe(
  v.optional(
    v.union([versionNumber, v.literal('draft')], (issue) =>
      typeof issue.input === 'number'
        ? 'must be a whole number from 1 to 2147483647'
        : 'must be a number or "draft"',
    ),
  ),
  v.description(
    'The version of the graph: a number, or `draft` (409 if there is none); default: the published one. Needs the role ' +
      'BUILDER or higher',
  ),
)
