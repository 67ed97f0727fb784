// The files of an item, as n8n has them in `binary` beside `json`. Here an item is its JSON, and its files are in it under
// `$binary`: an object of file values by their names. The rule, at its one home:
// - Expressions and code never see that key: `$json` is the item without it, `$binary` and `.binary` are its files.
// - A node that passes its item on passes them too, through branches, loops, pauses and sub-workflows. One that makes
//   an item anew drops them, but for the settings that say otherwise (SET, SPLIT, AGGREGATE: `files`).
// - Items that are merged have the files of all of them; of the same name that whose fields win.
// - Files are no data: what compares, counts, writes or answers with whole items leaves them out.
import { isObject } from './json.ts'

export const FILES_KEY = '$binary'

/** The files of an item, by their names: each a value {file: {id, name, mimeType, bytes}}. */
export type ItemFiles = Record<string, unknown>

/** The files of an item; undefined if it has none. A field of users that has the key but no files is data. */
export function filesOf(item: unknown): ItemFiles | undefined {
  if (!isObject(item) || !Object.hasOwn(item, FILES_KEY)) return undefined
  const files = item[FILES_KEY]
  if (!isObject(files)) return undefined
  const all = Object.values(files)
  return all.length > 0 && all.every(isFile) ? files : undefined
}

/** The item without its files: itself if it has none. */
export function withoutFiles<T>(item: T): T {
  if (filesOf(item) === undefined) return item
  const { [FILES_KEY]: _, ...rest } = item as Record<string, unknown>
  return rest as T
}

/** A copy of the item with these files in place of its own; without any it has none. */
export function withFiles(
  item: Record<string, unknown>,
  files: ItemFiles | undefined,
): Record<string, unknown> {
  const bare = withoutFiles(item)
  return files && Object.keys(files).length > 0 ? { ...bare, [FILES_KEY]: files } : bare
}

/** The files of several items together: of the same name that of the last one. */
export function joinFiles(items: unknown[]): ItemFiles | undefined {
  const all = items.flatMap((item) => filesOf(item) ?? [])
  return all.length === 0 ? undefined : Object.assign({}, ...all)
}

function isFile(value: unknown): boolean {
  const { id, name, mimeType } = Object(Object(value).file)
  return typeof id === 'string' && typeof name === 'string' && typeof mimeType === 'string'
}
