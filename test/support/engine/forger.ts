import { Client } from '@temporalio/client'
import type { Payload } from '@temporalio/common'
import proto from '@temporalio/proto'
import { createDataConverter } from '../../../activities/temporal/codec.ts'
import type { Sealer } from '../../../activities/temporal/sealer.ts'
import type { Engine } from '../../../worker/engine/engine.ts'

const NAMESPACE = 'default'

export const plain = (value: unknown): Payload => ({
  metadata: { encoding: Buffer.from('json/plain') },
  data: Buffer.from(JSON.stringify(value)),
})

/** Seals a value as the service does, for a Temporal workflow. */
export async function sealFor(sealer: Sealer, workflowId: string, value: unknown): Promise<Payload> {
  const [codec] = createDataConverter(sealer).payloadCodecs!
  const [sealed] = await codec!.encode([plain(value)], { type: 'workflow', namespace: NAMESPACE, workflowId })
  return sealed!
}

/** Somebody who reaches Temporal's API, and has no key. Sends payloads as they are. */
export function createForger(engine: Engine) {
  const { connection } = engine.client
  const client = new Client({ connection, namespace: NAMESPACE })
  const service = client.workflowService

  async function readEvents(workflowId: string) {
    const { events } = await client.workflow.getHandle(workflowId).fetchHistory()
    return events ?? []
  }

  return {
    client,
    async signal(workflowId: string, payloads: Payload[], signalName = 'nudge') {
      const { Payloads } = proto.temporal.api.common.v1
      await service.signalWorkflowExecution({
        namespace: NAMESPACE,
        workflowExecution: { workflowId },
        signalName,
        input: Payloads.create({ payloads }),
        header: { fields: { forged: plain('header') } },
      })
    },
    async start(workflowId: string, taskQueue: string, type: string, payload: Payload) {
      await service.startWorkflowExecution({
        namespace: NAMESPACE,
        workflowId,
        workflowType: { name: type },
        taskQueue: { name: taskQueue },
        input: { payloads: [payload] },
        memo: { fields: { forged: plain('memo') } },
        header: { fields: { forged: plain('header') } },
        requestId: crypto.randomUUID(),
      })
    },
    /** Answers an attempt that is under way. */
    async complete(workflowId: string, activityId: string, payload: Payload) {
      await service.respondActivityTaskCompletedById({
        namespace: NAMESPACE,
        workflowId,
        activityId,
        result: { payloads: [payload] },
      })
    },
    async heartbeat(workflowId: string, activityId: string, payload: Payload) {
      await service.recordActivityTaskHeartbeatById({
        namespace: NAMESPACE,
        workflowId,
        activityId,
        details: { payloads: [payload] },
      })
    },
    readEvents,
    /** What the run was given, as it is stored. */
    async readInput(workflowId: string): Promise<Payload> {
      const [first] = await readEvents(workflowId)
      return first!.workflowExecutionStartedEventAttributes!.input!.payloads![0] as Payload
    },
    /** How often the run's workflow code failed. */
    async countFailures(workflowId: string): Promise<number> {
      const { EVENT_TYPE_WORKFLOW_TASK_FAILED } = proto.temporal.api.enums.v1.EventType
      const events = await readEvents(workflowId)
      return events.filter(({ eventType }) => eventType === EVENT_TYPE_WORKFLOW_TASK_FAILED).length
    },
  }
}
