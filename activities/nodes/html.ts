import { isObject } from '../../workflows/inputs.ts'
import type { Wanted } from '../conversions.ts'
import { readText } from './config.ts'
import type { NodeRunner } from './node.ts'

/**
 * HTML: `text` outputs {text}, what one reads of a page; `extract` outputs {values}: by name the text or attribute of
 * what its CSS selector finds first (nothing is null), or of `all`.
 */
export const runHtml: NodeRunner = async (context) => {
  const { config, evaluator, bindings } = context
  const page = await readText(context, 'value')
  if (config.operation === 'text') {
    return { output: { text: await evaluator.convert({ kind: 'html', text: page }, bindings) } }
  }
  const fields = Object.entries(config.fields as Record<string, string | Wanted>)
  const picks = fields.map(
    ([name, wanted]) => [name, isObject(wanted) ? wanted : { selector: wanted }] as const,
  )
  return { output: { values: await evaluator.convert({ kind: 'html', page, picks }, bindings) } }
}
