import * as v from 'valibot'
import { described, strictObject } from '../object.ts'
import {
  anyObject,
  computed,
  demandKeys,
  itemsField,
  LARGE_NUMBERS,
  labelField,
  largeNumbersField,
  nodeTypeRow,
  oneOf,
  textField,
  wholeNumber,
} from './fields.ts'
import { INTO, intoField } from './into.ts'

const flag = v.boolean('must be true or false')
const plain = v.string('must be a string')

/** The choice of parts of a page: a CSS selector, or one with the part of its element that is taken. */
export const selection = v.union([
  labelField,
  strictObject(
    described(
      { selector: labelField, attribute: v.optional(labelField), all: v.optional(flag, false) },
      {
        selector: 'The CSS selector.',
        attribute: 'The attribute that is taken, in place of the text.',
        all: 'A list of all that it finds, not only the first.',
      },
    ),
  ),
])

const pickFields = v.pipe(
  v.array(
    strictObject(
      described(
        {
          key: labelField,
          selector: textField,
          take: oneOf('text', 'words', 'html', 'value', 'attribute'),
          attribute: v.optional(textField),
          skip: v.optional(textField),
          list: v.optional(flag),
        },
        {
          key: 'The name of the field.',
          selector: "What is looked for, as jQuery's selectors.",
          take: 'What is taken of the element.',
          attribute: 'The attribute that is taken.',
          skip: 'Of words: selectors of what is passed over, with commas between.',
          list: 'A list of all that it finds, not only the first.',
        },
      ),
    ),
    'must be an array',
  ),
  v.maxLength(200, 'must have at most 200 entries'),
)

const tableField = strictObject(
  described(
    {
      plain: v.optional(flag),
      capitalize: v.optional(flag),
      caption: v.optional(textField),
      tableAttributes: v.optional(textField),
      headerAttributes: v.optional(textField),
      rowAttributes: v.optional(textField),
      cellAttributes: v.optional(textField),
    },
    {
      plain: 'Without any styles.',
      capitalize: 'Writes the names of the columns with capitals.',
      caption: 'The caption of the table.',
      tableAttributes: 'Attributes of the table.',
      headerAttributes: 'Attributes of its head.',
      rowAttributes: 'Attributes of its rows.',
      cellAttributes: 'Attributes of its cells.',
    },
  ),
)
export type HtmlTable = v.InferOutput<typeof tableField>

