import { withoutFiles } from '../../workflows/itemfiles.ts'
import { isObject } from '../../workflows/json.ts'
import type { HtmlTable } from '../../workflows/nodes/documents.ts'
import type { HtmlPick, PageField } from '../expressions/formats.ts'
import { renderText } from './kit/config.ts'
import { NodeFailure } from './kit/failure.ts'
import { openGiven } from './kit/files.ts'
import { putInto } from './kit/into.ts'
import { listOwnItems, workedItem } from './kit/items.ts'
import type { NodeContext, NodeRunner } from './kit/node.ts'
import { getField } from './kit/paths.ts'
import { writeTable } from './lists/table.ts'

/**
 * HTML: `text` outputs {text}, the readable text of a page. `extract` outputs {values}: for each name of `fields` the
 * text or attribute of the first element that its CSS selector finds (null without a match), or with `all` an array.
 * `pick` takes fields of the pages in a field of its item, `table` writes a table of its items, and `fromMarkdown`
 * and `toMarkdown` put a text into a field of its item.
 */
export const runHtml: NodeRunner = async (context) => {
  const { config, evaluator, bindings } = context
  if (config.operation === 'pick') return { output: { items: await pickOfItem(context) } }
  if (config.operation === 'table') {
    const table = (await evaluator.render(config.table ?? {}, bindings)) as HtmlTable
    return { output: { table: writeTable(listOwnItems(context.inputs).map(withoutFiles), table) } }
  }
  if (config.operation === 'fromMarkdown' || config.operation === 'toMarkdown') {
    const text = await evaluator.render(config.value, bindings)
    const options = (await evaluator.render(config.options ?? {}, bindings)) as Record<string, unknown>
    const given = String(text ?? '')
    const work = config.operation === 'toMarkdown' ? { toMarkdown: given } : { markdown: given }
    const made = await evaluator.convert({ kind: 'html', ...work, options }, bindings)
    return { output: withoutFiles(putInto(context, made)) }
  }
  const page = await renderText(context, 'value')
  if (config.operation === 'text') {
    return { output: { text: await evaluator.convert({ kind: 'html', text: page }, bindings) } }
  }
  const fields = Object.entries(config.fields as Record<string, string | HtmlPick>)
  const picks = fields.map(
    ([name, wanted]) => [name, isObject(wanted) ? wanted : { selector: wanted }] as const,
  )
  return { output: { values: await evaluator.convert({ kind: 'html', page, picks }, bindings) } }
}

/** An item for each page in a field of the item, which is one page or a list of them. */
async function pickOfItem(context: NodeContext): Promise<unknown[]> {
  const { config, evaluator, bindings } = context
  const pick = (await evaluator.render(config.pick, bindings)) as PageField[]
  const value = await readPage(context)
  const items: unknown[] = []
  for (const page of [value].flat()) {
    const how = { fields: pick, trim: config.trim === true, clean: config.clean === true }
    items.push(await evaluator.convert({ kind: 'html', document: String(page ?? ''), ...how }, bindings))
  }
  return items
}

/** The largest file that is read as a page. */
export const MAX_PAGE_BYTES = 8 * 1024 * 1024

/** The page, or pages, in a field of the item or in a file. */
async function readPage(context: NodeContext): Promise<unknown> {
  const { config, evaluator, bindings, share } = context
  if (config.file !== undefined) {
    const file = await openGiven(context, 'file')
    share?.shrink(2 * Math.min(file.bytes, MAX_PAGE_BYTES))
    return Buffer.from(await file.read(MAX_PAGE_BYTES)).toString('utf8')
  }
  const source = String(await evaluator.render(config.source, bindings))
  const value = getField(workedItem(context), source)
  if (value !== undefined) return value
  throw new NodeFailure(`No property named "${source}" exists!`, { type: 'InvalidInput' })
}
