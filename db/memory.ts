import { LRUCache } from 'lru-cache'
import type { Bus } from './bus.ts'
import { perDatabase } from './cache.ts'
import { type Db, hearOwnChanges } from './connection.ts'

/** Told where anything may have changed, because very much has. */
export const EVERYTHING = 'everything'

/**
 * What a text that triggers tell is about (migration 0102): a person with their sessions, tokens and memberships, the plan
 * of a team, or a workflow's row.
 */
type About = `${'rights' | 'plan' | 'workflow'}:${string}`

const CHANGE = /^(rights|plan|workflow):/

/** What is remembered counts only if all that was told until so long ago has been heard: less than a second. */
const MAX_SILENCE_MS = 800

/** All is read again after so long, in case a change was not told, as while a backup was restored. */
const MAX_AGE_MS = 60_000

/**
 * Rows of one kind in the memory of this process, each with what changes it. A change by this process is heard before the
 * one who committed it goes on, one by others over the bus.
 */
export type Memory<V> = {
  /** What is remembered, unless others may have changed it more than a second ago; else undefined: read the database. */
  find(key: string): V | undefined
  /** What was read last, true or not: for those who check it where they write. */
  findLast(key: string): V | undefined
  /**
   * To be called before a read. The returned function remembers what was read, unless anything has changed since;
   * `until` is when it ends by itself, in performance.now(). Others get the same object, so it must not be changed.
   */
  begin(): (key: string, value: V, about: About, until?: number | null) => void
}

/** `until` is in performance.now(), which stands still while the machine sleeps; `untilDate` in Date.now(). */
type Entry<V> = { value: V; about: About; until: number; untilDate: number }

/** What the memories of one database share. */
type Changes = {
  /** The number of changes that were heard. */
  epoch: number
  /** Each drops what a change is about; all of it for null. */
  drops: Set<(about: string | null) => void>
  /** Until when all that was told has been heard, in performance.now(). */
  heardUntil: () => number
  buses: WeakSet<object>
}

const changesOf = perDatabase((db): Changes => {
  const changes: Changes = {
    epoch: 0,
    drops: new Set(),
    heardUntil: () => Number.NEGATIVE_INFINITY,
    buses: new WeakSet(),
  }
  hearOwnChanges(db, (text) => hearChange(changes, text))
  return changes
})

function hearChange(changes: Changes, text: string | null): void {
  const whole = text === null || text === EVERYTHING
  if (!whole && !CHANGE.test(text)) return
  changes.epoch++
  for (const drop of changes.drops) drop(whole ? null : text)
}

/** Lets a process remember rows of the database, for as long as its bus hears of their changes. */
export function rememberWith(db: Db, bus: Pick<Bus, 'onTold' | 'heardUntil'>): void {
  const changes = changesOf(db)
  changes.heardUntil = () => bus.heardUntil()
  if (changes.buses.has(bus)) return
  changes.buses.add(bus)
  bus.onTold((text) => hearChange(changes, text))
}

/** Makes a memory of at most `max` rows for each database. */
export function createMemory<V>(max: number): (db: Db) => Memory<V> {
  return perDatabase((db) => {
    const changes = changesOf(db)
    const keys = new Map<string, Set<string>>()
    const entries = new LRUCache<string, Entry<V>>({
      max,
      dispose: ({ about }, key) => {
        const same = keys.get(about)
        if (same?.delete(key) && same.size === 0) keys.delete(about)
      },
    })
    changes.drops.add((about) => {
      if (about === null) entries.clear()
      else for (const key of [...(keys.get(about) ?? [])]) entries.delete(key)
    })
    return {
      find(key) {
        const now = performance.now()
        // Asked also where nothing is remembered: what is read now can then be used the next time.
        const certain = now - changes.heardUntil() < MAX_SILENCE_MS
        const entry = entries.get(key)
        const valid = entry && now < entry.until && Date.now() < entry.untilDate
        return certain && valid ? entry.value : undefined
      },
      findLast: (key) => entries.get(key)?.value,
      begin() {
        const { epoch } = changes
        const latest = performance.now() + MAX_AGE_MS
        return (key, value, about, until) => {
          if (changes.epoch !== epoch) return
          const end = Math.min(latest, until ?? latest)
          entries.set(key, { value, about, until: end, untilDate: Date.now() + end - performance.now() })
          const same = keys.get(about)
          if (same) same.add(key)
          else keys.set(about, new Set([key]))
        }
      },
    }
  })
}
