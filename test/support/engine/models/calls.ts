import { RUNNERS } from '../../../../activities/nodes/runners.ts'
import { NODES } from '../../../../workflows/nodes/nodes.ts'

/** A node that makes a request as HTTP_REQUEST does, in the queue of calls to models. */
export const MODEL_CALL = 'TEST_MODEL_CALL'

/** Adds the type MODEL_CALL to the tables of this process. Returns what takes it out again. */
export function addModelCalls(): () => void {
  const [nodes, runners]: Record<string, unknown>[] = [NODES, RUNNERS]
  nodes![MODEL_CALL] = { ...NODES.HTTP_REQUEST, queue: 'models' }
  runners![MODEL_CALL] = RUNNERS.HTTP_REQUEST
  return () => {
    delete nodes![MODEL_CALL]
    delete runners![MODEL_CALL]
  }
}

/** A graph with one such node, `call`, that sends a POST. */
export function modelCallGraph(url: string, more: object = {}) {
  return {
    nodes: [
      { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
      { id: 'call', type: MODEL_CALL, retry: { maxAttempts: 1 }, ...more, config: { method: 'POST', url } },
    ],
    edges: [{ source: 'start', target: 'call' }],
  }
}
