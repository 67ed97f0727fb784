import type { ApiDeps } from './app.ts'

const WAIT_MS = 1_000

/**
 * Has Temporal told right after the commit, but keeps the caller waiting for one second at most: the errand goes
 * on without us, and the sweeper repeats what failed. True only if all of it was done within that time.
 */
export async function runErrands(
  deps: ApiDeps,
  kind: 'START' | 'CANCEL' | 'DELETE',
  executionIds: string[],
): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, WAIT_MS, false)
  })
  const all = Promise.all(executionIds.map((id) => deps.carryOut(id, kind)))
  try {
    return await Promise.race([all.then((done) => done.every(Boolean)), late])
  } finally {
    clearTimeout(timer)
  }
}
