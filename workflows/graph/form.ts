import * as v from 'valibot'
import { MAX_FILE_BYTES, MAX_RUN_FILES } from '../nodes/files.ts'
import { described, refuseArrays, strictObject, strictRecord } from '../object.ts'

const MAX_FIELDS = 100
const MAX_TEXT = 10_000
const MAX_ENTRIES = 1_000

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
const suffix = v.pipe(
  v.string('must be a string'),
  v.regex(
    /^(\.[A-Za-z0-9]{1,20}|[a-z]+\/(\*|[a-z0-9.+-]{1,80}))$/,
    'must be an extension such as .pdf, or a type such as image/*',
  ),
)
const accepted = v.pipe(
  v.array(suffix, 'must be an array'),
  v.minLength(1, 'must not be empty'),
  v.maxLength(50, 'must have at most 50 entries'),
)
const fileSize = v.pipe(
  size,
  v.minValue(1, 'must be at least 1'),
  v.maxValue(MAX_FILE_BYTES, `must be at most ${MAX_FILE_BYTES}`),
)
const TYPES = ['string', 'number', 'integer', 'boolean', 'array', 'file'] as const
const FORMATS = ['email', 'date', 'date-time', 'uri', 'multiline', 'password'] as const
const LOOKS = ['radio', 'checkboxes', 'hidden', 'note'] as const

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
    minItems: v.optional(size),
    maxItems: v.optional(size),
    show: v.optional(v.picklist(LOOKS, `must be one of ${LOOKS.join(', ')}`)),
    placeholder: v.optional(label),
    accept: v.optional(accepted),
    maxBytes: v.optional(fileSize),
    multiple: v.optional(v.boolean('must be true or false')),
  },
  {
    type: 'What is filled in: a text, a number, yes or no, a list, or a file.',
    title: 'What the field is called.',
    description: 'What is said about the field.',
    default: 'What stands in the field at first.',
    enum: 'The values of which one is chosen.',
    format:
      'What a text must be: an e-mail address, a date ... multiline has several lines, password is not shown.',
    minLength: 'The fewest characters.',
    maxLength: 'The most characters.',
    minimum: 'The least number.',
    maximum: 'The greatest number.',
    minItems: 'The fewest values of a list, or files.',
    maxItems: 'The most values of a list, or files.',
    show: 'How it looks: one of the values as radio buttons, several as checkboxes, hidden, or only a note to read.',
    placeholder: 'What an empty field shows as an example.',
    accept: 'The files that are taken: extensions such as .pdf, or types such as image/*.',
    maxBytes: 'The most bytes of a file.',
    multiple: 'Whether several files may be given.',
  },
)

const Field = v.pipe(
  only(KEYWORDS),
  v.rawCheck(({ dataset, addIssue }) => {
    if (!dataset.typed) return
    for (const [key, message] of findMisfits(dataset.value)) {
      const path = { type: 'object', origin: 'value', input: dataset.value, key, value: undefined } as const
      addIssue({ message, path: [path as v.ObjectPathItem] })
    }
  }),
)
export type FormField = v.InferOutput<typeof Field>

/** The keywords of a field that contradict each other: nothing would check them, or nothing could be filled in. */
function* findMisfits(field: v.InferOutput<ReturnType<typeof only<typeof KEYWORDS>>>) {
  const { type, show } = field
  const isFile = type === 'file'
  for (const key of ['accept', 'maxBytes', 'multiple'] as const)
    if (field[key] !== undefined && !isFile) yield [key, 'is only for a field of the type file'] as const
  for (const key of ['minItems', 'maxItems'] as const)
    if (field[key] !== undefined && type !== 'array' && !field.multiple)
      yield [key, 'is only for a list, or several files'] as const
  if ((field.minItems ?? 0) > (field.maxItems ?? Number.POSITIVE_INFINITY))
    yield ['maxItems', 'must not be less than minItems'] as const
  if (isFile)
    for (const key of ['enum', 'default', 'format'] as const)
      if (field[key] !== undefined) yield [key, 'cannot be set for a file'] as const
  if (show === 'radio' && (!field.enum || type === 'array'))
    yield ['show', 'radio needs an enum, of which one value is chosen'] as const
  if (show === 'checkboxes' && (!field.enum || type !== 'array'))
    yield ['show', 'checkboxes need the type array and an enum'] as const
  if (show === 'hidden' && isFile) yield ['show', 'a file cannot be hidden'] as const
}

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

/** The fields of a form that have a value: a note has none. */
export function listFields({ properties }: Form): [name: string, field: FormField][] {
  return Object.entries(properties).filter(([, { show }]) => show !== 'note')
}

/**
 * The schema of a form's values: one parse finds all that is wrong with a response. Drops fields that the
 * form lacks.
 */
export function readForm(form: Form) {
  const { required } = form
  const entries = listFields(form).map(([name, field]) => {
    const schema = describeField(field)
    if (field.default !== undefined) return [name, v.optional(schema, field.default as string)]
    return [name, required.includes(name) ? schema : v.optional(schema)]
  })
  return strictObject(Object.fromEntries(entries) as Record<string, v.GenericSchema>)
}

function describeField(field: FormField): v.GenericSchema {
  const { type, multiple } = field
  const one = field.enum
    ? v.picklist(field.enum as string[], `must be one of ${field.enum.join(', ')}`)
    : type === 'file'
      ? describeFile(field)
      : describeType(field)
  if (type !== 'array' && !multiple) return one
  const least = field.minItems ?? 0
  const most = Math.min(field.maxItems ?? MAX_ENTRIES, type === 'file' ? MAX_RUN_FILES : MAX_ENTRIES)
  return v.pipe(
    v.array(one, 'must be an array'),
    v.check((list) => list.length >= least, `must have at least ${countOf(least)}`),
    v.check((list) => list.length <= most, `must have at most ${countOf(most)}`),
  )
}

function countOf(entries: number): string {
  return entries === 1 ? 'one entry' : `${entries} entries`
}

const FileFacts = v.object({
  file: v.object({
    id: v.pipe(v.string(), v.uuid()),
    name: v.string(),
    mimeType: v.string(),
    bytes: v.number(),
  }),
})

/** A file that was stored before: its value is `{file: {id, name, mimeType, bytes}}`. */
function describeFile({ accept, maxBytes }: FormField): v.GenericSchema {
  return v.pipe(
    v.custom<v.InferOutput<typeof FileFacts>>((value) => v.is(FileFacts, value), 'must be a file'),
    v.check(({ file }) => isAccepted(file, accept), `must be a file of the type ${accept?.join(', ')}`),
    v.check(({ file }) => file.bytes <= (maxBytes ?? MAX_FILE_BYTES), `must have at most ${maxBytes} bytes`),
  )
}

function isAccepted({ name, mimeType }: { name: string; mimeType: string }, accept?: string[]): boolean {
  if (!accept) return true
  const type = mimeType.split(';')[0]!.trim().toLowerCase()
  return accept.some((one) => {
    if (one.startsWith('.')) return name.toLowerCase().endsWith(one.toLowerCase())
    return one.endsWith('/*') ? type.startsWith(one.slice(0, -1)) : type === one
  })
}

function describeType({ type, format, minLength, maxLength, minimum, maximum }: FormField): v.GenericSchema {
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

function hasFormat(value: string, format: FormField['format']): boolean {
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
