import { mergeInputs } from '../../workflows/input.ts'
import { invalidConfig } from './kit/failure.ts'
import type { NodeRunner } from './kit/node.ts'

/**
 * MERGE: `combine` outputs all inputs merged into one object, or an array of them if any is not an object; a
 * single input is passed on. `append` outputs one array of all inputs in edge order; inputs that are arrays
 * are flattened by one level.
 */
export const runMerge: NodeRunner = async ({ config, inputs }) => {
  const mode = config.mode ?? 'combine'
  if (mode === 'append') return { output: inputs.flat() }
  if (mode !== 'combine') throw invalidConfig('mode', 'must be combine or append')
  return { output: mergeInputs(inputs) }
}
