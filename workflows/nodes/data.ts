import * as v from 'valibot'
import { findTimezone } from '../cron.ts'
import { object } from '../object.ts'
import {
  choice,
  computed,
  conditionAt,
  demandKeys,
  items,
  label,
  node,
  record,
  text,
  whole,
} from './fields.ts'

const flag = v.boolean('must be true or false')
const plain = v.string('must be a text')

/** Of dates, in both numbers; luxon takes them as they are. */
export const unit = choice(
  ...(
    ['year', 'quarter', 'month', 'week', 'day', 'hour', 'minute', 'second', 'millisecond'] as const
  ).flatMap((name) => [name, `${name}s` as const]),
)

const encoding = choice('hex', 'base64', 'base64url')
// JSON has no other numbers.
const finite = v.pipe(v.number('must be a number'), v.finite('must be finite'))

const timezone = v.pipe(
  text,
  v.check((name) => findTimezone(name) !== undefined, 'must be a time zone such as Europe/Berlin'),
)
const date = v.union([finite, text], 'must be a date')

const selection = v.union([
  label,
  object({ selector: label, attribute: v.optional(label), all: v.optional(flag, false) }),
])

/** What makes values of values. */
export const DATA = {
  SET: node('pure', {
    summary: 'Outputs exactly its values.',
    config: v.object({ values: record }),
  }),
  TRANSFORM: node('pure', {
    summary: 'Outputs what its one expression makes of its input.',
    config: v.object({ expression: text }),
    conditions: (config) => conditionAt('expression', config.expression),
  }),
  TEMPLATE: node('pure', {
    summary: 'Outputs {text}: the text with its expressions filled in.',
    config: v.object({ text }),
  }),
  DATE: node('pure', {
    summary:
      'Reads, moves, compares and writes dates; outputs {date, local, epochMs, text} or {difference}. Formats are ' +
      "luxon's: yyyy-MM-dd HH:mm. Without a time zone the workflow's counts, else UTC.",
    config: v.pipe(
      v.object({
        operation: choice('now', 'parse', 'format', 'add', 'subtract', 'startOf', 'endOf', 'difference'),
        value: v.optional(date),
        format: v.optional(text),
        inputFormat: v.optional(text),
        amount: v.optional(computed(finite)),
        unit: v.optional(computed(unit)),
        from: v.optional(date),
        to: v.optional(date),
        timezone: v.optional(computed(timezone)),
        locale: v.optional(text, 'en'),
      }),
      demandKeys({
        parse: ['value'],
        format: ['value', 'format'],
        add: ['value', 'amount', 'unit'],
        subtract: ['value', 'amount', 'unit'],
        startOf: ['value', 'unit'],
        endOf: ['value', 'unit'],
        difference: ['from', 'to', 'unit'],
      }),
    ),
  }),
  CRYPTO: node('pure', {
    summary: 'Outputs {value}: a hash, an HMAC, a UUID, random bytes, or a text encoded or decoded.',
    config: v.pipe(
      v.object({
        operation: choice('hash', 'hmac', 'uuid', 'randomBytes', 'encode', 'decode'),
        value: v.optional(v.unknown()),
        algorithm: v.optional(choice('md5', 'sha1', 'sha256', 'sha384', 'sha512'), 'sha256'),
        secret: v.optional(text),
        encoding: v.optional(encoding),
        size: v.optional(computed(whole(1, 65_536)), 32),
      }),
      demandKeys({ hash: ['value'], hmac: ['value', 'secret'], encode: ['value'], decode: ['value'] }),
    ),
  }),
  RANDOM: node('pure', {
    summary: 'Outputs {value}: a random whole number, fraction, UUID, one of its items, or {items} shuffled.',
    config: v.pipe(
      v.object({
        operation: choice('integer', 'float', 'uuid', 'pick', 'shuffle'),
        min: v.optional(computed(finite), 0),
        max: v.optional(computed(finite)),
        items: v.optional(computed(items)),
      }),
      demandKeys({ integer: ['max'], pick: ['items'], shuffle: ['items'] }),
    ),
  }),
  CSV: node('pure', {
    summary: 'Reads CSV into {items}, or writes items as {text}.',
    config: v.pipe(
      v.object({
        operation: choice('parse', 'format'),
        value: v.optional(text),
        items: v.optional(computed(items)),
        delimiter: v.optional(v.pipe(plain, v.length(1, 'must be one character')), ','),
        header: v.optional(flag, true),
        columns: v.optional(
          v.pipe(v.array(label, 'must be an array'), v.maxLength(1_000, 'must hold at most 1000')),
        ),
        escapeFormulas: v.optional(flag, false),
      }),
      demandKeys({ parse: ['value'], format: ['items'] }),
    ),
  }),
  JSON: node('pure', {
    summary: 'Reads a JSON text into {value}, or writes a value as {text}.',
    config: v.pipe(
      v.object({
        operation: choice('parse', 'format'),
        value: v.optional(v.unknown()),
        indent: v.optional(whole(0, 10), 0),
      }),
      demandKeys({ parse: ['value'], format: ['value'] }),
    ),
  }),
  XML: node('pure', {
    summary:
      'Reads XML into {value} (attributes under @name, text beside them under #text), or writes {text}.',
    config: v.pipe(
      v.object({
        operation: choice('parse', 'build'),
        value: v.union([text, record], 'must be a text or an object'),
      }),
    ),
  }),
  HTML: node('pure', {
    summary: 'Takes {text} from a page, or {values} by CSS selectors.',
    config: v.pipe(
      v.object({
        operation: choice('text', 'extract'),
        value: text,
        fields: v.optional(
          v.pipe(
            record,
            v.check(
              (fields) => Object.values(fields).every((wanted) => v.is(selection, wanted)),
              'must give each name a CSS selector or {selector, attribute, all}',
            ),
          ),
        ),
      }),
      demandKeys({ extract: ['fields'] }),
    ),
  }),
} as const
