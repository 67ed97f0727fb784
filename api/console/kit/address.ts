import { useMemo, useSyncExternalStore } from 'react'

type Query = Record<string, string>

function listen(tell: () => void) {
  addEventListener('hashchange', tell)
  return () => removeEventListener('hashchange', tell)
}

/** The part of the address after the #. */
function readHash(): string {
  return location.hash.slice(1) || '/'
}

function readPath(): string {
  return readHash().split('?')[0]!
}

function readSearch(): string {
  return readHash().split('?')[1] ?? ''
}

let mayLeave: (to: string) => boolean = () => true

/** Asked before another page is gone to, until the function that it returns is called. */
export function guardLeaving(ask: (to: string) => boolean): () => void {
  mayLeave = ask
  return () => {
    mayLeave = () => true
  }
}

/** Goes to a page of the console. */
export function go(to: string, options: { replace?: boolean } = {}): void {
  if (!mayLeave(to)) return
  if (!options.replace) location.hash = to
  else {
    // Without the event that a change of the hash makes, the page would not notice.
    history.replaceState(history.state, '', `#${to}`)
    dispatchEvent(new HashChangeEvent('hashchange'))
  }
}

/** Where the console is, for wouter: its pages stand after the #, as they always did. */
export function useHash(): [string, typeof go] {
  return [useSyncExternalStore(listen, readPath), go]
}
useHash.hrefs = (to: string) => `#${to}`
useHash.searchHook = () => useSyncExternalStore(listen, readSearch)

/** The address of a page with these parts of a query; empty ones are left out. */
export function linkWith(path: string, query: Record<string, string | number | undefined>): string {
  const kept = Object.entries(query).flatMap(([key, value]) =>
    value === undefined || value === '' || (key === 'page' && Number(value) === 0)
      ? []
      : [[key, String(value)]],
  )
  const text = new URLSearchParams(kept).toString()
  return text ? `${path}?${text}` : path
}

/**
 * Filters in the address: `const [query, setQuery, linkTo] = useQueryState({ status: '', page: '' })`. What equals
 * its default is left out of the address. A change goes onto what the address says now, and back to the first page.
 */
export function useQueryState<Defaults extends Query>(defaults: Defaults) {
  const search = useHash.searchHook()
  // The names and defaults are constants of a page.
  // biome-ignore lint/correctness/useExhaustiveDependencies: see above
  return useMemo(() => {
    const query = readQuery(search, defaults)
    const linkTo = (change: Partial<{ [Key in keyof Defaults]: string | number }>) => {
      const next = {
        ...readQuery(readSearch(), defaults),
        ...('page' in defaults ? { page: '' } : {}),
        ...change,
      }
      const kept = Object.entries(next).map(([key, value]) => [key, value === defaults[key] ? '' : value])
      return linkWith(readPath(), Object.fromEntries(kept))
    }
    const set = (change: Parameters<typeof linkTo>[0], options?: { replace?: boolean }) =>
      go(linkTo(change), options)
    return [query, set, linkTo] as const
  }, [search])
}

function readQuery<Defaults extends Query>(
  search: string,
  defaults: Defaults,
): { [Key in keyof Defaults]: string } {
  const given = new URLSearchParams(search)
  const read = Object.entries(defaults).map(([key, value]) => [key, given.get(key) ?? value])
  return Object.fromEntries(read)
}

/** The number of a page out of the address. */
export function readPage(text: string): number {
  return /^\d{1,6}$/.test(text) ? Number(text) : 0
}
