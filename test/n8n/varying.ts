/**
 * Stands in a recording for a value that was another one the second time, by its type: a time, an id, a random text.
 * `any` stands for one that n8n alone can have, as the stack of an error: anything equals it, also nothing.
 */
type Varying = { $varies: string }

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const isAny = (recorded: unknown) => isRecord(recorded) && recorded.$varies === 'any'

const typeName = (value: unknown) => (value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value)

/** Texts that name files of n8n, as the stacks of its errors do. */
const isPlace = (value: unknown) => typeof value === 'string' && value.includes('/node_modules/')

/** The value with what is different the second time, or on another machine, replaced by a mark of its type. */
export function markVarying(first: unknown, second: unknown): unknown {
  if (isPlace(first)) return { $varies: 'any' } satisfies Varying
  if (first === null || typeof first !== 'object') {
    return Object.is(first, second) ? first : ({ $varies: typeName(first) } satisfies Varying)
  }
  if (Array.isArray(first) && Array.isArray(second) && first.length === second.length)
    return first.map((entry, i) => markVarying(entry, second[i]))
  if (isRecord(first) && isRecord(second)) {
    const keys = Object.keys(first)
    if (keys.length === Object.keys(second).length && keys.every((key) => key in second))
      return Object.fromEntries(keys.map((key) => [key, markVarying(first[key], second[key])]))
  }
  return { $varies: typeName(first) } satisfies Varying
}

/** Where the value first differs from the recorded one, as a path like `[0].name`; undefined if it does not. */
export function findDifference(recorded: unknown, value: unknown, path = ''): string | undefined {
  if (isAny(recorded)) return undefined
  if (isRecord(recorded) && typeof recorded.$varies === 'string')
    return recorded.$varies === typeName(value) ? undefined : path || '.'
  if (Array.isArray(recorded) && Array.isArray(value)) {
    for (const [i, entry] of recorded.entries()) {
      const found = i < value.length ? findDifference(entry, value[i], `${path}[${i}]`) : `${path}[${i}]`
      if (found) return found
    }
    return value.length > recorded.length ? `${path}[${recorded.length}]` : undefined
  }
  if (isRecord(recorded) && isRecord(value)) {
    for (const key of new Set([...Object.keys(recorded), ...Object.keys(value)])) {
      const inner = path === '' ? key : `${path}.${key}`
      if (isAny(recorded[key])) continue
      if (!Object.hasOwn(recorded, key) || !Object.hasOwn(value, key)) return inner
      const found = findDifference(recorded[key], value[key], inner)
      if (found) return found
    }
    return undefined
  }
  return Object.is(recorded, value) ? undefined : path || '.'
}
