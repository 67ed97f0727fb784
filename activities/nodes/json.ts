import { readText } from './config.ts'
import { NodeFailure } from './failure.ts'
import type { NodeContext, NodeRunner } from './node.ts'

/** JSON: `parse` outputs {value} of a text, `format` {text} of a value. Fails for what is no JSON (InvalidInput). */
export const runJson: NodeRunner = async (context) => {
  const { config, evaluator, bindings } = context
  if (config.operation === 'parse') return { output: { value: await parse(context) } }
  const value = (await evaluator.render(config.value, bindings)) ?? null
  return { output: { text: JSON.stringify(value, null, Number(config.indent ?? 0)) } }
}

async function parse(context: NodeContext): Promise<unknown> {
  const text = await readText(context, 'value')
  try {
    return JSON.parse(text)
  } catch {
    // The engine's own message quotes the text, which may hold a secret.
    throw new NodeFailure('value is no JSON', { type: 'InvalidInput' })
  }
}
