import type { Errand, ErrandKind } from '../db/outbox.ts'
import type { ApiDeps } from './env.ts'

const WAIT_MS = 1_000

/** A team may have very many executions: the sweeper carries out what exceeds this number, with a lease. */
const MAX_AT_ONCE = 100

/** Deleting a run takes longest, and is never urgent. */
const MAX_DELETES_AT_ONCE = 10

/**
 * Carries out errands right after the commit that wrote them. The caller waits one second at most: after that
 * the errands continue in the background, and the sweeper repeats those that fail. True if all were done
 * within that second.
 */
export async function carryOutErrands(deps: ApiDeps, errands: Errand[]): Promise<boolean> {
  const all = Promise.all(errands.map((errand) => deps.carryOut(errand)))
  return withinPatience(all.then((done) => done.every(Boolean)))
}

/** Whether something is done within that second. */
export async function withinPatience(done: Promise<boolean>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, WAIT_MS, false)
  })
  try {
    return await Promise.race([done, late])
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Carries out an errand of one kind for each subject, like `carryOutErrands`. The sweeper takes those beyond
 * the first hundred, or the first ten DELETEs.
 */
export function carryOutEach(deps: ApiDeps, kind: ErrandKind, subjectIds: string[]): Promise<boolean> {
  const some = subjectIds.slice(0, kind === 'DELETE' ? MAX_DELETES_AT_ONCE : MAX_AT_ONCE)
  return carryOutErrands(
    deps,
    some.map((subjectId) => ({ kind, subjectId, key: '' })),
  )
}
