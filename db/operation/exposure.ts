import type { Bus } from '../bus.ts'

/**
 * Whether others than this machine's users can reach the service. What is open by default only because they
 * cannot, is closed as soon as a process finds out that they can, in all processes, until all have been started
 * anew.
 */
export type Exposure = {
  /** Why the service counts as reachable by others, in words that follow "since"; null as long as it does not. */
  why(): string | null
  /** Notes that it is, and tells all other processes. Only the first reason is kept. */
  note(why: string): void
}

const ASK = 'exposed?'
const TELL = 'exposed:'
const MAX_LENGTH = 200

/** `onNoted` is called once, with the reason, in each process. */
export function createExposure(bus: Bus, onNoted: (why: string) => void): Exposure {
  let known: string | null = null

  function keep(why: string): void {
    if (known !== null) return
    known = why.slice(0, MAX_LENGTH)
    onNoted(known)
  }

  // No process keeps this in the database, so one that starts, or was cut off, asks the others.
  bus.onTold((text) => {
    if (text?.startsWith(TELL)) keep(text.slice(TELL.length))
    else if (known !== null && (text === ASK || text === null)) bus.tell(TELL + known)
    else if (text === null) bus.tell(ASK)
  })

  return {
    why: () => known,
    note(why) {
      if (known !== null) return
      keep(why)
      bus.tell(TELL + known)
    },
  }
}
