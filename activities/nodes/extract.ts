import * as v from 'valibot'
import { isObject } from '../../workflows/json.ts'
import type { ReadableFormat } from '../../workflows/nodes/formats.ts'
import {
  delimiterField,
  encodingField,
  headerRowField,
  pagesField,
  rangeField,
  sheetField,
} from '../../workflows/nodes/formats.ts'
import { type Files, type FileValue, isFileValue } from '../files/files.ts'
import type { ReadingOptions } from '../files/formats/work.ts'
import { renderKey } from './kit/config.ts'
import { invalidConfig } from './kit/failure.ts'
import type { NodeContext, NodeRunner } from './kit/node.ts'

/** The largest file that is read: an evaluator process gets all of its bytes at once. */
export const MAX_EXTRACTED_BYTES = 32 * 1024 * 1024

/** How many values of the input are looked at to find a file. */
const MAX_SEARCHED = 10_000

const SCHEMAS = {
  encoding: encodingField,
  delimiter: delimiterField,
  sheet: sheetField,
  range: rangeField,
  headerRow: headerRowField,
  pages: pagesField,
  entry: v.string('must be a string'),
}

/**
 * EXTRACT_FROM_FILE: outputs what a file says, with its `format`, in the shapes of the nodes CSV, JSON, XML and HTML,
 * as readFormat tells; a file of an archive is output as a file with `as` file. Without `file` it is the first one in
 * the input. Fails with InvalidInput for a file that is not in the format, FileTooLarge for one that takes too much,
 * FileMissing.
 */
export const runExtractFromFile: NodeRunner = async (context) => {
  const { config, evaluator, bindings, share } = context
  const files = demandFiles(context)
  const given =
    config.file === undefined ? findFile(context.inputs) : await evaluator.render(config.file, bindings)
  const chosen = pickFile(given)
  if (!chosen) {
    const problem =
      config.file === undefined
        ? 'is not set, and the input has no file'
        : 'must be a file: {file: {id, name, mimeType, bytes}}'
    throw invalidConfig('file', problem)
  }
  const options = await readOptions(context)
  const file = await files.open(chosen)
  share?.shrink(2 * Math.min(file.bytes, MAX_EXTRACTED_BYTES))
  const bytes = await file.read(MAX_EXTRACTED_BYTES)
  const name = file.name.slice(0, 100)
  const read = {
    name,
    mimeType: file.mimeType,
    bytes,
    format: (config.format ?? 'auto') as ReadableFormat | 'auto',
    options,
  }
  const done = await evaluator.workOnFile({ read }, name, bindings)
  context.notes.add({ warnings: done.warnings.map((message) => ({ path: 'config.file', message })) })
  if ('text' in done) return { output: JSON.parse(done.text) }
  if ('written' in done) {
    share?.shrink(done.written.zipped.length)
    return { written: done.written }
  }
  const stored = { name: done.name ?? name, mimeType: guessMimeType(done.name ?? '') }
  return { output: await files.store(stored, done.bytes) }
}

/** The files of the execution. Only attempts have them. */
export function demandFiles({ files }: NodeContext): Files {
  if (!files) throw new Error('a node that works on files is no effect')
  return files
}

async function readOptions(context: NodeContext): Promise<ReadingOptions> {
  const { header, lenient, order, largeNumbers, dates, as, fields } = context.config as ReadingOptions
  const options: Record<string, unknown> = { header, lenient, order, largeNumbers, dates, as, fields }
  for (const [key, schema] of Object.entries(SCHEMAS))
    if (context.config[key] !== undefined)
      options[key] = await renderKey(context, key, schema as v.GenericSchema)
  return options
}

/** A value that is a file, or that has one under `file` beside other keys. */
function pickFile(value: unknown): FileValue | undefined {
  const file = { file: Object(value).file }
  return isFileValue(file) ? file : undefined
}

/** The first file in a value, level by level. */
function findFile(inputs: unknown[]): unknown {
  const open: unknown[] = [...inputs]
  for (const value of open) {
    const file = pickFile(value)
    if (file) return file
    if (Array.isArray(value) || isObject(value)) {
      for (const child of Object.values(value)) {
        if (open.length >= MAX_SEARCHED) break
        if (typeof child === 'object' && child !== null) open.push(child)
      }
    }
  }
  return undefined
}

const MIME_TYPES: Record<string, string> = {
  csv: 'text/csv',
  gif: 'image/gif',
  htm: 'text/html',
  html: 'text/html',
  ics: 'text/calendar',
  jpeg: 'image/jpeg',
  jpg: 'image/jpeg',
  json: 'application/json',
  md: 'text/markdown',
  pdf: 'application/pdf',
  png: 'image/png',
  txt: 'text/plain',
  webp: 'image/webp',
  xlsx: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
  xml: 'application/xml',
  zip: 'application/zip',
}

/** The type that the end of a file's name says. */
export function guessMimeType(name: string): string {
  const extension = /\.([a-z0-9]{1,8})$/i.exec(name)?.[1]?.toLowerCase() ?? ''
  return MIME_TYPES[extension] ?? 'application/octet-stream'
}
