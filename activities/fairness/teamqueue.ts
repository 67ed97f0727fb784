import { createFairQueue, type FairQueue } from '../fairqueue.ts'
import { halfOf } from './places.ts'

/** Whose work it is: teams take turns, and so do the workflows of a team. */
export type Asker = { team: string; workflow: string }

/**
 * A queue for something that can do `all` jobs at once. Teams take turns, and within a team its workflows, so
 * that a flood from one does not hold up the others. A team never has more than half of all in hand.
 */
export type TeamQueue<T> = {
  add(asker: Asker, job: T): void
  /** Removes and returns the job whose turn it is; it counts as its team's until `done`. */
  take(): T | undefined
  done(asker: Asker): void
  /** Removes a job that still waits. */
  remove(asker: Asker, job: T): void
  /** Removes and returns all jobs that wait. */
  clear(): T[]
  /** How many of the jobs that wait could be begun, as far as their teams go. */
  wanted(): number
}

type Team<T> = { jobs: FairQueue<T>; waiting: Set<T>; inHand: number }

export function createTeamQueue<T>(all: number): TeamQueue<T> {
  const half = halfOf(all)
  // In the order of their turns.
  const teams = new Map<string, Team<T>>()

  function find(team: string): Team<T> {
    let found = teams.get(team)
    if (!found) {
      found = { jobs: createFairQueue(), waiting: new Set(), inHand: 0 }
      teams.set(team, found)
    }
    return found
  }

  function forgetIdle(name: string, { waiting, inHand }: Team<T>): void {
    if (waiting.size === 0 && inHand === 0) teams.delete(name)
  }

  return {
    add({ team, workflow }, job) {
      const { jobs, waiting } = find(team)
      jobs.add(workflow, job)
      waiting.add(job)
    },
    take() {
      for (const [name, team] of teams) {
        const job = team.inHand < half ? team.jobs.take() : undefined
        if (job === undefined) continue
        team.waiting.delete(job)
        team.inHand++
        teams.delete(name)
        teams.set(name, team)
        return job
      }
      return undefined
    },
    done({ team }) {
      const found = find(team)
      found.inHand--
      forgetIdle(team, found)
    },
    remove({ team, workflow }, job) {
      const found = find(team)
      found.jobs.remove(workflow, job)
      found.waiting.delete(job)
      forgetIdle(team, found)
    },
    clear() {
      const left = [...teams.values()].flatMap(({ waiting }) => [...waiting])
      for (const [name, team] of teams) {
        team.jobs.clear()
        team.waiting.clear()
        forgetIdle(name, team)
      }
      return left
    },
    wanted: () =>
      [...teams.values()].reduce(
        (sum, { waiting, inHand }) => sum + Math.min(waiting.size, Math.max(0, half - inHand)),
        0,
      ),
  }
}