/** Node types that read and write documents. */
export const DOCUMENT_NODES = {
  CSV: nodeTypeRow('pure', {
    summary: 'Reads CSV into {items}, or writes items as {text}.',
    config: v.pipe(
      v.object(
        described(
          {
            operation: oneOf('parse', 'format'),
            value: v.optional(textField),
            items: v.optional(computed(itemsField)),
            delimiter: v.optional(v.pipe(plain, v.length(1, 'must be one character')), ','),
            header: v.optional(flag, true),
            lenient: v.optional(flag),
            columns: v.optional(
              v.pipe(
                v.array(labelField, 'must be an array'),
                v.maxLength(1_000, 'must have at most 1000 entries'),
              ),
            ),
            escapeFormulas: v.optional(flag, false),
          },
          {
            operation: 'Whether CSV is read (parse) or written (format).',
            value: 'The CSV that is read.',
            items: 'The items that are written.',
            delimiter: 'What stands between two cells.',
            header: 'The first line has the names. Without it a row is a list.',
            lenient: 'With parse: takes quotes where there should be none.',
            columns: 'The columns that are written, in their order. Without them all keys of the items.',
            escapeFormulas: 'Escapes cells that a spreadsheet would compute.',
          },
        ),
      ),
      demandKeys({ parse: ['value'], format: ['items'] }),
    ),
    main: ['operation'],
    mainBy: {
      key: 'operation',
      keys: { parse: ['value', 'delimiter', 'header'], format: ['items', 'columns', 'delimiter', 'header'] },
    },
  }),
  JSON: nodeTypeRow('pure', {
    summary: 'Reads JSON into {value}, or writes a value as {text}.',
    config: v.pipe(
      v.object(
        described(
          {
            operation: oneOf('parse', 'format'),
            value: v.optional(v.unknown()),
            indent: v.optional(wholeNumber(0, 10), 0),
            largeNumbers: v.optional(largeNumbersField),
          },
          {
            operation: 'Whether JSON is read (parse) or written (format).',
            value: 'The text that is read, or the value that is written.',
            indent: 'By how many spaces it is indented.',
            largeNumbers: LARGE_NUMBERS,
          },
        ),
      ),
      demandKeys({ parse: ['value'], format: ['value'] }),
    ),
    main: ['operation'],
    mainBy: { key: 'operation', keys: { parse: ['value', 'largeNumbers'], format: ['value', 'indent'] } },
  }),
  XML: nodeTypeRow('pure', {
    summary:
      'Reads XML into {value} (attributes under @name, text next to them under #text), or writes {text}.',
    config: v.pipe(
      v.object(
        described(
          {
            operation: oneOf('parse', 'build', 'read', 'write'),
            value: v.optional(v.union([textField, anyObject], 'must be a string or an object')),
            order: v.optional(flag),
            source: v.optional(textField),
            options: v.optional(anyObject),
          },
          {
            operation:
              'Reads XML (parse), writes it (build), or does so with a field of its item, as n8n does (read, write).',
            value: 'The XML that is read, or the object that is written.',
            order: 'With parse: all children of an element are a list, #children, in their order.',
            source: 'With read and write: the field of the item that has the XML.',
            options: 'With read and write: the options of xml2js.',
          },
        ),
      ),
      demandKeys({ parse: ['value'], build: ['value'], read: ['source'], write: ['source'] }),
    ),
    main: ['operation'],
    mainBy: {
      key: 'operation',
      keys: { parse: ['value'], build: ['value'], read: ['source'], write: ['source'] },
    },
  }),
  HTML: nodeTypeRow('pure', {
    summary: 'Outputs the {text} of an HTML page, or {values} found by CSS selectors.',
    config: v.pipe(
      v.object(
        described(
          {
            operation: oneOf('text', 'extract', 'pick', 'table', 'fromMarkdown', 'toMarkdown'),
            value: v.optional(textField),
            source: v.optional(textField),
            file: v.optional(
              v.union([textField, anyObject], 'must be a file or an expression that gives one'),
            ),
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
          },
          {
            operation: 'What is made: the text of a page, values found in it, a table of items, or Markdown.',
            value: 'The HTML or the Markdown.',
            source: 'With pick: the field of the item that has the page, or pages.',
            file: 'With pick: a file that has the page, in place of a field.',
            pick: 'The fields that are picked out of the page.',
            trim: 'With pick: drops the space around texts.',
            clean: 'With pick: makes one space of every space and line break.',
            table: 'What the table looks like.',
            options: 'With Markdown: the options of showdown or node-html-markdown.',
            into: INTO,
            fields: 'With extract: for each name a CSS selector, or {selector, attribute, all}.',
          },
        ),
      ),
      demandKeys({
        text: ['value'],
        extract: ['value', 'fields'],
        pick: ['pick'],
        fromMarkdown: ['value', 'into'],
        toMarkdown: ['value', 'into'],
      }),
      v.check(
        ({ operation, source, file }) =>
          operation !== 'pick' || (source === undefined) !== (file === undefined),
        'must have either source or file for the operation pick',
      ),
    ),
    main: ['operation'],
    stores: ({ file }) => file !== undefined,
    mainBy: {
      key: 'operation',
      keys: {
        text: ['value'],
        extract: ['value', 'fields'],
        pick: ['source', 'pick'],
        table: ['table'],
        fromMarkdown: ['value', 'into'],
        toMarkdown: ['value', 'into'],
      },
    },
  }),
} as const
