import * as v from 'valibot'
import { filesOf, type ItemFiles, withFiles } from '../../workflows/itemfiles.ts'
import { isObject } from '../../workflows/json.ts'
import type { ReadableFormat, ReadItem } from '../../workflows/nodes/formats.ts'
import {
  delimiterField,
  encodingField,
  headerRowField,
  pagesField,
  rangeField,
  sheetField,
} from '../../workflows/nodes/formats.ts'
import { type FileValue, readFileValue } from '../files/files.ts'
import type { ReadingOptions } from '../files/formats/work.ts'
import { guessMimeType, sniffOrGuess } from '../files/types.ts'
import { renderKey } from './kit/config.ts'
import { invalidConfig } from './kit/failure.ts'
import { demandFiles } from './kit/files.ts'
import { workedItem } from './kit/items.ts'
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
  const chosen = readFileValue(given)
  if (!chosen && (config.item as ReadItem | undefined)?.missing === 'skip') return { output: [] }
  if (!chosen) {
    const problem =
      config.file === undefined
        ? 'is not set, and the input has no file'
        : 'must be a file: {file: {id, name, mimeType, bytes}}'
    throw invalidConfig('file', problem)
  }
  const options = { ...(await readOptions(context)), item: await prepareItem(context, chosen) }
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
  if ('unpacked' in done) return { output: await storeUnpacked(context, file, done.unpacked) }
  const stored = { name: done.name ?? name, mimeType: guessMimeType(done.name ?? '') }
  return { output: await files.store(stored, done.bytes) }
}

/** The item that the file is read into, with what it keeps. */
async function prepareItem(context: NodeContext, { file }: FileValue): Promise<ReadingOptions['item']> {
  const how = context.config.item as ReadItem | undefined
  if (!how) return undefined
  const item = workedItem(context)
  const others = Object.entries(filesOf(item) ?? {}).filter(
    ([, one]) => readFileValue(one)?.file.id !== file.id,
  )
  const files = how.files === 'all' ? filesOf(item) : how.files === 'others' ? Object.fromEntries(others) : {}
  const base = withFiles(how.keep === true && isObject(item) ? item : {}, files)
  const field =
    how.field === undefined
      ? {}
      : { field: String(await context.evaluator.render(how.field, context.bindings)) }
  return { ...how, ...field, base }
}

/** The item with the files that were in its archive, under names with numbers. */
async function storeUnpacked(
  context: NodeContext,
  { name }: Pick<FileValue['file'], 'name'>,
  unpacked: { name: string; bytes: Uint8Array }[],
): Promise<unknown> {
  const { config, evaluator, bindings } = context
  const prefix = String(await evaluator.render((config.item as ReadItem).field ?? 'file_', bindings))
  const files: ItemFiles = {}
  for (const [at, one] of unpacked.entries()) {
    const what =
      /\.gz(?:ip)?$/i.test(name) && unpacked.length === 1 && one.name === name
        ? nameUnpacked(name)
        : { name: one.name }
    const type = what.mimeType ?? sniffOrGuess(what.name, one.bytes)
    files[`${prefix}${at}`] = await demandFiles(context).store({ name: what.name, mimeType: type }, one.bytes)
  }
  return withFiles(Object(workedItem(context)), files)

  function nameUnpacked(packed: string): { name: string; mimeType?: string } {
    const [stem = 'file'] = packed.split('.')
    const ending = /^.+\.([^.]+)\.gz$/i.exec(packed)?.[1]
    return ending === undefined ? { name: `${stem}.txt` } : { name: `${stem}.${ending}` }
  }
}

async function readOptions(context: NodeContext): Promise<ReadingOptions> {
  const { header, lenient, order, largeNumbers, dates, as, fields } = context.config as ReadingOptions
  const options: Record<string, unknown> = { header, lenient, order, largeNumbers, dates, as, fields }
  for (const [key, schema] of Object.entries(SCHEMAS))
    if (context.config[key] !== undefined)
      options[key] = await renderKey(context, key, schema as v.GenericSchema)
  return options
}

/** The first file in a value, level by level. */
function findFile(inputs: unknown[]): unknown {
  const open: unknown[] = [...inputs]
  for (const value of open) {
    const file = readFileValue(value)
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
