import { NodeFailure } from './kit/failure.ts'
import type { NodeRunner } from './kit/node.ts'

const MAX_MESSAGE = 2_000

/** STOP_AND_ERROR: fails with its rendered message, without a retry. */
export const runStopAndError: NodeRunner = async ({ config, bindings, evaluator }) => {
  const value = await evaluator.render(config.message, bindings)
  const text = typeof value === 'string' ? value : JSON.stringify(value ?? '')
  const message = /^(?:""|\s*)$/.test(text) ? 'Stopped without a message' : text.slice(0, MAX_MESSAGE)
  throw new NodeFailure(message, { type: 'StopAndError' })
}
