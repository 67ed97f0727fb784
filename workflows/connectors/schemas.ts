import type { ActionSchema } from './connector.ts'

/** The pieces of which the tables in `vendors/` write their inputs. Each has a title and a sentence: forms show them. */
type More = ActionSchema

const of =
  (own: ActionSchema) =>
  (title: string, description: string, more: More = {}): ActionSchema => ({
    ...own,
    title,
    description,
    ...more,
  })

export const textInput = of({ type: 'string' })
/** A text that must not be empty, such as an id. */
export const nameInput = of({ type: 'string', minLength: 1 })
export const flagInput = of({ type: 'boolean' })
export const wholeNumberInput = of({ type: 'integer' })
/** An object of any keys. */
export const recordInput = of({ type: 'object' })
/** A value of any type. */
export const anythingInput = of({})
/** A file of the execution. */
export const fileInput = of({ type: 'object', 'x-file': true })

/** One of some values; `labels` say what they mean, in their order. */
export function choiceInput(
  values: string[],
  title: string,
  description: string,
  labels?: string[],
): ActionSchema {
  return { type: 'string', enum: values, title, description, ...(labels ? { 'x-labels': labels } : {}) }
}

/** One that has this value unless another is given. */
export const usually = (value: unknown, schema: ActionSchema): ActionSchema => ({
  ...schema,
  ...{ default: value, 'x-filled': true },
})

/** A list of entries; one that is no list is taken as a list of one where the form of the action says so. */
export function listInput(
  items: ActionSchema,
  title: string,
  description: string,
  more: More = {},
): ActionSchema {
  return { type: 'array', items, title, description, ...more }
}

export function objectInput(
  properties: Record<string, ActionSchema>,
  required: string[] = [],
  more: More = {},
): ActionSchema {
  return { type: 'object', properties, required, additionalProperties: false, ...more }
}

/** How many entries are read at most. */
export const limitInput = (most = 10_000): ActionSchema =>
  wholeNumberInput('Limit', 'How many at most. Without it all, up to 10,000.', { minimum: 1, maximum: most })
