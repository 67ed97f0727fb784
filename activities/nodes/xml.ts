import { isObject } from '../../workflows/json.ts'
import { renderText } from './kit/config.ts'
import { invalidConfig } from './kit/failure.ts'
import type { NodeRunner } from './kit/node.ts'

/** XML: `parse` outputs {value}, `build` outputs {text}. Invalid XML fails with InvalidInput. */
export const runXml: NodeRunner = async (context) => {
  const { config, evaluator, bindings } = context
  if (config.operation === 'parse') {
    const parse = await renderText(context, 'value')
    return { output: { value: await evaluator.convert({ kind: 'xml', parse }, bindings) } }
  }
  const value = await evaluator.render(config.value, bindings)
  if (!isObject(value)) throw invalidConfig('value', 'must be an object to build XML from')
  const build = JSON.stringify(value)
  return { output: { text: await evaluator.convert({ kind: 'xml', build }, bindings) } }
}
