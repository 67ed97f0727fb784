/**
 * `$input` from the outputs of the nodes before, in edge order: of one its output; of several objects one object,
 * where the later edge wins; if one is no object, the array of all; of none null.
 */
export function mergeInputs(values: unknown[]): unknown {
  if (values.length === 0) return null
  if (values.length === 1) return values[0]
  return values.every(isObject) ? mergeObjects(values) : values
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** One object of all keys; the later one wins. */
export function mergeObjects(objects: Record<string, unknown>[]): Record<string, unknown> {
  const merged: Record<string, unknown> = {}
  for (const object of objects) {
    for (const key of Object.keys(object)) setOwn(merged, key, object[key])
  }
  return merged
}

/** Sets an own property, also for `__proto__`, which a plain assignment would take for the prototype. */
export function setOwn(target: Record<string, unknown>, key: string, value: unknown): void {
  if (key !== '__proto__') target[key] = value
  else Object.defineProperty(target, key, { value, writable: true, enumerable: true, configurable: true })
}
