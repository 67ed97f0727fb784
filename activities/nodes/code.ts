import { readCode } from '../../workflows/javascript/code.ts'
import { DEFAULT_CODE_MS, DEFAULT_MEMORY_MB } from '../../workflows/javascript/limits.ts'
import { isObject } from '../../workflows/json.ts'
import type { NodeNotes } from '../../workflows/run/records.ts'
import { NodeFailure } from './kit/failure.ts'
import { readItems } from './kit/items.ts'
import type { NodeContext, NodeRunner } from './kit/node.ts'

/**
 * CODE: with mode `all` outputs what the code returns, a list as {items}; with mode `each` {items}, what it
 * returns for each item, null for nothing. What it writes with `console` is in the notes.
 */
export const runCode: NodeRunner = async (context) => {
  const { config, bindings, evaluator } = context
  const { code, mode, timeoutMs = DEFAULT_CODE_MS, memoryMb = DEFAULT_MEMORY_MB } = config as Config
  const reads = readCode(code)
  const [problem] = reads.problems
  if (problem !== undefined) throw new NodeFailure(`the code, ${problem}`, { type: 'CodeFailed' })
  const items = mode === 'each' ? await findItems(context) : undefined
  const { value, console } = await evaluator.run({ text: code, reads, items, timeoutMs, memoryMb }, bindings)
  const notes: NodeNotes = console.length > 0 ? { console } : {}
  if (value === undefined) notes.warnings = [{ path: 'config.code', message: 'the code returned nothing' }]
  const output = Array.isArray(value) ? { items: value } : (value ?? null)
  return { output, ...(Object.keys(notes).length > 0 ? { notes } : {}) }
}

type Config = {
  code: string
  mode?: 'all' | 'each'
  timeoutMs?: number
  memoryMb?: number
}

/** The config's items; else those of the input: its `items`, the elements of a list, or the input as the only one. */
async function findItems(context: NodeContext): Promise<unknown[]> {
  const { config, input } = context
  if (config.items !== undefined) return readItems(context)
  if (Array.isArray(input)) return input
  if (isObject(input) && Array.isArray(input.items)) return input.items
  return input === null || input === undefined ? [] : [input]
}
