import { isObject } from '../../workflows/json.ts'
import type { HtmlPick } from '../expressions/formats.ts'
import { renderText } from './kit/config.ts'
import type { NodeRunner } from './kit/node.ts'

/**
 * HTML: `text` outputs {text}, the readable text of a page. `extract` outputs {values}: for each name of
 * `fields` the text or attribute of the first element that its CSS selector finds (null if there is none), or
 * with `all` an array.
 */
export const runHtml: NodeRunner = async (context) => {
  const { config, evaluator, bindings } = context
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
