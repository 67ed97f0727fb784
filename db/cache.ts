import type { Db } from './connection.ts'

/**
 * Something that a process keeps in memory for each database it talks to, such as a cache or a queue. Two
 * services in one process, as in the tests, never share it. `make` is called at the first use for a database.
 */
export function perDatabase<T extends object>(make: (db: Db) => T): (db: Db) => T {
  const kept = new WeakMap<Db, T>()
  return (db) => {
    let one = kept.get(db)
    if (!one) {
      one = make(db)
      kept.set(db, one)
    }
    return one
  }
}
