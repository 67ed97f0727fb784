import * as v from 'valibot'
import { checkJsonSchema } from '../jsonschema/schema.ts'
import { described, strictObject } from '../object.ts'
import { askedFilesField, fallbacksField, listFallbackCredentials, messagesField } from './conversation.ts'
import {
  computed,
  credentialField,
  labelField,
  nodeTypeRow,
  oneOf,
  textField,
  wholeNumber,
} from './fields.ts'
import { INTO, intoField } from './into.ts'
import { MEMORY, memoryField } from './nodememory.ts'

/** The handle of a CLASSIFY for what fits none of its categories. */
export const OTHER = 'other'

/** The parts of a long text that a SUMMARIZE takes, at most. */
export const MAX_PARTS = 200

const MAX_CATEGORIES = 100

/** The range that all vendors of models allow. */
export const temperatureField = v.pipe(
  v.number('must be a number'),
  v.minValue(0, 'must be at least 0'),
  v.maxValue(2, 'must be at most 2'),
)

export const maxTokensField = wholeNumber(1, 1_000_000)

const withSchemaFaults = v.rawCheck<Record<string, unknown>>(({ dataset, addIssue }) => {
  if (!dataset.typed) return
  const { value } = dataset
  const isOne = value.type === 'object' || value.type === 'array'
  const own = isOne
    ? []
    : [{ path: 'type', message: 'must be object, or array: models answer with objects or lists' }]
  for (const { path, message } of [...checkJsonSchema(value), ...own]) {
    if (path === '') addIssue({ message })
    else {
      const item = { type: 'object', origin: 'value', input: value, key: path, value: undefined } as const
      addIssue({ message, path: [item as unknown as v.ObjectPathItem] })
    }
  }
})

