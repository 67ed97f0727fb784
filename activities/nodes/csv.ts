import { readCsvItems, writeCsvItems } from '../files/formats/csv.ts'
import { renderText } from './kit/config.ts'
import { readItems } from './kit/items.ts'
import type { NodeRunner } from './kit/node.ts'

/**
 * CSV: `parse` outputs {items}, objects with the first line's names as keys (arrays if `header` is false).
 * Every cell is a string, a missing one null. `format` outputs {text} with a column for each key of the
 * items, or for each of `columns`: null and missing values are empty cells, objects are JSON. Fails with
 * InvalidInput for invalid CSV and with OutputTooLarge above 8 MB.
 */
export const runCsv: NodeRunner = async (context) => {
  const { config } = context
  const how = { delimiter: String(config.delimiter ?? ','), header: config.header !== false }
  if (config.operation !== 'format') {
    const reading = { ...how, lenient: config.lenient === true }
    return { output: { items: await readCsvItems(await renderText(context, 'value'), reading, 'value') } }
  }
  const columns = config.columns as string[] | undefined
  const escapeFormulas = config.escapeFormulas === true
  return {
    output: { text: await writeCsvItems(await readItems(context), { ...how, columns, escapeFormulas }) },
  }
}
