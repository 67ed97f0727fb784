import { isObject, setOwn } from '../../../workflows/json.ts'

/** How a field of an item is named: by a path such as `address.city` or `rows[0].id`, or by its plain name. */
export type Naming = { dots: boolean }

const MAX_STEPS = 200
const STEP =
  /[^.[\]]+|\[(?:(-?\d+(?:\.\d+)?)|(["'])((?:(?!\2)[^\\]|\\.)*?)\2)\]|(?=(?:\.|\[\])(?:\.|\[\]|$))/g
const FORBIDDEN = new Set(['__proto__', 'constructor', 'prototype'])

/** The keys of a path. A name that the value itself has is one key, whatever dots it has. */
function readPath(value: unknown, name: string, { dots }: Naming): string[] {
  if (!dots || !/[.[\]]/.test(name) || hasKey(value, name)) return [name]
  const keys: string[] = name.startsWith('.') ? [''] : []
  for (const [found, index, quote, text] of name.matchAll(STEP)) {
    if (keys.length === MAX_STEPS) break
    keys.push(quote ? text!.replace(/\\(\\)?/g, '$1') : (index ?? found))
  }
  return keys
}

function hasKey(value: unknown, key: string): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, key)
}

/** The value of a field; undefined if the item lacks it. */
export function getField(item: unknown, name: string, naming: Naming = { dots: true }): unknown {
  let value = item
  for (const key of readPath(item, name, naming)) {
    if (!hasKey(value, key)) return undefined
    value = value[key]
  }
  return value
}

/** Sets a field of an item that is not shared, and makes the objects and arrays on the way to it. */
export function setField(
  item: Record<string, unknown>,
  name: string,
  value: unknown,
  naming: Naming = { dots: true },
): void {
  const keys = readPath(item, name, naming)
  if (naming.dots && keys.some((key) => FORBIDDEN.has(key))) return
  let at = item
  for (const [i, key] of keys.entries()) {
    if (i === keys.length - 1) {
      setOwn(at, key, value)
      return
    }
    const inner = hasKey(at, key) ? at[key] : undefined
    if (typeof inner !== 'object' || inner === null)
      setOwn(at, key, /^(?:0|[1-9]\d{0,4})$/.test(keys[i + 1]!) ? [] : {})
    at = at[key] as Record<string, unknown>
  }
}

/** Removes a field of an item that is not shared. */
export function unsetField(
  item: Record<string, unknown>,
  name: string,
  naming: Naming = { dots: true },
): void {
  const keys = readPath(item, name, naming)
  let at: unknown = item
  for (const key of keys.slice(0, -1)) {
    if (!hasKey(at, key)) return
    at = at[key]
  }
  const last = keys.at(-1)!
  if (hasKey(at, last)) delete at[last]
}

/** A copy of a JSON value that shares nothing with it. */
export function copyValue<T>(value: T): T {
  return typeof value === 'object' && value !== null ? structuredClone(value) : value
}

/** Whether two JSON values are equal, whatever the order of their keys. */
export function areEqual(a: unknown, b: unknown): boolean {
  if (a === b || (Number.isNaN(a) && Number.isNaN(b))) return true
  if (Array.isArray(a) || Array.isArray(b)) {
    return (
      Array.isArray(a) &&
      Array.isArray(b) &&
      a.length === b.length &&
      a.every((one, i) => areEqual(one, b[i]))
    )
  }
  if (!isObject(a) || !isObject(b)) return false
  const keys = Object.keys(a)
  return (
    keys.length === Object.keys(b).length &&
    keys.every((key) => Object.hasOwn(b, key) && areEqual(a[key], b[key]))
  )
}

/** Whether `a` comes before `b` as JavaScript compares them: strings by code units, all else as numbers. */
export function isLess(a: unknown, b: unknown): boolean {
  if (typeof a === 'string' && typeof b === 'string') return a < b
  return toNumber(a) < toNumber(b)
}

function toNumber(value: unknown): number {
  if (typeof value !== 'object' || value === null) return Number(value)
  return Array.isArray(value) && value.length < 2 ? Number(value) : Number.NaN
}
