import { isObject } from '../../workflows/inputs.ts'
import { readText } from './config.ts'
import { invalidConfig } from './failure.ts'
import type { NodeRunner } from './node.ts'

/** XML: `parse` outputs {value}, `build` {text} of an object. Fails for what is no XML (InvalidInput). */
export const runXml: NodeRunner = async (context) => {
  const { config, evaluator, bindings } = context
  if (config.operation === 'parse') {
    const parse = await readText(context, 'value')
    return { output: { value: await evaluator.convert({ kind: 'xml', parse }, bindings) } }
  }
  const value = await evaluator.render(config.value, bindings)
  if (!isObject(value)) throw invalidConfig('value', 'must be an object to build XML of')
  const build = JSON.stringify(value)
  return { output: { text: await evaluator.convert({ kind: 'xml', build }, bindings) } }
}
