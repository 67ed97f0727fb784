import { perDatabase } from '../cache.ts'
import type { Store } from '../scope.ts'

/** A chain that was found broken. `unaudited` is an act that was done although no chain could take its entry. */
export type Alarm = { teamId: string; why: string; unaudited?: Record<string, unknown> }

type KnownAlarms = { broken: Map<string, string>; tell: (alarm: Alarm) => void }

const knownOf = perDatabase((): KnownAlarms => ({ broken: new Map(), tell: () => {} }))

/** Has this process tell of each chain that it finds broken, once, and of each act that has no entry. */
export function onBrokenChain(store: Store, tell: (alarm: Alarm) => void): void {
  knownOf(store.db).tell = tell
}

export function raiseAlarm(store: Store, alarm: Alarm): void {
  const { broken, tell } = knownOf(store.db)
  const known = broken.has(alarm.teamId)
  broken.set(alarm.teamId, alarm.why)
  if (!known || alarm.unaudited) tell(alarm)
}

export function endAlarm(store: Store, teamId: string): void {
  knownOf(store.db).broken.delete(teamId)
}

/** The chains that this process has found broken. */
export function listBroken(store: Store): string[] {
  return [...knownOf(store.db).broken.keys()]
}
