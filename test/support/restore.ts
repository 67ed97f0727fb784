/**
 * Runs before each test file: the files of a worker share its process, and some replace the global `fetch`, as the
 * thread that compares meanings does.
 */
const KEY = Symbol.for('perdure.test.fetch')
const kept = globalThis as unknown as Record<symbol, typeof globalThis.fetch | undefined>

kept[KEY] ??= globalThis.fetch
globalThis.fetch = kept[KEY]
