import type * as v from 'valibot'
import { filesOf, withFiles, withoutFiles } from '../../workflows/itemfiles.ts'
import { isObject } from '../../workflows/json.ts'
import {
  delimiterField,
  fileNameField,
  mimeTypeField,
  sheetNameField,
  type WritableFormat,
  type WrittenItem,
} from '../../workflows/nodes/formats.ts'
import { createPacer } from '../expressions/pace.ts'
import { readFileValue } from '../files/files.ts'
import type { FileWork, WritingOptions } from '../files/formats/work.ts'
import { findExtension, guessMimeType, sniffOrGuess } from '../files/types.ts'
import { MAX_EXTRACTED_BYTES } from './extract.ts'
import { renderKey } from './kit/config.ts'
import { invalidConfig, NodeFailure } from './kit/failure.ts'
import { demandFiles } from './kit/files.ts'
import { listOwnItems, workedItem } from './kit/items.ts'
import { writeJson } from './kit/json.ts'
import type { NodeContext, NodeRunner } from './kit/node.ts'
import { copyValue, getField, unsetField } from './kit/paths.ts'

/** The end of a file's name by its format. */
const EXTENSIONS: Record<WritableFormat, string> = {
  csv: 'csv',
  json: 'json',
  xml: 'xml',
  html: 'html',
  text: 'txt',
  xlsx: 'xlsx',
  ics: 'ics',
  base64: 'bin',
  zip: 'zip',
  gzip: 'gz',
}

/**
 * CONVERT_TO_FILE: writes its data into a file of the execution, and outputs {file: {id, name, mimeType, bytes}}, or
 * with `item` the item that has it. Without `data` CSV, XLSX and ICS have the node's items, and JSON its input. Fails
 * with InvalidInput for data that the format cannot have, OutputTooLarge above 8 MB of text, FileTooLarge over the
 * team's limits.
 */
export const runConvertToFile: NodeRunner = async (context) => {
  const { config, evaluator, bindings } = context
  const files = demandFiles(context)
  const format = config.format as WritableFormat
  const item = config.item as WrittenItem | undefined
  const data = await findData(context, format)
  if (data === undefined) return { output: [] }
  const work = await describeWork(context, format, data)
  const done = await evaluator.workOnFile(work, 'the file', bindings)
  if (!('bytes' in done)) throw new Error('writing a file gave no file')
  const what = item ? await nameForItem(context, data, done.bytes) : await nameFile(context, format)
  const file = await files.store(what, done.bytes)
  return { output: item ? putIntoItem(context, item, file) : file }
}

async function describeWork(context: NodeContext, format: WritableFormat, data: unknown): Promise<FileWork> {
  const { config } = context
  if (format === 'zip' || format === 'gzip')
    return { pack: { format, files: await readFiles(context, data) } }
  const { header, columns, escapeFormulas, bom, indent, encoding } = config as WritingOptions
  const rendered = async (key: 'delimiter' | 'sheet', schema: v.GenericSchema<unknown, string>) =>
    config[key] === undefined ? undefined : renderKey(context, key, schema)
  const options = {
    header,
    columns,
    escapeFormulas,
    bom,
    indent,
    encoding,
    ...(config.item === undefined ? {} : { sheets: true }),
    delimiter: await rendered('delimiter', delimiterField),
    sheet: await rendered('sheet', sheetNameField),
  }
  return { write: { format, data: await writeJson(data, createPacer()), options } }
}

/** What is written; undefined for an item that is left out. */
async function findData(context: NodeContext, format: WritableFormat): Promise<unknown> {
  const { config, evaluator, bindings, inputs, input } = context
  const { source, whole, missing } = (config.item ?? {}) as WrittenItem
  const item = withoutFiles(workedItem(context))
  if (whole) return item ?? {}
  if (source !== undefined) {
    const name = String(await evaluator.render(source, bindings))
    const value = getField(item, name)
    if (value !== undefined || missing === 'skip') return value
    throw new NodeFailure(`The value in "${name}" is not set`, { type: 'InvalidInput' })
  }
  if (config.data === undefined)
    return format === 'json' && !config.item ? input : listOwnItems(inputs).map(withoutFiles)
  const data = await evaluator.render(config.data, bindings)
  if (data === null || data === undefined) throw invalidConfig('data', 'must have a value, but it is empty')
  return data
}

/** The files that are packed: one or a list of them. Names that are taken get a number. */
async function readFiles(context: NodeContext, data: unknown) {
  const { share } = context
  const opened = []
  for (const [at, value] of [data].flat().entries()) {
    const file = readFileValue(value)
    if (!file) throw invalidConfig(Array.isArray(data) ? `data[${at}]` : 'data', 'must be a file')
    opened.push(await demandFiles(context).open(file))
  }
  if (opened.length === 0) throw invalidConfig('data', 'must have a file')
  let left = MAX_EXTRACTED_BYTES
  share?.shrink(
    2 *
      Math.min(
        left,
        opened.reduce((sum, { bytes }) => sum + bytes, 0),
      ),
  )
  const taken = new Set<string>()
  const files: { name: string; bytes: Uint8Array }[] = []
  for (const file of opened) {
    const bytes = await file.read(left)
    left -= bytes.length
    const [, stem = file.name, ending = ''] = /^(.+?)(\.[^.]*)?$/.exec(file.name) ?? []
    let name = file.name
    for (let number = 1; taken.has(name); number++) name = `${stem}_${number}${ending}`
    taken.add(name)
    files.push({ name, bytes })
  }
  return files
}

async function nameFile(context: NodeContext, format: WritableFormat) {
  const { config } = context
  const name =
    config.name === undefined ? `data.${EXTENSIONS[format]}` : await renderKey(context, 'name', fileNameField)
  const mimeType =
    config.mimeType === undefined
      ? chooseMimeType(format, name)
      : await renderKey(context, 'mimeType', mimeTypeField)
  return { name, mimeType }
}

/** The name and type of an item's file: what is not given is told by its data, its name or its bytes. */
async function nameForItem(context: NodeContext, data: unknown, bytes: Uint8Array) {
  const { config } = context
  const { format } = config
  const given = config.name === undefined ? undefined : await renderKey(context, 'name', fileNameField)
  const isJson = format === 'json' || (format === 'text' && typeof data === 'object')
  const mimeType =
    config.mimeType === undefined || (isJson && format === 'text')
      ? isJson
        ? 'application/json'
        : sniffOrGuess(given ?? '', bytes)
      : await renderKey(context, 'mimeType', mimeTypeField)
  if (given !== undefined) return { name: given, mimeType }
  const ending =
    config.mimeType === undefined && mimeType === 'text/plain' ? undefined : findExtension(mimeType)
  return { name: ending === undefined ? 'file' : `file.${ending}`, mimeType }
}

/** The item that has the file: an empty one, or what it keeps of the item before. */
function putIntoItem(context: NodeContext, how: WrittenItem, file: unknown): Record<string, unknown> {
  const item = workedItem(context)
  const fields = how.keep === true && isObject(item) ? copyValue(withoutFiles(item)) : {}
  if (how.without !== undefined) unsetField(fields, how.without)
  return withFiles(fields, { ...(how.files === true ? filesOf(item) : {}), [how.file]: file })
}

/** Bytes are what their name says; all else is in its format, whatever its name is. */
function chooseMimeType(format: WritableFormat, name: string): string {
  return guessMimeType(
    format === 'base64'
      ? name
      : format === 'text' && /\.(md|txt)$/i.test(name)
        ? name
        : `.${EXTENSIONS[format]}`,
  )
}
