export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Merges the objects into a new one; for a repeated key, the last object wins. */
export function mergeObjects(objects: Record<string, unknown>[]): Record<string, unknown> {
  const merged: Record<string, unknown> = {}
  for (const object of objects) {
    for (const key of Object.keys(object)) setOwn(merged, key, object[key])
  }
  return merged
}

/** A table's value by a key from outside: undefined for "constructor" and the like, which every object inherits. */
export function getOwn<T>(table: Record<string, T>, key: string): T | undefined {
  return Object.hasOwn(table, key) ? table[key] : undefined
}

/** Sets an own property. A plain assignment to `__proto__` would set the prototype instead. */
export function setOwn(target: Record<string, unknown>, key: string, value: unknown): void {
  if (key !== '__proto__') target[key] = value
  else Object.defineProperty(target, key, { value, writable: true, enumerable: true, configurable: true })
}
