import type { Errand, ErrandKind } from '../db/outbox.ts'
import type { ApiDeps } from './app.ts'

const WAIT_MS = 1_000
/** What is more than this the sweeper does, with a lease: a team may have very many. */
const MAX_AT_ONCE = 100

/** Tells Temporal what concerns all of each subject, as tellTemporal does; what is too much is left to the sweeper. */
export function runErrands(deps: ApiDeps, kind: ErrandKind, subjectIds: string[]): Promise<boolean> {
  const some = subjectIds.slice(0, MAX_AT_ONCE)
  return tellTemporal(
    deps,
    some.map((subjectId) => ({ kind, subjectId, key: '' })),
  )
}

/**
 * Has Temporal told right after the commit, but keeps the caller waiting for one second at most: the errands go on
 * without us, and the sweeper repeats what failed. True only if all of them were done within that time.
 */
export async function tellTemporal(deps: ApiDeps, errands: Errand[]): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, WAIT_MS, false)
  })
  const all = Promise.all(errands.map((errand) => deps.carryOut(errand)))
  try {
    return await Promise.race([all.then((done) => done.every(Boolean)), late])
  } finally {
    clearTimeout(timer)
  }
}
