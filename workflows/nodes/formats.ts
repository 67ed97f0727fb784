import * as v from 'valibot'
import { described, strictObject } from '../object.ts'
import { selection } from './documents.ts'
import { anyObject, computed, labelField, nodeTypeRow, oneOf, textField, wholeNumber } from './fields.ts'

/** The formats that can be read from a file. */
const READABLE_FORMATS = [
  'csv',
  'json',
  'xml',
  'html',
  'text',
  'xlsx',
  'pdf',
  'zip',
  'gzip',
  'ics',
  'base64',
] as const
export type ReadableFormat = (typeof READABLE_FORMATS)[number]

/** The formats in which a file can be written. */
const WRITABLE_FORMATS = [
  'csv',
  'json',
  'xml',
  'html',
  'text',
  'xlsx',
  'ics',
  'base64',
  'zip',
  'gzip',
] as const
export type WritableFormat = (typeof WRITABLE_FORMATS)[number]

/** The formats for which a key of a config is. The others are for all. */
const READING_KEYS: Record<string, readonly ReadableFormat[]> = {
  encoding: ['csv', 'json', 'xml', 'html', 'text', 'ics', 'zip', 'gzip'],
  delimiter: ['csv'],
  header: ['csv', 'xlsx'],
  lenient: ['csv'],
  order: ['xml'],
  largeNumbers: ['json', 'xlsx'],
  sheet: ['xlsx'],
  range: ['xlsx'],
  headerRow: ['xlsx'],
  dates: ['xlsx'],
  pages: ['pdf'],
  entry: ['zip'],
  as: ['zip', 'gzip'],
  fields: ['html'],
}

const WRITING_KEYS: Record<string, readonly WritableFormat[]> = {
  delimiter: ['csv'],
  bom: ['csv', 'json', 'text'],
  encoding: ['csv', 'json', 'xml', 'html', 'text'],
  header: ['csv', 'xlsx'],
  columns: ['csv', 'xlsx'],
  escapeFormulas: ['csv'],
  sheet: ['xlsx'],
  indent: ['json'],
}

const flag = v.boolean('must be true or false')
export const delimiterField = v.pipe(v.string('must be a string'), v.length(1, 'must be one character'))

/** The name of an encoding that browsers know, such as utf-8, utf-16le or iso-8859-1. */
export const encodingField = v.pipe(
  textField,
  v.check(isEncoding, 'must be an encoding such as utf-8, utf-16le or windows-1252'),
)

/** Cells of a sheet, such as `B2:D20`. */
export const rangeField = v.pipe(
  textField,
  v.regex(/^[A-Za-z]{1,3}[1-9]\d{0,6}:[A-Za-z]{1,3}[1-9]\d{0,6}$/, 'must be cells such as A1:D20'),
)

/** Numbers of pages from 1, such as `1-3,7`. */
export const pagesField = v.pipe(
  textField,
  v.regex(/^ *\d{1,6} *(- *\d{1,6} *)?(, *\d{1,6} *(- *\d{1,6} *)?){0,99}$/, 'must be pages such as 1-3,7'),
)

/** A sheet's name, or its number from 1. */
export const sheetField = v.union([wholeNumber(1, 1_000), textField], 'must be a name, or a number from 1')

export const headerRowField = wholeNumber(1, 1_000_000)

/** Excel refuses other names for a sheet. */
export const sheetNameField = v.pipe(
  textField,
  v.regex(/^[^[\]:*?/\\]{1,31}$/, 'must be at most 31 characters, without []:*?/\\'),
)

export const fileNameField = v.pipe(
  textField,
  v.maxLength(255, 'must have at most 255 characters'),
  v.check((name) => !/[/\\]/.test(name), 'must be a name without / and \\'),
)

export const mimeTypeField = v.pipe(
  textField,
  v.regex(
    /^[A-Za-z0-9][\w.+-]{0,99}\/[A-Za-z0-9][\w.+-]{0,99}(; ?charset=[\w-]{1,40})?$/,
    'must be a type such as text/csv',
  ),
)

/** The encodings in which a text can be written. */
const WRITTEN_ENCODINGS = ['utf-8', 'utf-16le', 'iso-8859-1'] as const
export type WrittenEncoding = (typeof WRITTEN_ENCODINGS)[number]

const text = v.pipe(v.string('must be a string'), v.maxLength(500, 'must have at most 500 characters'))

