import type { NodeRunner } from './node.ts'

/** TEMPLATE: outputs {text}; nothing is an empty one, and what is no text is JSON. */
export const runTemplate: NodeRunner = async ({ config, bindings, evaluator }) => {
  const value = (await evaluator.render(config.text, bindings)) ?? ''
  return { output: { text: typeof value === 'string' ? value : JSON.stringify(value) } }
}
