import type { ErrandKind } from '../db/outbox.ts'
import type { ApiDeps } from './app.ts'

const WAIT_MS = 1_000
/** What is more than this the sweeper does, with a lease: a team may have very many. */
const MAX_AT_ONCE = 100

/**
 * Has Temporal told right after the commit, but keeps the caller waiting for one second at most: the errand goes
 * on without us, and the sweeper repeats what failed and does what is too much. True only if all that was begun was
 * done within that time.
 */
export async function runErrands(
  deps: ApiDeps,
  kind: ErrandKind,
  subjectIds: string[],
  key = '',
): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, WAIT_MS, false)
  })
  const all = Promise.all(
    subjectIds.slice(0, MAX_AT_ONCE).map((subjectId) => deps.carryOut({ kind, subjectId, key })),
  )
  try {
    return await Promise.race([all.then((done) => done.every(Boolean)), late])
  } finally {
    clearTimeout(timer)
  }
}
