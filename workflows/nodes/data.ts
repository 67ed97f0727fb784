import * as v from 'valibot'
import { findTimezone } from '../graph/cron.ts'
import { strictObject } from '../object.ts'
import {
  anyObject,
  computed,
  conditionAt,
  credentialField,
  demandKeys,
  demandSecret,
  itemsField,
  labelField,
  nodeTypeRow,
  oneOf,
  textField,
  wholeNumber,
} from './fields.ts'
import { intoField } from './into.ts'

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

/** What is picked of a page: a CSS selector, or one with what is taken of its element. */
export const selection = v.union([
  labelField,
  strictObject({ selector: labelField, attribute: v.optional(labelField), all: v.optional(flag, false) }),
])

const pickFields = v.pipe(
  v.array(
    strictObject({
      key: labelField,
      selector: textField,
      take: oneOf('text', 'words', 'html', 'value', 'attribute'),
      attribute: v.optional(textField),
      skip: v.optional(textField),
      list: v.optional(flag),
    }),
    'must be an array',
  ),
  v.maxLength(200, 'must have at most 200 entries'),
)

const tableField = strictObject({
  plain: v.optional(flag),
  capitalize: v.optional(flag),
  caption: v.optional(textField),
  tableAttributes: v.optional(textField),
  headerAttributes: v.optional(textField),
  rowAttributes: v.optional(textField),
  cellAttributes: v.optional(textField),
})
export type HtmlTable = v.InferOutput<typeof tableField>

const setFields = v.pipe(
  v.array(
    strictObject({
      name: v.string('must be a string'),
      type: v.optional(
        oneOf('string', 'number', 'boolean', 'array', 'object', 'dateTime', 'any', 'truth'),
        'any',
      ),
      value: v.optional(v.unknown()),
    }),
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
      v.object({
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
        dots: v.optional(flag),
        ignoreErrors: v.optional(flag),
        nulls: v.optional(oneOf('keep', 'drop', 'refuse', 'text')),
      }),
      v.check(
        ({ values, fields, json }) => [values, fields, json].filter((one) => one !== undefined).length === 1,
        'must have either values, fields or json',
      ),
    ),
  }),
  TRANSFORM: nodeTypeRow('pure', {
    summary: 'Outputs the value of its one expression.',
    config: v.object({ expression: textField }),
    conditions: (config) => conditionAt('expression', config.expression),
  }),
  TEMPLATE: nodeTypeRow('pure', {
    summary: 'Outputs {text}: the text with its expressions filled in.',
    config: v.object({ text: textField }),
  }),
  DATE: nodeTypeRow('pure', {
    summary:
      'Reads, moves, compares and writes dates; outputs {date, local, epochMs, text} or {difference}. Formats ' +
      "are luxon's: yyyy-MM-dd HH:mm. Without a timezone, the workflow's is used, else UTC.",
    config: v.pipe(
      v.object({
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
      }),
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
    ),
  }),
  CRYPTO: nodeTypeRow('pure', {
    summary: 'Outputs {value}: a hash, an HMAC, a UUID, random bytes, or an encoded or decoded string.',
    config: v.pipe(
      v.object({
        operation: oneOf('hash', 'hmac', 'uuid', 'randomBytes', 'encode', 'decode'),
        value: v.optional(v.unknown()),
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
      }),
      demandKeys({ hash: ['value'], hmac: ['value'], encode: ['value'], decode: ['value'] }),
      demandSecret('secret', ({ operation }) => operation === 'hmac'),
    ),
    credentialUses: ['SIGNATURE'],
  }),
  RANDOM: nodeTypeRow('pure', {
    summary: 'Outputs {value}: a random whole number, fraction, UUID or item; or {items}, shuffled.',
    config: v.pipe(
      v.object({
        operation: oneOf('integer', 'float', 'uuid', 'pick', 'shuffle'),
        min: v.optional(computed(finite), 0),
        max: v.optional(computed(finite)),
        items: v.optional(computed(itemsField)),
      }),
      demandKeys({ integer: ['max'], pick: ['items'], shuffle: ['items'] }),
    ),
  }),
  CSV: nodeTypeRow('pure', {
    summary: 'Reads CSV into {items}, or writes items as {text}.',
    config: v.pipe(
      v.object({
        operation: oneOf('parse', 'format'),
        value: v.optional(textField),
        items: v.optional(computed(itemsField)),
        delimiter: v.optional(v.pipe(plain, v.length(1, 'must be one character')), ','),
        header: v.optional(flag, true),
        columns: v.optional(
          v.pipe(
            v.array(labelField, 'must be an array'),
            v.maxLength(1_000, 'must have at most 1000 entries'),
          ),
        ),
        escapeFormulas: v.optional(flag, false),
      }),
      demandKeys({ parse: ['value'], format: ['items'] }),
    ),
  }),
  JSON: nodeTypeRow('pure', {
    summary: 'Reads JSON into {value}, or writes a value as {text}.',
    config: v.pipe(
      v.object({
        operation: oneOf('parse', 'format'),
        value: v.optional(v.unknown()),
        indent: v.optional(wholeNumber(0, 10), 0),
      }),
      demandKeys({ parse: ['value'], format: ['value'] }),
    ),
  }),
  XML: nodeTypeRow('pure', {
    summary:
      'Reads XML into {value} (attributes under @name, text next to them under #text), or writes {text}.',
    config: v.pipe(
      v.object({
        operation: oneOf('parse', 'build', 'read', 'write'),
        value: v.optional(v.union([textField, anyObject], 'must be a string or an object')),
        source: v.optional(textField),
        options: v.optional(anyObject),
      }),
      demandKeys({ parse: ['value'], build: ['value'], read: ['source'], write: ['source'] }),
    ),
  }),
  HTML: nodeTypeRow('pure', {
    summary: 'Outputs the {text} of an HTML page, or {values} found by CSS selectors.',
    config: v.pipe(
      v.object({
        operation: oneOf('text', 'extract', 'pick', 'table', 'fromMarkdown', 'toMarkdown'),
        value: v.optional(textField),
        source: v.optional(textField),
        pick: v.optional(pickFields),
        trim: v.optional(flag),
        clean: v.optional(flag),
        table: v.optional(tableField),
        options: v.optional(anyObject),
        into: v.optional(intoField),
        fields: v.optional(
          v.pipe(
            anyObject,
            v.check(
              (fields) => Object.values(fields).every((wanted) => v.is(selection, wanted)),
              'must give each name a CSS selector or {selector, attribute, all}',
            ),
          ),
        ),
      }),
      demandKeys({
        text: ['value'],
        extract: ['value', 'fields'],
        pick: ['source', 'pick'],
        fromMarkdown: ['value', 'into'],
        toMarkdown: ['value', 'into'],
      }),
    ),
  }),
} as const
