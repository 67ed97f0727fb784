/**
 * The first workflow tasks of the runs that this process starts. An eager start brings its task along and takes a
 * slot of the worker before any task that waits in Temporal's queue. So runs start eagerly only while the worker has
 * room and no task waits: else Temporal hands out the tasks, the teams in turn and each team's in their order.
 */
export type FirstTasks = {
  /** Whether a run may be started eagerly now. */
  hasRoom(): boolean
  /** A run is about to be started; eagerly, if the server agrees. */
  expect(executionId: string, team: string, eagerly: boolean): void
  /** Temporal has taken the run. If it did not start eagerly, its task waits in the queue. */
  sent(executionId: string, eagerly: boolean): void
  /** The run was not started. */
  forget(executionId: string): void
  /**
   * The worker has begun with a run that any process may have started. `startedAt` is given if this is its first
   * segment.
   */
  begun(executionId: string, team: string, startedAt: number | undefined): void
}

type Expected = { at: number; team: string; eagerly: boolean }

/** A first task that has waited for longer is being overtaken. */
const PATIENCE_MS = 200

/** Other processes take tasks from the queue too, without telling. After this time a task is forgotten. */
const FORGET_MS = 10_000

/** How long a late first task of a run that another process has started, maybe before a crash, says that others wait. */
const LATE_MS = 1_000

/** An older run is not late: its first task has come before, or Temporal's clock differs from ours. */
const LONGEST_MS = 600_000

/** `readUsed` says how many of the worker's `slots` for workflow tasks are taken now. */
export function createFirstTasks(
  slots: number,
  readUsed: () => number,
  now: () => number = Date.now,
): FirstTasks {
  // In the order in which they were expected.
  const expected = new Map<string, Expected>()
  let eager = 0
  let lateUntil = 0

  function remove(executionId: string): void {
    if (expected.get(executionId)?.eagerly) eager--
    expected.delete(executionId)
  }

  function dropForgotten(): void {
    const before = now() - FORGET_MS
    for (const [id, { at }] of expected) {
      if (at > before) return
      remove(id)
    }
  }

  /** Whether a task waits in the queue for too long. One that came eagerly has its slot and does not wait. */
  function isOneLate(): boolean {
    if (now() < lateUntil) return true
    for (const { at, eagerly } of expected.values()) {
      if (now() - at <= PATIENCE_MS) return false
      if (!eagerly) return true
    }
    return false
  }

  return {
    hasRoom() {
      dropForgotten()
      // An eager start has taken its slot already when it is sent, before the worker counts it.
      return readUsed() + eager < slots - slots / 4 && !isOneLate()
    },
    expect(executionId, team, eagerly) {
      remove(executionId)
      dropForgotten()
      expected.set(executionId, { at: now(), team, eagerly })
      if (eagerly) eager++
    },
    sent(executionId, eagerly) {
      const task = expected.get(executionId)
      if (!task?.eagerly || eagerly) return
      task.eagerly = false
      eager--
    },
    forget: remove,
    begun(executionId, team, startedAt) {
      const task = expected.get(executionId)
      remove(executionId)
      if (task && !task.eagerly) {
        // The queue hands out a team's older tasks first: other workers have them.
        for (const [id, other] of expected) {
          if (other.at >= task.at) break
          if (other.team === team && !other.eagerly) remove(id)
        }
      }
      if (task || startedAt === undefined) return
      const waited = now() - startedAt
      if (waited > PATIENCE_MS && waited < LONGEST_MS) lateUntil = now() + LATE_MS
    },
  }
}
