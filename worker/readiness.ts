import type { WorkflowService } from '@temporalio/client'
import { sql } from 'kysely'
import type { Store } from '../db/scope.ts'

/** What /readyz tells: each part on its own, none ever waited for longer than two seconds. */
export function createReadiness(options: {
  store: Store
  /** Undefined while there is no connection yet. */
  workflowService: () => WorkflowService | undefined
  namespace: string
  taskQueue: string
  /** Of a worker in this process; without one Temporal is asked who polls. */
  isPolling?: () => boolean
}): () => Promise<{ database: boolean; temporal: boolean; worker: boolean }> {
  const { store, workflowService, namespace, taskQueue, isPolling } = options
  return async () => {
    const [database, pollers] = await Promise.all([
      inTime(sql`select 1`.execute(store.db)),
      inTime(
        workflowService()?.describeTaskQueue({ namespace, taskQueue: { name: taskQueue }, taskQueueType: 1 }),
      ),
    ])
    const polled = (pollers?.pollers ?? []).some((poller) => isRecent(poller.lastAccessTime?.seconds))
    return {
      database: database !== undefined,
      temporal: pollers !== undefined,
      worker: isPolling ? isPolling() : polled,
    }
  }
}

// A poll waits a minute at the longest, so a worker that lives was seen within that.
function isRecent(seconds: { toString(): string } | null | undefined): boolean {
  return seconds != null && Number(seconds.toString()) * 1000 > Date.now() - 70_000
}

/** Undefined where it fails or takes too long. */
export async function inTime<T>(work: Promise<T> | undefined): Promise<T | undefined> {
  if (!work) return undefined
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), 2_000)
  })
  try {
    return await Promise.race([work.catch(() => undefined), late])
  } finally {
    clearTimeout(timer)
  }
}