/** EXTRACT_FROM_FILE's `item`: what is read goes into the item whose file it is, as in n8n. */
const readItemField = strictObject(
  described(
    {
      field: v.optional(text),
      keep: v.optional(flag),
      files: v.optional(oneOf('none', 'others', 'all')),
      missing: v.optional(oneOf('error', 'skip')),
      empty: v.optional(flag),
      bom: v.optional(flag),
      fromLine: v.optional(wholeNumber(1, 1_000_000)),
      maxRows: v.optional(wholeNumber(0, 1_000_000)),
      faulty: v.optional(wholeNumber(-1, 1_000_000)),
      maxPages: v.optional(wholeNumber(0, 2_000)),
      apart: v.optional(flag),
      unpack: v.optional(flag),
    },
    {
      field: 'The field of the item that gets what is read, or what the names of unpacked files begin with.',
      keep: 'The item keeps its other fields.',
      files: 'Which files the item keeps: none, all, or all others than the one that is read.',
      missing: 'What happens without the file: the node fails, or the item is left out.',
      empty: 'Of rows: empty cells are empty texts, and not left out.',
      bom: 'CSV: a byte order mark is no part of the first name.',
      fromLine: 'CSV: the first line that is read.',
      maxRows: 'CSV: the most rows that are read.',
      faulty: 'CSV: rows that cannot be read are left out, as many as this; -1 is any number.',
      maxPages: 'PDF: the most pages that are read.',
      apart: 'PDF: a list of the texts of the pages.',
      unpack: 'Unpacks ZIP or gzip, whichever it is, into files of the item.',
    },
  ),
)
export type ReadItem = v.InferOutput<typeof readItemField>

/** CONVERT_TO_FILE's `item`: the file goes into an item, as in n8n. */
const writtenItemField = strictObject(
  described(
    {
      file: text,
      source: v.optional(text),
      whole: v.optional(flag),
      keep: v.optional(flag),
      without: v.optional(text),
      files: v.optional(flag),
      missing: v.optional(oneOf('error', 'skip')),
    },
    {
      file: 'The name of the file in the item.',
      source: 'The field of the item that has the data.',
      whole: 'The data is the item itself.',
      keep: 'The item keeps its fields.',
      without: 'A field that it does not keep.',
      files: 'The item keeps its other files.',
      missing: 'What happens without the field: the node fails, or the item is left out.',
    },
  ),
)
export type WrittenItem = v.InferOutput<typeof writtenItemField>

