import * as v from 'valibot'
import { described, strictObject } from '../object.ts'
import { textField, wholeNumber } from './fields.ts'

/** The most messages of a memory, and how many a model is told if its node does not say. */
const MAX_MESSAGES = 200
export const MEMORY_MESSAGES = 20

/** How long what was said is kept, in days. */
const MAX_DAYS = 3_650
export const MEMORY_DAYS = 90

/** What a node that asks a model remembers from one execution to the next. */
export const memoryField = strictObject(
  described(
    {
      key: textField,
      messages: v.optional(wholeNumber(2, MAX_MESSAGES), MEMORY_MESSAGES),
      days: v.optional(wholeNumber(1, MAX_DAYS), MEMORY_DAYS),
      name: v.optional(v.pipe(textField, v.maxLength(100, 'must have at most 100 characters'))),
    },
    {
      key: 'Whose conversation it is: with the same key the model is told what was said before.',
      messages: 'How many of the newest messages the model is told, questions and answers.',
      days: 'For how many days what was said is kept.',
      name: 'Nodes of the workflow that give the same name share their memories. Without it a node has its own.',
    },
  ),
)
export type NodeMemory = v.InferOutput<typeof memoryField>

export const MEMORY =
  'What it remembers from one execution to the next; in a chat, the node that replies remembers the chat instead.'
