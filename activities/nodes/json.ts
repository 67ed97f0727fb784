import { createPacer } from '../expressions/pace.ts'
import { describeLarge, readJsonInTurns, readLargeNumbers } from '../reading/json.ts'
import { renderText } from './kit/config.ts'
import { NodeFailure } from './kit/failure.ts'
import { writeJson } from './kit/json.ts'
import type { NodeContext, NodeRunner } from './kit/node.ts'

/** JSON: `parse` outputs {value}, `format` outputs {text}. Invalid JSON fails with InvalidInput. */
export const runJson: NodeRunner = async (context) => {
  const { config, evaluator, bindings } = context
  if (config.operation === 'parse') return { output: { value: await parse(context) } }
  const value = (await evaluator.render(config.value, bindings)) ?? null
  const text = await writeJson(value, createPacer(), { indent: Number(config.indent ?? 0) })
  return { output: { text } }
}

async function parse(context: NodeContext): Promise<unknown> {
  const text = await renderText(context, 'value')
  try {
    const largeNumbers = readLargeNumbers(context.config)
    const read = await readJsonInTurns(text, createPacer(), largeNumbers)
    const message = describeLarge(read, largeNumbers)
    if (message) context.notes.add({ warnings: [{ path: 'config.value', message }] })
    return read.value
  } catch (error) {
    if (error instanceof NodeFailure) throw error
    // The message of JSON.parse quotes the text, which may hold a secret.
    throw new NodeFailure('value is not valid JSON', { type: 'InvalidInput' })
  }
}
