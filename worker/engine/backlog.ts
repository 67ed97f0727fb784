import type { Client } from '@temporalio/client'
import { nameQueue } from '../../workflows/run/plan.ts'

/** Temporal's numbers for the kinds of tasks that a queue holds. */
const [WORKFLOW, ACTIVITY] = [1, 2]

/** The tasks that wait in Temporal for a worker: about how many, and for how many seconds the oldest of them. */
export type Waiting = { waiting: number; oldest: number }

/** Reads what waits in the queues of an installation, by the kind of slot that it waits for. */
export async function readWaiting(
  { workflowService, options: { namespace } }: Client,
  taskQueue: string,
): Promise<Record<'workflow' | 'node' | 'model', Waiting>> {
  const read = async (name: string, taskQueueType: number): Promise<Waiting> => {
    const request = { namespace, taskQueue: { name }, taskQueueType, reportStats: true }
    const { stats } = await workflowService.describeTaskQueue(request)
    const { seconds, nanos } = stats?.approximateBacklogAge ?? {}
    const waiting = Number(stats?.approximateBacklogCount ?? 0)
    return { waiting, oldest: waiting === 0 ? 0 : Number(seconds ?? 0) + (nanos ?? 0) / 1e9 }
  }
  const [workflow, node, model] = await Promise.all([
    read(taskQueue, WORKFLOW!),
    read(taskQueue, ACTIVITY!),
    read(nameQueue(taskQueue, 'models'), ACTIVITY!),
  ])
  return { workflow, node, model }
}
