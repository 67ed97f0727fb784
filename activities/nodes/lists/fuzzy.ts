import { areEqual } from '../kit/paths.ts'

export type Comparison = (a: unknown, b: unknown) => boolean

/**
 * How values are compared: exactly, or with `fuzzy` so that what means the same in different types is equal:
 * 1 and "1", true and "true", an empty string and nothing. With `zeros`, null and 0 are equal too.
 */
export function chooseComparison(fuzzy: boolean, zeros = false): Comparison {
  return fuzzy ? (a, b) => areAlike(a, b, zeros) : areEqual
}

function areAlike(a: unknown, b: unknown, zeros: boolean): boolean {
  if (a !== null && b !== null && typeof a === typeof b) return areEqual(a, b)
  return isAlike(a, b, zeros) || isAlike(b, a, zeros) || areEqual(a, b)
}

function isAlike(a: unknown, b: unknown, zeros: boolean): boolean {
  if (zeros && a === null && (b === null || b === 0 || b === '0')) return true
  if (isNothing(a)) return isNothing(b) || b === undefined
  if (typeof b === 'string') {
    if (typeof a === 'number') return String(a) === b
    if (typeof a === 'boolean') return b.toLowerCase() === String(a) || b === (a ? '1' : '0')
    if (typeof a === 'object') return isJsonOf(b, a)
  }
  return typeof a === 'boolean' && typeof b === 'number' && b === Number(a)
}

function isNothing(value: unknown): boolean {
  return value === null || value === '' || (Array.isArray(value) && value.length === 0)
}

function isJsonOf(text: string, value: unknown): boolean {
  try {
    return areEqual(JSON.parse(text), value)
  } catch {
    return false
  }
}
