import { type OpenFile, readFileValue } from '../files/files.ts'
import { invalidConfig, NodeFailure } from '../nodes/kit/failure.ts'
import type { NodeContext } from '../nodes/kit/node.ts'

/** How many files a message may have. */
const MAX_FILES = 20

/**
 * The files that a key of the config names: one, or a list of them; none if the node has no such key. Throws a
 * NodeFailure for what is no file of this execution, and if they are more than `mostBytes` together.
 */
export async function openFiles(
  { config, bindings, evaluator, files }: NodeContext,
  key: string,
  mostBytes: number,
): Promise<OpenFile[]> {
  if (config[key] === undefined) return []
  const value = await evaluator.render(config[key], bindings)
  if (value === null || value === undefined) throw invalidConfig(key, 'must have a value, but it is empty')
  const list = Array.isArray(value) ? value : [value]
  if (list.length > MAX_FILES) throw invalidConfig(key, `must have at most ${MAX_FILES} files`)
  if (list.length > 0 && !files) throw new Error('only attempts have files')
  const opened: OpenFile[] = []
  for (const [i, entry] of list.entries()) {
    const path = Array.isArray(value) ? `${key}[${i}]` : key
    const file = readFileValue(entry)
    if (!file)
      throw invalidConfig(path, 'must be a file: {file: {id, name, mimeType, bytes}}, as nodes output it')
    opened.push(await files!.open(file))
  }
  const bytes = opened.reduce((sum, file) => sum + file.bytes, 0)
  if (bytes <= mostBytes) return opened
  throw new NodeFailure(`${key} has ${bytes} bytes in all; at most ${mostBytes} can be sent`, {
    type: 'FileTooLarge',
  })
}
