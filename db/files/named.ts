import { record } from '../change.ts'
import type { Store } from '../scope.ts'
import { copyFiles } from './files.ts'
import type { StoredFile } from './store.ts'

/** The ids of all files that values name, at whatever depth. */
export function findFileIds(...values: unknown[]): Set<string> {
  return new Set(findFiles(...values).map(({ id }) => id))
}

/** All files that values name, at whatever depth, each once. */
export function findFiles(...values: unknown[]): StoredFile[] {
  const files = new Map<string, StoredFile>()
  const open = values.filter(isHolder)
  for (let at = open.pop(); at; at = open.pop()) {
    const file = Object((at as { file?: unknown }).file)
    if (typeof file.id === 'string' && typeof file.mimeType === 'string') files.set(file.id, file)
    for (const item of Object.values(at)) if (isHolder(item)) open.push(item)
  }
  return [...files.values()]
}

function isHolder(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

/**
 * Copies the files that a value names from the execution that it comes from to another one of the team. Throws
 * TOO_LARGE if that would have too many, and a foreign key violation if it has been deleted.
 */
export async function copyNamedFiles(store: Store, from: string, to: string, value: unknown): Promise<void> {
  const ids = findFileIds(value)
  if (ids.size > 0) await record(store, (tx) => copyFiles(tx, from, to, ids))
}
