import { Fault } from '../../db/fault.ts'

/** How many requests of a kind one process keeps open. Each holds a connection of a client. */
const MAX_OPEN = 10_000

/** How many of them may belong to one team, and to one person with their tokens, in whatever teams. */
const MAX_OF_TEAM = 2_500
const MAX_OF_PERSON = 1_000

/** The kinds of requests that stay open, as error messages name them. */
type StreamKind =
  | 'event streams'
  | 'replies'
  | 'waiting requests'
  | 'calls of connectors'
  | 'tests of credentials'
  | 'tests of forwarders'
  | 'tests of channels'
  | 'tests of rules'
  | 'uploads'
  | 'forms'
  | 'batches of spans'

/**
 * The places in this process for requests that stay open. `take` returns a function that gives the place back, which may
 * be called again. It throws THROTTLED if the person or the team has too many, UNAVAILABLE if all are taken. `most` is
 * how many this person may have, if that is another number.
 */
export function createSeats(
  kind: StreamKind,
  { ofPerson = MAX_OF_PERSON, ofTeam = MAX_OF_TEAM, ofAll = MAX_OPEN } = {},
) {
  const taken = new Map<string, number>()
  const count = (key: string) => taken.get(key) ?? 0
  const add = (key: string, n: number) => {
    if (count(key) + n > 0) taken.set(key, count(key) + n)
    else taken.delete(key)
  }
  return {
    take(personId: string, teamId: string, most = ofPerson): () => void {
      const wait = { retryAfter: 5 }
      const [person, team] = [`person ${personId}`, `team ${teamId}`]
      if (count(person) >= most) {
        throw new Fault('THROTTLED', `You have ${most} ${kind} open: close some of them, or wait`, wait)
      }
      if (count(team) >= ofTeam) {
        throw new Fault('THROTTLED', `The team has ${ofTeam} ${kind} open: close some of them, or wait`, wait)
      }
      if (count('all') >= ofAll) {
        throw new Fault('UNAVAILABLE', `Too many ${kind} are open; try again later`, wait)
      }
      const keys = [person, team, 'all']
      for (const key of keys) add(key, 1)
      return () => {
        for (const key of keys.splice(0)) add(key, -1)
      }
    },
  }
}

export type Seats = ReturnType<typeof createSeats>
