import { isObject, setOwn } from '../../workflows/json.ts'
import { type Files, type OpenFile, readFileValue } from '../files/files.ts'
import { invalidConfig, NodeFailure } from '../nodes/kit/failure.ts'
import type { NodeContext } from '../nodes/kit/node.ts'

/** How many files a message may have. */
const MAX_FILES = 20

/** A file as a message has it: by the name that the message gives it, and with the id by which its HTML shows it. */
export type SentFile = OpenFile & { cid?: string }

/**
 * The files that a key of the config names: one, or a list of them; none if the node has no such key. Throws a
 * NodeFailure for what is no file of this execution, and if they are more than `mostBytes` together.
 */
export async function openFiles(
  { config, bindings, evaluator, files }: NodeContext,
  key: string,
  mostBytes: number,
): Promise<SentFile[]> {
  if (config[key] === undefined) return []
  const value = await evaluator.render(config[key], bindings)
  if (value === null || value === undefined) throw invalidConfig(key, 'must have a value, but it is empty')
  const list = Array.isArray(value) ? value : [value]
  if (list.length > MAX_FILES) throw invalidConfig(key, `must have at most ${MAX_FILES} files`)
  if (list.length > 0 && !files) throw new Error('only attempts have files')
  const opened: SentFile[] = []
  for (const [i, entry] of list.entries()) {
    const path = Array.isArray(value) ? `${key}[${i}]` : key
    opened.push(await openSent(files!, entry, path))
  }
  demandSize(opened, key, mostBytes)
  return opened
}

/** As openFiles, for an object whose values are the files. */
export async function openNamedFiles(
  { config, bindings, evaluator, files }: NodeContext,
  key: string,
  mostBytes: number,
): Promise<Record<string, SentFile>> {
  if (config[key] === undefined) return {}
  const value = await evaluator.render(config[key], bindings)
  if (!isObject(value) || readGiven(value))
    throw invalidConfig(
      key,
      'must be an object whose keys are the names of fields, and whose values are files',
    )
  const entries = Object.entries(value)
  if (entries.length > MAX_FILES) throw invalidConfig(key, `must have at most ${MAX_FILES} files`)
  if (entries.length > 0 && !files) throw new Error('only attempts have files')
  const opened: Record<string, SentFile> = {}
  for (const [name, entry] of entries) setOwn(opened, name, await openSent(files!, entry, `${key}.${name}`))
  demandSize(Object.values(opened), key, mostBytes)
  return opened
}

function demandSize(opened: SentFile[], key: string, mostBytes: number): void {
  const bytes = opened.reduce((sum, file) => sum + file.bytes, 0)
  if (bytes <= mostBytes) return
  throw new NodeFailure(`${key} has ${bytes} bytes in all; at most ${mostBytes} can be sent`, {
    type: 'FileTooLarge',
  })
}

/** The file that a value is, or that its `file` is. */
const readGiven = (value: unknown) => readFileValue(value) ?? readFileValue(Object(value).file)

async function openSent(files: Files, value: unknown, path: string): Promise<SentFile> {
  const file = readGiven(value)
  if (!file)
    throw invalidConfig(path, 'must be a file: {file: {id, name, mimeType, bytes}}, as nodes output it')
  const opened = await files.open(file)
  // What `$binary` shows of a file has its stored name under that key, and no `file`.
  const { fileName, cid } = Object(Object(value).file === undefined ? undefined : value)
  return {
    ...opened,
    ...(readLabel(fileName, `${path}.fileName`, 'name') ?? {}),
    ...(readLabel(cid, `${path}.cid`, 'cid') ?? {}),
  }
}

function readLabel(value: unknown, path: string, key: 'name' | 'cid'): { [key: string]: string } | undefined {
  if (value === undefined || value === null || value === '') return undefined
  if (typeof value !== 'string' || value.length > 255 || /\p{Cc}/u.test(value))
    throw invalidConfig(path, 'must be a single line of at most 255 characters')
  return { [key]: value }
}
