import type { Bus } from '../../db/bus.ts'
import { EVERYTHING } from '../../db/memory.ts'

/** Triggers of the database tell the same when the rights of a person change (migrations 0093 and 0102). */
const TELL = 'rights:'

/**
 * Tells all processes that visitors of a widget may have lost a right, so that every stream to them is checked again at
 * once.
 */
export function tellRightsChange(bus: Bus, widgetId: string): void {
  bus.tell(TELL + widgetId)
}

/** The watch over losses of rights. */
export type RightsWatch = {
  /** Calls `check` whenever this person, with their tokens, may have lost a right. Returns what ends that. */
  watch(userId: string, check: () => void): () => void
  /** The number of told losses: if it is equal later, no right was lost in between. */
  seen(): number
}

const watches = new WeakMap<Bus, RightsWatch>()

/** Watches in one process who may have lost a right: one watch for each bus. */
export function watchRightsOn(bus: Bus): RightsWatch {
  const known = watches.get(bus) ?? createRightsWatch(bus)
  watches.set(bus, known)
  return known
}

function createRightsWatch(bus: Bus): RightsWatch {
  const watching = new Map<string, Set<() => void>>()
  let seen = 0
  bus.onTold((text) => {
    // After a time without PostgreSQL, any person may have lost a right.
    const anyone = text === null || text === EVERYTHING
    if (!anyone && !text.startsWith(TELL)) return
    seen++
    const concerned = anyone ? [...watching.values()] : [watching.get(text.slice(TELL.length)) ?? []]
    for (const checks of concerned) for (const check of [...checks]) check()
  })
  return {
    seen: () => seen,
    watch(userId, check) {
      const checks = watching.get(userId) ?? new Set()
      watching.set(userId, checks.add(check))
      return () => {
        if (checks.delete(check) && checks.size === 0) watching.delete(userId)
      }
    },
  }
}
