import type { NodeRunner } from './kit/node.ts'

/** TEMPLATE: outputs {text}, the rendered string. Null becomes an empty string, other values JSON. */
export const runTemplate: NodeRunner = async ({ config, bindings, evaluator }) => {
  const value = (await evaluator.render(config.text, bindings)) ?? ''
  return { output: { text: typeof value === 'string' ? value : JSON.stringify(value) } }
}
