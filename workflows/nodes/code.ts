import * as v from 'valibot'
import { MAX_CODE } from '../javascript/code.ts'
import {
  DEFAULT_CODE_MS,
  DEFAULT_MEMORY_MB,
  MAX_CODE_MS,
  MAX_MEMORY_MB,
  MIN_MEMORY_MB,
} from '../javascript/limits.ts'
import { described } from '../object.ts'
import { computed, itemsField, nodeTypeRow, oneOf, textField, wholeNumber } from './fields.ts'

/**
 * The node's own time limit goes by the clock, and the code's by processor time, which a busy machine gives
 * slowly. The process ends a code long before this.
 */
const CLOCK_MS = 900_000

/** Node types that run what users write as programs. */
export const CODE_NODES = {
  CODE: nodeTypeRow('pure', {
    summary: 'Runs JavaScript: once for all, or once for each item, without access to the outside.',
    config: v.object(
      described(
        {
          language: v.optional(v.picklist(['javascript'], 'must be javascript'), 'javascript'),
          code: v.pipe(textField, v.maxLength(MAX_CODE, `must have at most ${MAX_CODE} characters`)),
          mode: v.optional(oneOf('all', 'each'), 'all'),
          items: v.optional(computed(itemsField)),
          style: v.optional(oneOf('code', 'function', 'functionItem')),
          files: v.optional(v.boolean('must be true or false')),
          staticData: v.optional(v.boolean('must be true or false')),
          timeoutMs: v.optional(wholeNumber(1, MAX_CODE_MS), DEFAULT_CODE_MS),
          memoryMb: v.optional(wholeNumber(MIN_MEMORY_MB, MAX_MEMORY_MB), DEFAULT_MEMORY_MB),
        },
        {
          language: 'The language of the code.',
          code: 'What stands in an async function: it reads $input, $nodes and the others as expressions do, and returns the output.',
          mode: 'Whether it runs once for all, or once for each item, with $item and $index.',
          items: 'For each: the list. Without it the items of the input.',
          style: "How code of n8n's is run: it sees items and item, and takes and gives {json}.",
          files: 'With style: the code makes files, and the node is an activity of its own that stores them.',
          staticData:
            "With style: the code keeps data from one execution to the next, by n8n's $getWorkflowStaticData, and the node is an activity of its own.",
          timeoutMs: 'How long it may take, in milliseconds of processor time.',
          memoryMb: 'How much memory its values may take, in MB.',
        },
      ),
    ),
    main: ['code', 'mode', 'items'],
    conditions: ({ code }) => (typeof code === 'string' ? [{ path: 'code', text: code, code: true }] : []),
    stores: ({ files, staticData }) => files === true || staticData === true,
    codeMs: ({ timeoutMs }) => (typeof timeoutMs === 'number' ? timeoutMs : DEFAULT_CODE_MS),
    timeoutMs: CLOCK_MS,
  }),
} as const