/** A JSON Schema of an object, or of a list. Texts in it may have expressions. */
export const answerSchemaField = v.pipe(
  v.custom<Record<string, unknown>>(
    (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
    'must be a JSON Schema, which is an object',
  ),
  withSchemaFaults,
)

const categoryName = v.pipe(
  labelField,
  v.maxLength(100, 'must have at most 100 characters'),
  v.regex(/^[^[\s].*$/u, 'must not begin with a space or a bracket'),
  v.check((name) => !name.includes('\0') && name.isWellFormed(), 'must not contain NUL or broken Unicode'),
)

const categoriesField = v.pipe(
  v.array(
    strictObject(
      described(
        { name: categoryName, description: v.optional(textField) },
        {
          name: 'The category, and the output by which its texts leave.',
          description: 'Tells the model what belongs in.',
        },
      ),
    ),
    'must be an array',
  ),
  v.minLength(1, 'must not be empty'),
  v.maxLength(MAX_CATEGORIES, `must have at most ${MAX_CATEGORIES} entries`),
  v.check(
    (categories) => new Set(categories.map(({ name }) => name)).size === categories.length,
    'must not name a category twice',
  ),
  v.check(
    (categories) => categories.every(({ name }) => name !== OTHER),
    `must not name the handle ${OTHER}, which every CLASSIFY has already`,
  ),
)
export type Category = v.InferOutput<typeof categoriesField>[number]

const asked = { credentialId: credentialField, model: textField }

/** What these two say about themselves, in every node that asks a model. */
export const ASKED = {
  credentialId: 'The vendor of the model, and how to sign in there.',
  model: 'The name of the model, as its vendor writes it.',
}

const MORE_INSTRUCTIONS = 'More for the model, in your words.'

/** A vendor that cannot answer now, or says that it has too much to do, often can some seconds later. */
const MODEL_CALL = {
  credentialUses: ['LLM'],
  retry: { maxAttempts: 3, initialIntervalMs: 1_000, backoffCoefficient: 2, maxIntervalMs: 30_000 },
  timeoutMs: 300_000,
  queue: 'models',
} as const

/** Node types that ask a model. Each call is noted with its tokens and its cost. */
export const MODEL_NODES = {
  LLM: nodeTypeRow('effect', {
    summary: 'Asks a model; outputs {text}, or with a JSON Schema an object or a list that fits it.',
    config: v.pipe(
      v.object(
        described(
          {
            ...asked,
            system: v.optional(v.string('must be a string')),
            messages: v.optional(messagesField),
            prompt: v.optional(textField),
            files: v.optional(askedFilesField),
            temperature: v.optional(computed(temperatureField)),
            maxTokens: v.optional(computed(maxTokensField)),
            output: v.optional(oneOf('text', 'json'), 'text'),
            schema: v.optional(computed(answerSchemaField)),
            fallbacks: v.optional(fallbacksField),
            memory: v.optional(memoryField),
            into: v.optional(intoField),
            reply: v.optional(v.boolean('must be true or false')),
          },
          {
            ...ASKED,
            system: 'Who the model is, and how it is to answer.',
            messages: 'What was said before the prompt, in its order.',
            prompt: 'What the model is asked.',
            files: 'Images or PDF files that the model is shown with the prompt: files, or their addresses.',
            temperature: 'How freely it answers: 0 is strict.',
            maxTokens: 'The most tokens that the answer may have.',
            output: 'Whether it answers with a text, or with an object or a list.',
            schema: 'The JSON Schema of the object or the list. Without it any object.',
            fallbacks: 'Models that are asked in its place, in their order, if it cannot answer.',
            memory: MEMORY,
            into: INTO,
            reply: 'In a chat, the text of this node is the reply.',
          },
        ),
      ),
      v.forward(
        v.check(
          ({ output, schema }) => output === 'json' || schema === undefined,
          'is for the output json: set output, or leave the schema out',
        ),
        ['schema'],
      ),
      v.forward(
        v.check(
          ({ prompt, messages }) => prompt !== undefined || (messages ?? []).length > 0,
          'is required, unless there are messages',
        ),
        ['prompt'],
      ),
      v.forward(
        v.check(
          ({ prompt, files }) => prompt !== undefined || files === undefined,
          'are shown with the prompt: without one they belong to a message',
        ),
        ['files'],
      ),
    ),
    main: ['credentialId', 'model', 'system', 'prompt', 'output', 'schema'],
    moreCredentials: listFallbackCredentials,
    ...MODEL_CALL,
  }),
  CLASSIFY: nodeTypeRow('effect', {
    summary: 'Has a model choose a category for a text; passes its input on by the handle of that name.',
    config: v.object(
      described(
        {
          ...asked,
          input: textField,
          categories: categoriesField,
          instructions: v.optional(v.string('must be a string')),
          multiple: v.optional(v.boolean('must be true or false'), false),
          fallback: v.optional(v.boolean('must be true or false'), true),
          into: v.optional(intoField),
        },
        {
          ...ASKED,
          input: 'The text.',
          categories: 'What the model chooses from.',
          instructions: MORE_INSTRUCTIONS,
          multiple: 'All categories that fit, each by its output.',
          fallback: 'What fits none leaves by other. Off: the model has to choose a category.',
          into: 'Puts the category into a field of what is passed on.',
        },
      ),
    ),
    main: ['credentialId', 'model', 'input', 'categories', 'instructions'],
    // If the node works on items, failed ones leave by the last handle: it must not be that of a category.
    handles: ({ categories }) => [
      ...(Array.isArray(categories) ? categories.map((one) => String(one?.name)) : []),
      OTHER,
    ],
    ...MODEL_CALL,
  }),
  EXTRACT: nodeTypeRow('effect', {
    summary: 'Has a model find data in a text; outputs an object or a list that fits a JSON Schema.',
    config: v.object(
      described(
        {
          ...asked,
          input: textField,
          schema: computed(answerSchemaField),
          instructions: v.optional(v.string('must be a string')),
          into: v.optional(intoField),
        },
        {
          ...ASKED,
          input: 'The text.',
          schema:
            'The JSON Schema of what is found, an object or a list. The descriptions of its properties help the model.',
          instructions: MORE_INSTRUCTIONS,
          into: INTO,
        },
      ),
    ),
    main: ['credentialId', 'model', 'input', 'schema', 'instructions'],
    ...MODEL_CALL,
  }),
  SUMMARIZE: nodeTypeRow('agent', {
    summary: 'Has a model summarize a text, a long one in parts, each a step of its own; outputs {text}.',
    config: v.object(
      described(
        {
          ...asked,
          input: textField,
          instructions: v.optional(v.string('must be a string')),
          maxTokens: v.optional(computed(maxTokensField)),
          into: v.optional(intoField),
          style: v.optional(oneOf('paragraphs', 'bullets', 'sentence'), 'paragraphs'),
        },
        {
          ...ASKED,
          input: 'The text.',
          instructions: 'More for the model: for whom the summary is, how long it is to be.',
          maxTokens: 'The most tokens that an answer of the model may have.',
          into: INTO,
          style: 'What the summary looks like.',
        },
      ),
    ),
    main: ['credentialId', 'model', 'input', 'style', 'instructions'],
    ...MODEL_CALL,
  }),
} as const
