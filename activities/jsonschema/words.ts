const MAX_TEXT = 200

/** For what is the schema's own: a value that was checked is not quoted. */
export const cutShort = (text: string): string =>
  text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}...` : text

/** What a value must be to fit a keyword, with the keyword's own value. */
const SENTENCES: Record<string, (expected: unknown, value: unknown) => string> = {
  type: (expected) => `must be of the type ${[expected].flat().join(' or ')}`,
  enum: (expected) => `must be one of ${cutShort(JSON.stringify(expected))}`,
  const: (expected) => `must be ${cutShort(JSON.stringify(expected))}`,
  required: (expected, value) => `must have ${nameMissing(expected, value)}`,
  pattern: (expected) => `must match the pattern ${cutShort(JSON.stringify(expected))}`,
  format: (expected) => `must be a valid ${expected}`,
  minimum: (expected) => `must be at least ${expected}`,
  maximum: (expected) => `must be at most ${expected}`,
  exclusiveMinimum: (expected) => `must be more than ${expected}`,
  exclusiveMaximum: (expected) => `must be less than ${expected}`,
  multipleOf: (expected) => `must be a multiple of ${expected}`,
  minLength: (expected) => `must have at least ${expected} characters`,
  maxLength: (expected) => `must have at most ${expected} characters`,
  minItems: (expected) => `must have at least ${expected} entries`,
  maxItems: (expected) => `must have at most ${expected} entries`,
  minProperties: (expected) => `must have at least ${expected} properties`,
  maxProperties: (expected) => `must have at most ${expected} properties`,
  uniqueItems: () => 'must not have the same entry twice',
  contains: () => 'must have enough entries of the kind that the schema wants, and not too many',
  anyOf: () => 'fits none of the schemas that it may have',
  oneOf: () => 'must fit exactly one of the schemas that it may have',
  not: () => 'fits a schema that it must not fit',
  dependentRequired: () => 'lacks a property that goes with another one',
  dependencies: () => 'lacks what goes with another property',
}

function nameMissing(expected: unknown, value: unknown): string {
  const names = Array.isArray(expected) ? expected : []
  const missing = names
    .filter((name) => !Object.hasOwn(Object(value), name))
    .map((name) => JSON.stringify(name))
  return `the ${missing.length === 1 ? 'property' : 'properties'} ${cutShort(missing.join(', '))}`
}

/** Says what is wrong with a value, without quoting it. `expected` is undefined where the keyword's value is not known. */
export function describeMisfit(keyword: string, expected: unknown, value: unknown): string {
  if (expected === false && keyword !== 'const') return 'must not be there'
  const sentence = Object.hasOwn(SENTENCES, keyword) ? SENTENCES[keyword] : undefined
  return sentence && expected !== undefined
    ? sentence(expected, value)
    : `does not fit the schema (${keyword})`
}
