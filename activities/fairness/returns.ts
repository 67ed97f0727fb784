/** The one calendar of those whom a process turns away: team by team, it says when each may come again. */
export type Returns = {
  /** Turns an attempt or a segment of the team away. Returns after how many milliseconds it may come again. */
  turnAway(team: string): number
  /** Notes that one of the team got what the others wait for: they may come that much sooner. */
  served(team: string): void
}

type Calendar = {
  /** When the last of those who were turned away comes again. */
  last: number
  turnedAwayAt: number
  /** How many of the team were served a second, an average that fades within seconds; as it was at `servedAt`. */
  rate: number
  servedAt: number
}

/** If none was turned away for this long, all who came have found a place, and none waits. */
const QUIET_MS = 5_000
const FADES_MS = 5_000

/** The limit of a delay: others may be cancelled meanwhile and never come. */
const LONGEST_MS = 30 * 60_000

/**
 * Those whom it turns away come again one by one: `perSecond` of them for nothing, at most, and besides as many
 * as were served lately, so that what becomes free is soon taken. The more of a team were turned away, the
 * longer is the next one's delay.
 */
export function createReturns(perSecond: number, now: () => number = Date.now): Returns {
  const calendars = new Map<string, Calendar>()

  function find(team: string): Calendar {
    let calendar = calendars.get(team)
    if (!calendar) {
      forget()
      calendar = { last: 0, turnedAwayAt: 0, rate: 0, servedAt: 0 }
      calendars.set(team, calendar)
    }
    return calendar
  }

  /** Drops calendars that are out of date, so that they do not pile up. */
  function forget(): void {
    const before = now() - 10 * FADES_MS
    for (const [team, { last, servedAt }] of calendars) {
      if (Math.max(last, servedAt) < before) calendars.delete(team)
    }
  }

  function rateOf({ rate, servedAt }: Calendar): number {
    return rate * Math.exp((servedAt - now()) / FADES_MS)
  }

  return {
    turnAway(team) {
      const calendar = find(team)
      const at = now()
      const isQuiet = at - calendar.turnedAwayAt > QUIET_MS
      const after = isQuiet ? at : Math.max(at, calendar.last)
      calendar.last = Math.min(at + LONGEST_MS, after + 1_000 / (perSecond + rateOf(calendar)))
      calendar.turnedAwayAt = at
      return Math.ceil(calendar.last - at)
    },
    served(team) {
      const calendar = find(team)
      calendar.rate = rateOf(calendar) + 1_000 / FADES_MS
      calendar.servedAt = now()
    },
  }
}
