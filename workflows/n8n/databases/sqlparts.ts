import type { Fields } from '../ai/asking.ts'
import type { SourceNode } from '../document.ts'
import { isTemplate, plainText } from '../texts.ts'

/** What a node of ours does, and how its output becomes what n8n's is. */
export type MappedSql = {
  config: Fields
  /** JSONata that makes the items of `$item`, ours whole output. */
  shape: string
}

/** The items that n8n makes of the rows. Without any it says that it was done, unless it only looked. */
export function shapeRows({ type, version }: SourceNode, selects: boolean, rows = '$item.rows'): string {
  const isOld = version < 2
  if (isOld && type === 'postgres') return rows
  if (isOld) return '$count($item.columns) > 0 ? $item.rows : {"affectedRows": $item.rowCount}'
  return selects ? rows : `$count($item.rows) = 0 ? {"success": true} : ${rows}`
}

/** The name of a table with its schema, as the author wrote it. */
export function readTableNames({ parameters, type }: SourceNode): string[] {
  const names = type === 'postgres' ? [parameters.schema ?? 'public', parameters.table] : [parameters.table]
  return names.map((given) => {
    const value = typeof given === 'object' && given !== null ? (given as Fields).value : given
    if (isTemplate(value)) throw new Error('an expression names its table: write the name as it stands')
    const name = plainText(value) ?? ''
    if (name === '') throw new Error('it names no table')
    if (/\p{Cc}/u.test(name) || name.length > 128) throw new Error('the name of its table is not valid')
    return name
  })
}

/** The names of columns in an option, which is a list; undefined for all of them. */
export function readColumnNames(given: unknown): string[] | undefined {
  if (given === undefined) return undefined
  if (isTemplate(given) || (Array.isArray(given) && given.some(isTemplate)))
    throw new Error('an expression names its columns: write the names as they stand')
  const names = Array.isArray(given) ? given.map((one) => plainText(one) ?? '') : [plainText(given) ?? '']
  return names.length === 0 || names.includes('*') ? undefined : names
}
