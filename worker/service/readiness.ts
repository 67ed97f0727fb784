import type { WorkflowService } from '@temporalio/client'
import { pingDatabase } from '../../db/connection.ts'
import { hasUsers } from '../../db/people/users.ts'
import type { Store } from '../../db/scope.ts'
import { nameQueue } from '../../workflows/run/plan.ts'

export type Readiness = {
  database: boolean
  temporal: boolean
  worker: boolean
  models: boolean
  account?: boolean
}

/** Creates the check of /readyz. It reports each part separately and waits at most two seconds. */
export function createReadiness(options: {
  store: Store
  /** Returns undefined until there is a connection. */
  workflowService: () => WorkflowService | undefined
  namespace: string
  taskQueue: string
  /** Whether the worker in this process polls both of its queues. Without it, Temporal says whether any worker does. */
  isPolling?: () => boolean
  /** Whether this process serves the API, which is of use only once an account exists to sign in with. */
  servesApi: boolean
}): () => Promise<Readiness> {
  const { store, workflowService, namespace, taskQueue, isPolling, servesApi } = options
  // The first account is made by another process, at the same time as this one starts.
  let account = false
  return async () => {
    const describe = (name: string, taskQueueType: number) =>
      withinTime(workflowService()?.describeTaskQueue({ namespace, taskQueue: { name }, taskQueueType }))
    const [database, found, runs, models] = await Promise.all([
      withinTime(pingDatabase(store.db)),
      account || !servesApi ? account : withinTime(hasUsers(store.db)),
      describe(taskQueue, 1),
      isPolling ? undefined : describe(nameQueue(taskQueue, 'models'), 2),
    ])
    account = found ?? false
    return {
      database: database !== undefined,
      temporal: runs !== undefined,
      worker: isPolling ? isPolling() : isPolled(runs),
      models: isPolling ? isPolling() : isPolled(models),
      ...(servesApi ? { account } : {}),
    }
  }
}

type Described = Awaited<ReturnType<WorkflowService['describeTaskQueue']>>

function isPolled(queue: Described | undefined): boolean {
  return (queue?.pollers ?? []).some(({ lastAccessTime }) => isRecent(lastAccessTime?.seconds))
}

// A poll lasts a minute at most, so Temporal has seen every live worker within that time.
function isRecent(seconds: { toString(): string } | null | undefined): boolean {
  return seconds != null && Number(seconds.toString()) * 1000 > Date.now() - 70_000
}

/** Resolves with undefined if `work` fails or takes longer than two seconds. */
export async function withinTime<T>(work: Promise<T> | undefined): Promise<T | undefined> {
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
