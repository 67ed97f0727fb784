import * as v from 'valibot'
import { findTimezone } from '../cron/zones.ts'
import { described, strictObject } from '../object.ts'
import { findFormatFault } from './dateformats.ts'
import {
  anyObject,
  computed,
  conditionAt,
  credentialField,
  demandKeys,
  demandSecret,
  itemsField,
  nodeTypeRow,
  oneOf,
  textField,
  usuallyOn,
  wholeNumber,
} from './fields.ts'
import { INTO, intoField } from './into.ts'

const flag = v.boolean('must be true or false')
const plain = v.string('must be a string')

/** Units of time, in singular and plural; luxon accepts all of them. */
export const timeUnitField = oneOf(
  ...(
    ['year', 'quarter', 'month', 'week', 'day', 'hour', 'minute', 'second', 'millisecond'] as const
  ).flatMap((name) => [name, `${name}s` as const]),
)

const encoding = oneOf('hex', 'base64', 'base64url')
// JSON has no NaN and no infinity.
const finite = v.pipe(v.number('must be a number'), v.finite('must be finite'))

const timezone = v.pipe(
  textField,
  v.check((name) => findTimezone(name) !== undefined, 'must be a time zone such as Europe/Berlin'),
)
const date = v.union([finite, textField], 'must be a date')

const setFields = v.pipe(
  v.array(
    strictObject(
      described(
        {
          name: v.string('must be a string'),
          type: v.optional(
            oneOf('string', 'number', 'boolean', 'array', 'object', 'dateTime', 'any', 'truth', 'file'),
            'any',
          ),
          value: v.optional(v.unknown()),
        },
        {
          name: 'The name of the field.',
          type: 'What the value is converted to; any leaves it as it is. With file it is a file, or names one of the item.',
          value: 'The value.',
        },
      ),
    ),
    'must be an array',
  ),
  v.maxLength(500, 'must have at most 500 entries'),
)
export type SetField = v.InferOutput<typeof setFields>[number]

