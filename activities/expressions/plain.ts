import { setOwn } from '../../workflows/json.ts'

const FLAGS = ['_jsonata_lambda', '_jsonata_function']

/**
 * A result of JSONata as plain JSON, without functions, flags on sequences and JSONata's own kinds of arrays;
 * undefined if it found nothing. Throws an Error for NaN and infinite numbers, which JSON cannot hold.
 */
export function toPlain(value: unknown): unknown {
  if (typeof value === 'number' && !Number.isFinite(value))
    throw new Error('the result is not a finite number')
  if (typeof value === 'function') return undefined
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return Array.from(value, (item) => toPlain(item) ?? null)
  if (isFunction(value)) return undefined
  const plain: Record<string, unknown> = {}
  for (const key of Object.keys(value)) {
    const item = toPlain((value as Record<string, unknown>)[key])
    if (item !== undefined) setOwn(plain, key, item)
  }
  return plain
}

/** Whether a value of JSONata is a function. */
export function isFunction(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return typeof value === 'function'
  return FLAGS.some((flag) => Object.hasOwn(value, flag))
}
