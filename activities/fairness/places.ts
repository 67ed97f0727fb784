import type { Returns } from './returns.ts'

/**
 * Places of one kind in this process, such as the slots for attempts. A team never has more than half of them,
 * whether others wait or not, so that others find one at once.
 */
export type Places = {
  /** Takes a place for the team; if it has its half already, says when to come again. */
  take(team: string): HeldPlace | TurnedAway
  /** How many places each team has now. */
  read(): ReadonlyMap<string, number>
}

/**
 * `served: false` means that the holder did not get what it came for and will come again, so it is not counted as
 * served.
 */
type HeldPlace = { leave(served?: boolean): void }
type TurnedAway = { comeAgainMs: number }

export function createPlaces(all: number, returns: Returns): Places {
  const half = halfOf(all)
  const taken = new Map<string, number>()

  function add(team: string, count: number): void {
    const now = (taken.get(team) ?? 0) + count
    if (now === 0) taken.delete(team)
    else taken.set(team, now)
  }

  return {
    read: () => taken,
    take(team) {
      if ((taken.get(team) ?? 0) >= half) return { comeAgainMs: returns.turnAway(team) }
      add(team, 1)
      return {
        leave(served = true) {
          add(team, -1)
          if (served) returns.served(team)
        },
      }
    },
  }
}

/** The most that one team may have of something that all teams share: half, but one at least. */
export function halfOf(all: number): number {
  return Math.max(1, Math.floor(all / 2))
}
