import * as v from 'valibot'
import { described, strictObject } from '../object.ts'
import { computed, credentialField, oneOf, textField } from './fields.ts'
import type { NodeType } from './nodetype.ts'

/** The most messages that a node sends before its prompt, files of one message, and models in the place of another. */
const MAX_MESSAGES = 200
export const MAX_ASKED_FILES = 20
const MAX_FALLBACKS = 5

/** Images and PDF files that a model is shown: values of files, or addresses that its vendor opens. */
export const askedFilesField = computed(
  v.pipe(
    v.array(v.unknown(), 'must be a list of files, or an expression in {{ }} that gives one'),
    v.maxLength(MAX_ASKED_FILES, `must have at most ${MAX_ASKED_FILES} entries`),
  ),
)

const messageField = v.pipe(
  strictObject(
    described(
      {
        role: oneOf('system', 'user', 'assistant'),
        content: v.optional(v.string('must be a string')),
        files: v.optional(askedFilesField),
      },
      {
        role: 'Whose words these are.',
        content: 'What is said.',
        files: 'Images or PDF files that the user shows with it.',
      },
    ),
  ),
  v.forward(
    v.check(
      ({ content, files }) => files !== undefined || (content !== undefined && content !== ''),
      'is required, unless there are files',
    ),
    ['content'],
  ),
  v.forward(
    v.check(({ role, files }) => files === undefined || role === 'user', 'are shown by the user only'),
    ['files'],
  ),
)

/** The conversation up to the prompt. */
export const messagesField = v.pipe(
  v.array(messageField, 'must be a list of messages'),
  v.maxLength(MAX_MESSAGES, `must have at most ${MAX_MESSAGES} entries`),
)
export type AskedMessage = v.InferOutput<typeof messageField>

/** Models that are asked, in their order, if the one before cannot answer. */
export const fallbacksField = v.pipe(
  v.array(
    strictObject(
      described(
        { credentialId: credentialField, model: textField },
        {
          credentialId: 'The vendor of that model, and how to sign in there.',
          model: 'The name of the model, as its vendor writes it.',
        },
      ),
    ),
    'must be a list of {credentialId, model}',
  ),
  v.maxLength(MAX_FALLBACKS, `must have at most ${MAX_FALLBACKS} entries`),
)
export type Fallback = v.InferOutput<typeof fallbacksField>[number]

export const listFallbackCredentials: NonNullable<NodeType['moreCredentials']> = ({ fallbacks }) =>
  Array.isArray(fallbacks)
    ? fallbacks.map((_, at) => ({ path: ['fallbacks', at, 'credentialId'], uses: ['LLM'] as const }))
    : []
