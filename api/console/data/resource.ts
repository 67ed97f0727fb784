import { type QueryFunction, type UseQueryOptions, useQuery } from '@tanstack/react-query'
import { queries } from './client.ts'

type Options<T> = Omit<UseQueryOptions<T>, 'queryKey' | 'queryFn'>

/** What a hook reads: `Data<typeof useChannels>[number]`. */
export type Data<Hook extends (...given: never[]) => { data: unknown }> = NonNullable<
  ReturnType<Hook>['data']
>

/**
 * The reads and writes of a noun: results are kept under keys that begin with it, and a write makes them be read again.
 */
export function resource(noun: string) {
  const refresh = (...key: unknown[]): Promise<void> =>
    queries.invalidateQueries({ queryKey: [noun, ...key] })
  return {
    /** Reads again what is kept under the key, or all of the noun. */
    refresh,
    /** A key that begins with an empty id, such as that of no team, is not asked for. */
    useRead<T>(key: readonly unknown[], ask: QueryFunction<T>, options: Options<T> = {}) {
      return useQuery<T>({ queryKey: [noun, ...key], queryFn: ask, enabled: key[0] !== '', ...options })
    },
    /** Waits for a write, and then refreshes. */
    async write<T>(asked: Promise<T>, ...key: unknown[]): Promise<T> {
      const done = await asked
      await refresh(...key)
      return done
    },
  }
}
