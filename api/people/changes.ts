import type { Bus } from '../../db/bus.ts'

const TELL = 'rights:'

/** Tells all processes that somebody may have lost a right, so that what they read is looked at again at once. */
export function tellRightsChange(bus: Bus, userId: string): void {
  bus.tell(TELL + userId)
}

/** Watches in one process who may have lost a right. */
export function createRightsWatch(bus: Bus) {
  const watching = new Map<string, Set<() => void>>()
  bus.onTold((text) => {
    if (!text?.startsWith(TELL)) return
    for (const check of [...(watching.get(text.slice(TELL.length)) ?? [])]) check()
  })
  return {
    /** Calls `check` whenever this person, with their tokens, may have lost a right. Returns what ends that. */
    watch(userId: string, check: () => void): () => void {
      const checks = watching.get(userId) ?? new Set()
      watching.set(userId, checks.add(check))
      return () => {
        if (checks.delete(check) && checks.size === 0) watching.delete(userId)
      }
    },
  }
}
