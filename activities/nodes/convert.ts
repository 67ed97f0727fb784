import type * as v from 'valibot'
import {
  delimiterField,
  fileNameField,
  mimeTypeField,
  sheetNameField,
  type WritableFormat,
} from '../../workflows/nodes/formats.ts'
import { createPacer } from '../expressions/pace.ts'
import type { WritingOptions } from '../files/formats/work.ts'
import { demandFiles, guessMimeType } from './extract.ts'
import { renderKey } from './kit/config.ts'
import { invalidConfig } from './kit/failure.ts'
import { listOwnItems } from './kit/items.ts'
import { writeJson } from './kit/json.ts'
import type { NodeContext, NodeRunner } from './kit/node.ts'

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
}

/**
 * CONVERT_TO_FILE: writes its data into a file of the execution, and outputs {file: {id, name, mimeType, bytes}}.
 * Without `data` CSV, XLSX and ICS have the node's items, and JSON its input. Fails with InvalidInput for data that the
 * format cannot have, OutputTooLarge above 8 MB of text, FileTooLarge over the team's limits.
 */
export const runConvertToFile: NodeRunner = async (context) => {
  const { config, evaluator, bindings } = context
  const files = demandFiles(context)
  const format = config.format as WritableFormat
  const name =
    config.name === undefined ? `data.${EXTENSIONS[format]}` : await renderKey(context, 'name', fileNameField)
  const mimeType =
    config.mimeType === undefined
      ? chooseMimeType(format, name)
      : await renderKey(context, 'mimeType', mimeTypeField)
  const data = await writeJson(await findData(context, format), createPacer())
  const { header, columns, escapeFormulas, bom, indent } = config as WritingOptions
  const rendered = async (key: 'delimiter' | 'sheet', schema: v.GenericSchema<unknown, string>) =>
    config[key] === undefined ? undefined : renderKey(context, key, schema)
  const options = {
    header,
    columns,
    escapeFormulas,
    bom,
    indent,
    delimiter: await rendered('delimiter', delimiterField),
    sheet: await rendered('sheet', sheetNameField),
  }
  const done = await evaluator.workOnFile({ write: { format, data, options } }, 'the file', bindings)
  if (!('bytes' in done)) throw new Error('writing a file gave no file')
  return { output: await files.store({ name, mimeType }, done.bytes) }
}

async function findData({ config, evaluator, bindings, inputs, input }: NodeContext, format: WritableFormat) {
  if (config.data === undefined) return format === 'json' ? input : listOwnItems(inputs)
  const data = await evaluator.render(config.data, bindings)
  if (data === null || data === undefined) throw invalidConfig('data', 'must have a value, but it is empty')
  return data
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