/** Node types that read and write files. */
export const FORMAT_NODES = {
  EXTRACT_FROM_FILE: nodeTypeRow('effect', {
    summary:
      'Reads what is in a file: CSV, JSON, XML, HTML, text, XLSX, the text of a PDF, ZIP, gzip, ICS, or its bytes in base64.',
    config: v.pipe(
      v.object(
        described(
          {
            file: v.optional(
              v.union([textField, anyObject], 'must be a file or an expression that gives one'),
            ),
            format: v.optional(oneOf('auto', ...READABLE_FORMATS), 'auto'),
            encoding: v.optional(computed(encodingField)),
            delimiter: v.optional(computed(delimiterField)),
            header: v.optional(flag, true),
            lenient: v.optional(flag),
            order: v.optional(flag),
            largeNumbers: v.optional(oneOf('text', 'number')),
            sheet: v.optional(computed(sheetField)),
            range: v.optional(computed(rangeField)),
            headerRow: v.optional(computed(headerRowField)),
            dates: v.optional(oneOf('text', 'number'), 'text'),
            pages: v.optional(computed(pagesField)),
            entry: v.optional(textField),
            as: v.optional(oneOf('text', 'file'), 'text'),
            item: v.optional(readItemField),
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
            file: 'An expression that gives a file, such as {{ $input.body.invoice }}. Without it the first file in the input.',
            format: 'What is in the file. auto looks at it.',
            encoding:
              'The encoding of a text, such as utf-16le or windows-1252. Without it what the file says, else UTF-8.',
            delimiter: 'CSV: what stands between two cells. Without it what fits the first records.',
            header: 'CSV and XLSX: the first row has the names of the columns.',
            lenient: 'CSV: takes quotes where there should be none.',
            order: 'XML: all children of an element are a list, #children, in their order.',
            largeNumbers:
              'JSON and XLSX: numbers that JavaScript cannot hold exactly become a text of their digits (the default), or are rounded.',
            sheet: "XLSX: a sheet's name, or its number from 1.",
            range: 'XLSX: the cells, such as B2:D20.',
            headerRow: 'XLSX: the number of the row with the names, from 1.',
            dates: "XLSX: dates as texts, or as Excel's own numbers.",
            pages: 'PDF: which pages, such as 1-3,7.',
            entry: 'ZIP: the name of a file in the archive. Without it the list of them.',
            as: 'ZIP: whether that file is output as a text, or as a file.',
            item: 'Makes items of what is read, as n8n does, in place of the usual output.',
            fields:
              'HTML: for each name a CSS selector, or {selector, attribute, all}. Without it the text of the page.',
          },
        ),
      ),
      demandFormat(READING_KEYS, { header: true, dates: 'text', as: 'text' }),
    ),
    main: ['file', 'format'],
    timeoutMs: 120_000,
  }),
  CONVERT_TO_FILE: nodeTypeRow('effect', {
    summary:
      'Writes its data into a file: CSV, JSON, XML, HTML, text, XLSX, ICS, bytes given in base64, or other files as ZIP or gzip.',
    config: v.pipe(
      v.object(
        described(
          {
            format: oneOf(...WRITABLE_FORMATS),
            data: v.optional(v.unknown()),
            name: v.optional(computed(fileNameField)),
            mimeType: v.optional(computed(mimeTypeField)),
            delimiter: v.optional(computed(delimiterField)),
            bom: v.optional(flag, false),
            encoding: v.optional(oneOf(...WRITTEN_ENCODINGS)),
            header: v.optional(flag, true),
            columns: v.optional(
              v.pipe(
                v.array(labelField, 'must be an array'),
                v.maxLength(1_000, 'must have at most 1000 entries'),
              ),
            ),
            escapeFormulas: v.optional(flag, false),
            sheet: v.optional(computed(sheetNameField)),
            indent: v.optional(wholeNumber(0, 10), 0),
            item: v.optional(writtenItemField),
          },
          {
            format: 'What is written. base64 is for any bytes.',
            data: 'What goes into the file: a list for CSV, XLSX and ICS, an object for XML, a file or a list of files for ZIP, a file for gzip. Without it the input, where that will do.',
            name: 'The name of the file. Without it data, with the end that the format has.',
            mimeType: 'The type of the file, such as text/csv. Without it that of the format.',
            delimiter: 'CSV: what stands between two cells.',
            bom: 'CSV, JSON and text: begins with a byte order mark, which Excel needs.',
            encoding: 'The encoding of a text. Without it UTF-8.',
            header: 'CSV and XLSX: the first row has the names of the columns.',
            columns: 'CSV and XLSX: the columns, in their order. Without them all keys of the items.',
            escapeFormulas: 'CSV: escapes cells that a spreadsheet would compute.',
            sheet: 'XLSX: the name of the sheet.',
            indent: 'JSON: by how many spaces it is indented.',
            item: 'Puts the file into an item, as n8n does, in place of the usual output.',
          },
        ),
      ),
      demandFormat(WRITING_KEYS, { header: true, bom: false, escapeFormulas: false, indent: 0 }),
      v.rawCheck(({ dataset, addIssue }) => {
        const { format, data, item } = dataset.typed ? dataset.value : {}
        if (!dataset.typed || data !== undefined || item?.source !== undefined || item?.whole) return
        if (format === 'csv' || format === 'xlsx' || format === 'json' || format === 'ics') return
        addIssue({ message: `is required for the format ${format}`, path: [pathTo(dataset.value, 'data')] })
      }),
    ),
    main: ['format', 'data', 'name'],
    timeoutMs: 120_000,
  }),
} as const

/** Refuses keys that a format does not know; `defaults` are those that are there without having been set. */
function demandFormat<T extends { format: string }>(
  keys: Record<string, readonly string[]>,
  defaults: Record<string, unknown>,
) {
  return v.rawCheck<T>(({ dataset, addIssue }) => {
    if (!dataset.typed || dataset.value.format === 'auto') return
    const value: Record<string, unknown> = dataset.value
    for (const [key, formats] of Object.entries(keys)) {
      if (value[key] === undefined || value[key] === defaults[key]) continue
      if (formats.includes(dataset.value.format)) continue
      addIssue({ message: `is only for the format ${formats.join(', ')}`, path: [pathTo(value, key)] })
    }
  })
}

function pathTo(input: Record<string, unknown>, key: string): v.ObjectPathItem {
  return { type: 'object', origin: 'value', input, key, value: input[key] }
}

function isEncoding(name: string): boolean {
  try {
    new TextDecoder(name)
    return true
  } catch {
    return false
  }
}
