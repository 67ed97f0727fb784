import type { ApiDeps } from '../../env.ts'
import { withinPatience } from '../../outbox.ts'

/**
 * Most executions that are awaited end sooner: then their start and their end are written by one statement. Far less than
 * the time after which the sweeper looks after the start.
 */
const MARK_AFTER_MS = 500

export type AwaitedStart = {
  /** How the execution has ended. What came to an end by itself has nothing more to be written about its start. */
  end(status: string): void
  /**
   * The caller waits no longer, or has seen the end. Resolves to whether Temporal has taken the execution and, if it has
   * not ended, it is RUNNING for everyone who reads it. Takes about two seconds at most, like others who carry out errands.
   */
  leave(): Promise<boolean>
}

/**
 * Starts an accepted execution in Temporal for a caller who waits for its end. It is marked as RUNNING only if it has not
 * ended within a moment, or when the caller leaves. If this process dies before, the sweeper does it.
 */
export function startAwaited(deps: ApiDeps, executionId: string): AwaitedStart {
  const errand = { kind: 'START', subjectId: executionId, key: '' } as const
  const marksLater = deps.markAwaited !== undefined
  let ended = false
  let timer: NodeJS.Timeout | undefined
  let marked: Promise<boolean> | undefined
  let since = 0
  const mark = () => (marked ??= deps.markAwaited!(executionId, performance.now() - since))
  const carried = deps.carryOut(errand, { unmarked: marksLater }).then((taken) => {
    since = performance.now()
    if (taken && !ended && marksLater) timer = setTimeout(mark, MARK_AFTER_MS)
    return taken
  })
  return {
    end(status) {
      // A run may have begun of one that was cancelled before: to mark it ends the run.
      ended = status === 'SUCCESS' || status === 'FAILED'
      if (ended) clearTimeout(timer)
    },
    async leave() {
      const taken = await withinPatience(carried)
      clearTimeout(timer)
      return taken && !ended && marksLater ? withinPatience(mark()) : taken
    },
  }
}