/** Node types that compute values. */
export const DATA_NODES = {
  SET: nodeTypeRow('pure', {
    summary: 'Outputs exactly its values.',
    config: v.pipe(
      v.object(
        described(
          {
            values: v.optional(anyObject),
            fields: v.optional(setFields),
            json: v.optional(
              v.union(
                [textField, anyObject, v.array(v.string())],
                'must be a string, an object or pieces of a string',
              ),
            ),
            include: v.optional(oneOf('none', 'all', 'selected', 'except')),
            names: v.optional(v.union([v.string(), v.array(v.string())], 'must be names')),
            dots: v.optional(usuallyOn),
            ignoreErrors: v.optional(flag),
            nulls: v.optional(oneOf('keep', 'drop', 'refuse', 'text')),
            files: v.optional(flag),
          },
          {
            values: 'The keys of the output and their values.',
            fields: 'Fields with a type that their values are converted to, in place of values.',
            json: 'An object, or a text that gives one, in place of values.',
            include: 'With fields or json: which fields of the item are kept.',
            names: 'With include selected or except: the names of these fields.',
            dots: 'Whether names with dots lead into objects.',
            ignoreErrors: 'A value that cannot be converted stays as it is, and the node does not fail.',
            nulls:
              'What becomes of a field without a value: it is kept as null, left out, refused, or written as a text.',
            files:
              'With fields or json: whether the files of the item are kept. Without it with include all.',
          },
        ),
      ),
      v.check(
        ({ values, fields, json }) => [values, fields, json].filter((one) => one !== undefined).length === 1,
        'must have either values, fields or json',
      ),
    ),
    main: ['values'],
  }),
  TRANSFORM: nodeTypeRow('pure', {
    main: ['expression'],
    summary: 'Outputs the value of its one expression.',
    config: v.object(
      described({ expression: textField }, { expression: 'One expression; its value is the output.' }),
    ),
    conditions: (config) => conditionAt('expression', config.expression),
  }),
  TEMPLATE: nodeTypeRow('pure', {
    main: ['text'],
    summary: 'Outputs {text}: the text with its expressions filled in.',
    config: v.object(described({ text: textField }, { text: 'The text; what stands in {{ }} is computed.' })),
  }),
  DATE: nodeTypeRow('pure', {
    summary:
      'Reads, moves, compares and writes dates; outputs {date, local, epochMs, text} or {difference}. Formats ' +
      "are luxon's: yyyy-MM-dd HH:mm. Without a timezone, the workflow's is used, else UTC.",
    config: v.pipe(
      v.object(
        described(
          {
            operation: oneOf(
              ...([
                'now',
                'parse',
                'format',
                'add',
                'subtract',
                'startOf',
                'endOf',
                'difference',
                'roundUp',
                'extract',
              ] as const),
            ),
            into: v.optional(intoField),
            units: v.optional(v.array(plain, 'must be an array')),
            iso: v.optional(flag),
            midnight: v.optional(flag),
            utc: v.optional(flag),
            value: v.optional(date),
            format: v.optional(textField),
            inputFormat: v.optional(textField),
            amount: v.optional(computed(finite)),
            unit: v.optional(computed(timeUnitField)),
            from: v.optional(date),
            to: v.optional(date),
            timezone: v.optional(computed(timezone)),
            locale: v.optional(textField, 'en'),
          },
          {
            operation: 'What is done with the date.',
            into: 'Puts a text or a number into a field of the item, in place of the usual output.',
            units: 'With into, of a difference: its units.',
            iso: 'With into, of a difference: writes it as a text such as P3D.',
            midnight: 'With into, of now: the begin of the day.',
            utc: 'With into, of add and subtract: writes the date in UTC.',
            value: 'The date: ISO 8601, the forms of SQL, mail and HTTP, or epoch milliseconds.',
            format: 'How the text is written, such as yyyy-MM-dd HH:mm.',
            inputFormat: 'How the date is written, if in another form: dd.MM.yyyy.',
            amount: 'How much is added or subtracted.',
            unit: 'The unit of time.',
            from: 'The earlier date.',
            to: 'The later date.',
            timezone: "Such as Europe/Berlin. Without it the workflow's, else UTC.",
            locale: 'The language of the names of months and days.',
          },
        ),
      ),
      demandKeys({
        parse: ['value'],
        format: ['value', 'format'],
        add: ['value', 'amount', 'unit'],
        subtract: ['value', 'amount', 'unit'],
        startOf: ['value', 'unit'],
        endOf: ['value', 'unit'],
        difference: ['from', 'to', 'unit'],
        roundUp: ['value', 'unit', 'into'],
        extract: ['value', 'unit', 'into'],
      }),
      v.rawCheck(({ dataset, addIssue }) => {
        // With into the node does what n8n does, which writes what it does not understand.
        if (!dataset.typed || dataset.value.into !== undefined) return
        for (const key of ['format', 'inputFormat'] as const) {
          const given = dataset.value[key]
          if (given === undefined || given.includes('{{') || given.startsWith('=')) continue
          const message = findFormatFault(given)
          const path = { type: 'object', origin: 'value', input: dataset.value, key, value: given } as const
          if (message) addIssue({ message, path: [path] })
        }
      }),
    ),
    main: ['operation'],
    mainBy: {
      key: 'operation',
      keys: {
        now: ['format', 'timezone'],
        parse: ['value', 'inputFormat', 'timezone'],
        format: ['value', 'format', 'timezone', 'locale'],
        add: ['value', 'amount', 'unit'],
        subtract: ['value', 'amount', 'unit'],
        startOf: ['value', 'unit', 'timezone'],
        endOf: ['value', 'unit', 'timezone'],
        difference: ['from', 'to', 'unit'],
        roundUp: ['value', 'unit', 'into'],
        extract: ['value', 'unit', 'into'],
      },
    },
  }),
  CRYPTO: nodeTypeRow('pure', {
    summary: 'Outputs {value}: a hash, an HMAC, a UUID, random bytes, or an encoded or decoded string.',
    config: v.pipe(
      v.object(
        described(
          {
            operation: oneOf('hash', 'hmac', 'uuid', 'randomBytes', 'encode', 'decode'),
            value: v.optional(v.unknown()),
            file: v.optional(
              v.union([textField, anyObject], 'must be a file or an expression that gives one'),
            ),
            algorithm: v.optional(
              oneOf('md5', 'sha1', 'sha256', 'sha384', 'sha512', 'sha3-256', 'sha3-384', 'sha3-512'),
              'sha256',
            ),
            secret: v.optional(textField),
            credentialId: v.optional(credentialField),
            encoding: v.optional(encoding),
            size: v.optional(computed(wholeNumber(1, 65_536)), 32),
            chars: v.optional(computed(wholeNumber(1, 65_536))),
            into: v.optional(intoField),
          },
          {
            operation: 'What is made.',
            value: 'What is hashed, encoded or decoded: a text counts as UTF-8, anything else as its JSON.',
            file: 'A file whose bytes are hashed, in place of a value.',
            algorithm: 'The hash.',
            secret:
              'The secret of an HMAC, if it is an expression. Better: a credential, which is stored sealed.',
            credentialId: 'A credential that has the secret of an HMAC.',
            encoding: 'How bytes are written. Without it hex; base64 to encode and decode.',
            size: 'How many random bytes.',
            chars: 'Cuts the random bytes to as many characters.',
            into: INTO,
          },
        ),
      ),
      demandKeys({ encode: ['value'], decode: ['value'] }),
      v.check(
        ({ operation, value, file }) =>
          (operation !== 'hash' && operation !== 'hmac') || (value === undefined) !== (file === undefined),
        'must have either value or file for the operations hash and hmac',
      ),
      demandSecret('secret', ({ operation }) => operation === 'hmac'),
    ),
    main: ['operation'],
    mainBy: {
      key: 'operation',
      keys: {
        hash: ['value', 'algorithm', 'encoding'],
        hmac: ['value', 'algorithm', 'credentialId', 'secret', 'encoding'],
        randomBytes: ['size', 'encoding'],
        encode: ['value', 'encoding'],
        decode: ['value', 'encoding'],
      },
    },
    credentialUses: ['SIGNATURE'],
    stores: ({ file }) => file !== undefined,
  }),
  RANDOM: nodeTypeRow('pure', {
    summary: 'Outputs {value}: a random whole number, fraction, UUID or item; or {items}, shuffled.',
    config: v.pipe(
      v.object(
        described(
          {
            operation: oneOf('integer', 'float', 'uuid', 'pick', 'shuffle'),
            min: v.optional(computed(finite), 0),
            max: v.optional(computed(finite)),
            items: v.optional(computed(itemsField)),
          },
          {
            operation:
              'What is drawn: a whole number, a fraction, a UUID, an item, or all items in another order.',
            min: 'The least number.',
            max: 'The greatest number; a fraction stays below it.',
            items: 'What is picked from, or shuffled.',
          },
        ),
      ),
      demandKeys({ integer: ['max'], pick: ['items'], shuffle: ['items'] }),
    ),
    main: ['operation'],
    mainBy: {
      key: 'operation',
      keys: { integer: ['min', 'max'], float: ['min', 'max'], pick: ['items'], shuffle: ['items'] },
    },
  }),
} as const
