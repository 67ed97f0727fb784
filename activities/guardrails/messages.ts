import { setPriority } from 'node:os'

/** A thread says when it is ready for the first job, then for each job what came of each of its parts, and `done`. */
export type ThreadMessage<Result extends object> = 'ready' | 'done' | Result

const NICE = 5

/** Puts the calling thread behind the one that serves requests, where the system can tell threads apart. */
export function standBehind(): void {
  if (process.platform !== 'linux') return
  try {
    setPriority(0, NICE)
  } catch {
    // Some containers forbid it: the thread works as well without.
  }
}
