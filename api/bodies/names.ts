/** An object with one key per name. A name that is given more than once gets an array of its values. */
export function collectByName<T>(entries: Iterable<readonly [string, T]>): Record<string, T | T[]> {
  const byName = Map.groupBy(entries, ([name]) => name)
  byName.delete('__proto__')
  return Object.fromEntries(
    [...byName].map(([name, given]) => [
      name,
      given.length === 1 ? given[0]![1] : given.map(([, value]) => value),
    ]),
  )
}
