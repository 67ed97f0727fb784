import { isObject } from '../../workflows/json.ts'
import type { HtmlTable } from '../../workflows/nodes/documents.ts'
import type { HtmlPick, PageField } from '../expressions/formats.ts'
import { renderText } from './kit/config.ts'
import { NodeFailure } from './kit/failure.ts'
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
    return { output: { table: writeTable(listOwnItems(context.inputs), table) } }
  }
  if (config.operation === 'fromMarkdown' || config.operation === 'toMarkdown') {
    const text = await evaluator.render(config.value, bindings)
    const options = (await evaluator.render(config.options ?? {}, bindings)) as Record<string, unknown>
    const given = String(text ?? '')
    const work = config.operation === 'toMarkdown' ? { toMarkdown: given } : { markdown: given }
    return { output: putInto(context, await evaluator.convert({ kind: 'html', ...work, options }, bindings)) }
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
  const { source, pick } = (await evaluator.render(
    { source: config.source, pick: config.pick },
    bindings,
  )) as {
    source: string
    pick: PageField[]
  }
  const value = getField(workedItem(context), source)
  if (value === undefined)
    throw new NodeFailure(`No property named "${source}" exists!`, { type: 'InvalidInput' })
  const items: unknown[] = []
  for (const page of [value].flat()) {
    const how = { fields: pick, trim: config.trim === true, clean: config.clean === true }
    items.push(await evaluator.convert({ kind: 'html', document: String(page ?? ''), ...how }, bindings))
  }
  return items
}
