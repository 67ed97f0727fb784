import type { Files, OpenFile } from '../../files/files.ts'
import { readFileValue } from '../../files/files.ts'
import { invalidConfig } from './failure.ts'
import type { NodeContext } from './node.ts'

/** The files of the execution. Only attempts have them. */
export function demandFiles({ files }: NodeContext): Files {
  if (!files) throw new Error('a node that works on files is no attempt')
  return files
}

/** The file that a setting gives. Throws a NodeFailure: InvalidConfig for what is none, or FileMissing. */
export async function openGiven(context: NodeContext, key: string): Promise<OpenFile> {
  const given = await context.evaluator.render(context.config[key], context.bindings)
  const file = readFileValue(given)
  if (!file) throw invalidConfig(key, 'must be a file: {file: {id, name, mimeType, bytes}}')
  return demandFiles(context).open(file)
}
