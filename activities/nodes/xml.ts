import { withoutFiles } from '../../workflows/itemfiles.ts'
import { isObject } from '../../workflows/json.ts'
import { renderText } from './kit/config.ts'
import { invalidConfig, NodeFailure } from './kit/failure.ts'
import { workedItem } from './kit/items.ts'
import type { NodeContext, NodeRunner } from './kit/node.ts'
import { getField } from './kit/paths.ts'

/**
 * XML: `parse` outputs {value}, `build` outputs {text}. `read` outputs what the XML in a field of its item says, and
 * `write` writes its item into a field. Invalid XML fails with InvalidInput.
 */
export const runXml: NodeRunner = async (context) => {
  const { config, evaluator, bindings } = context
  if (config.operation === 'read' || config.operation === 'write')
    return { output: await convertItem(context) }
  if (config.operation === 'parse') {
    const parse = await renderText(context, 'value')
    return {
      output: {
        value: await evaluator.convert({ kind: 'xml', parse, order: config.order === true }, bindings),
      },
    }
  }
  const value = await evaluator.render(config.value, bindings)
  if (!isObject(value)) throw invalidConfig('value', 'must be an object to build XML from')
  const build = JSON.stringify(value)
  return { output: { text: await evaluator.convert({ kind: 'xml', build }, bindings) } }
}

async function convertItem(context: NodeContext): Promise<unknown> {
  const { config, evaluator, bindings } = context
  const field = String(await evaluator.render(config.source, bindings))
  const options = (config.options ?? {}) as Record<string, unknown>
  const item = withoutFiles(workedItem(context))
  if (config.operation === 'write') {
    const text = await evaluator.convert(
      { kind: 'xml', write: JSON.stringify(item ?? {}), options },
      bindings,
    )
    return { [field]: text }
  }
  const text = getField(item, field, { dots: false })
  if (text === undefined)
    throw new NodeFailure(`Item has no JSON property called "${field}"`, { type: 'InvalidInput' })
  return evaluator.convert({ kind: 'xml', read: String(text), options }, bindings)
}
