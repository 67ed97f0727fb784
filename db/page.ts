import { type SelectQueryBuilder, sql } from 'kysely'

/** A page of a list: `number` counts from 0. */
export type Page<T> = {
  content: T[]
  totalElements: number
  totalPages: number
  number: number
  size: number
}

/** Which page is requested: `page` counts from 0, `size` is 1 to 100. */
export type PageRequest = { page: number; size: number }

/** A page in the form that every list of the API has. */
export function makePage<T>(content: T[], totalElements: number, { page, size }: PageRequest): Page<T> {
  return { content, totalElements, totalPages: Math.ceil(totalElements / size), number: page, size }
}

/** How many rows a query finds, on all pages together. */
export async function countRows<D, T extends keyof D>(
  found: SelectQueryBuilder<D, T, object>,
): Promise<number> {
  const counted = await found.select(sql<number>`count(*)`.as('total')).executeTakeFirstOrThrow()
  return (counted as { total: number }).total
}

/** A pattern for `ilike` that finds a text anywhere: its wildcards are plain characters. */
export function containing(text: string): string {
  return `%${text.replace(/[\\%_]/g, '\\$&')}%`
}

/** A page of a list that is in memory: of the entries in whose `text` the search is found, whatever its case. */
export function cutPage<T>(
  all: readonly T[],
  { search, page, size }: PageRequest & { search?: string | undefined },
  text: (one: T) => string,
): Page<T> {
  const wanted = search?.toLowerCase() ?? ''
  const found = wanted === '' ? all : all.filter((one) => text(one).toLowerCase().includes(wanted))
  return makePage(found.slice(page * size, (page + 1) * size), found.length, { page, size })
}
