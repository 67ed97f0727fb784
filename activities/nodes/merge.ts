import { mergeInputs } from '../../workflows/inputs.ts'
import { invalidConfig } from './failure.ts'
import type { NodeRunner } from './node.ts'

/**
 * MERGE: `combine` outputs the inputs as one object, or their array where one is no object; `append` outputs one
 * array of all, in edge order, arrays among them flattened by one level.
 */
export const runMerge: NodeRunner = async ({ config, inputs }) => {
  const mode = config.mode ?? 'combine'
  if (mode === 'append') return { output: inputs.flat() }
  if (mode !== 'combine') throw invalidConfig('mode', 'must be combine or append')
  return { output: mergeInputs(inputs) }
}
