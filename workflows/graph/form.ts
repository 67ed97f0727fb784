import * as v from 'valibot'
import { described, refuseArrays, strictObject, strictRecord } from '../object.ts'

const MAX_FIELDS = 100
const MAX_TEXT = 10_000

const label = v.pipe(v.string('must be a string'), v.maxLength(1_000, 'must have at most 1000 characters'))
const size = v.pipe(
  v.number('must be a number'),
  v.integer('must be a whole number'),
  v.minValue(0, 'must not be negative'),
)
const bound = v.pipe(v.number('must be a number'), v.finite('must be finite'))
const choices = v.pipe(
  v.array(v.union([v.string(), v.number(), v.boolean()]), 'must be an array'),
  v.minLength(1, 'must not be empty'),
  v.maxLength(200, 'must have at most 200 entries'),
)
const TYPES = ['string', 'number', 'integer', 'boolean', 'array'] as const
const FORMATS = ['email', 'date', 'date-time', 'uri', 'multiline'] as const

const KEYWORDS = described(
  {
    type: v.optional(v.picklist(TYPES, `must be one of ${TYPES.join(', ')}`)),
    title: v.optional(label),
    description: v.optional(label),
    default: v.optional(v.unknown()),
    enum: v.optional(choices),
    format: v.optional(v.picklist(FORMATS, `must be one of ${FORMATS.join(', ')}`)),
    minLength: v.optional(size),
    maxLength: v.optional(size),
    minimum: v.optional(bound),
    maximum: v.optional(bound),
  },
  {
    type: 'What is filled in: a text, a number, yes or no, or a list.',
    title: 'What the field is called.',
    description: 'What is said about the field.',
    default: 'What stands in the field at first.',
    enum: 'The values of which one is chosen.',
    format: 'What a text must be: an e-mail address, a date ... multiline has several lines.',
    minLength: 'The fewest characters.',
    maxLength: 'The most characters.',
    minimum: 'The least number.',
    maximum: 'The greatest number.',
  },
)

const Field = only(KEYWORDS)
type Field = v.InferOutput<typeof Field>

/**
 * The fields of a form, in the part of JSON Schema that a form can show. Other keywords are refused, not
 * dropped, because nothing would check them.
 */
export const formSchema = v.pipe(
  only(
    described(
      {
        type: v.optional(v.literal('object', 'must be object')),
        title: v.optional(label),
        description: v.optional(label),
        properties: v.pipe(
          strictRecord(Field, v.pipe(v.string(), v.maxLength(100, 'must have at most 100 characters'))),
          v.check(
            (fields) => Object.keys(fields).length <= MAX_FIELDS,
            `must have at most ${MAX_FIELDS} fields`,
          ),
        ),
        required: v.optional(v.array(v.string('must be a string'), 'must be an array'), []),
      },
      {
        type: 'A form is an object.',
        title: 'What stands above the form.',
        description: 'What is said about the form.',
        properties: 'The fields, by their names.',
        required: 'The names of the fields that must be filled in.',
      },
    ),
  ),
  v.forward(
    v.check(
      ({ properties, required }) => required.every((name) => Object.hasOwn(properties, name)),
      'must only name fields of the form',
    ),
    ['required'],
  ),
)

export type Form = v.InferOutput<typeof formSchema>

/**
 * The schema of a form's values: one parse finds all that is wrong with a response. Drops fields that the
 * form lacks.
 */
export function readForm({ properties, required }: Form) {
  const entries = Object.entries(properties).map(([name, field]) => {
    const schema = describeField(field)
    if (field.default !== undefined) return [name, v.optional(schema, field.default as string)]
    return [name, required.includes(name) ? schema : v.optional(schema)]
  })
  return strictObject(Object.fromEntries(entries) as Record<string, v.GenericSchema>)
}

function describeField(field: Field): v.GenericSchema {
  const one = field.enum
    ? v.picklist(field.enum as string[], `must be one of ${field.enum.join(', ')}`)
    : describeType(field)
  if (field.type !== 'array') return one
  return v.pipe(v.array(one, 'must be an array'), v.maxLength(1_000, 'must have at most 1000 entries'))
}

function describeType({ type, format, minLength, maxLength, minimum, maximum }: Field): v.GenericSchema {
  if (type === 'boolean') return v.boolean('must be true or false')
  if (type === 'number' || type === 'integer') {
    return v.pipe(
      v.number('must be a number'),
      v.check((value) => type === 'number' || Number.isSafeInteger(value), 'must be a whole number'),
      v.check((value) => minimum === undefined || value >= minimum, `must be at least ${minimum}`),
      v.check((value) => maximum === undefined || value <= maximum, `must be at most ${maximum}`),
    )
  }
  const least = minLength ?? 0
  const most = Math.min(maxLength ?? MAX_TEXT, MAX_TEXT)
  return v.pipe(
    v.string('must be a string'),
    v.check((value) => value.length >= least, `must have at least ${least} characters`),
    v.check((value) => value.length <= most, `must have at most ${most} characters`),
    v.check((value) => value === '' || hasFormat(value, format), `must have the format ${format}`),
  )
}

const FORMAT_SCHEMAS: Partial<Record<(typeof FORMATS)[number], v.GenericSchema>> = {
  email: v.pipe(v.string(), v.email()),
  date: v.pipe(v.string(), v.isoDate()),
  'date-time': v.pipe(v.string(), v.isoTimestamp()),
  uri: v.pipe(v.string(), v.url()),
}

function hasFormat(value: string, format: Field['format']): boolean {
  const schema = format && FORMAT_SCHEMAS[format]
  return !schema || v.is(schema, value)
}

/** The schema of an object that may have only these keys. */
function only<const E extends v.ObjectEntries>(entries: E) {
  return refuseArrays(
    v.strictObject(entries, ({ expected }) => {
      if (expected === 'Object') return 'must be an object'
      return expected === 'never' ? `must not be set; use ${Object.keys(entries).join(', ')}` : 'is required'
    }),
  )
}
