import { storeFile } from '../../../db/files/store.ts'
import type { ExecutionBody } from '../client.ts'
import { edges } from '../engine/graphs.ts'
import type { Host } from '../running.ts'

export type GivenFile = { name: string; mimeType: string; bytes: Uint8Array }

/**
 * Executes a node that gets files of its execution: `$input.files` is the list of them. `node` is without an id,
 * which is `node`. Resolves with the execution once it has ended.
 */
export async function runWithFiles(
  host: Host,
  node: { type: string; config: object } & Record<string, unknown>,
  given: GivenFile[],
): Promise<ExecutionBody> {
  const workflowId = await host.create({
    nodes: [
      { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
      { id: 'wait', type: 'WAIT_FOR_EVENT', config: { name: 'files' } },
      { id: 'node', ...node },
    ],
    edges: edges('start -> wait', 'wait -> node'),
  } as never)
  const id = await host.execute(workflowId)
  const files: object[] = []
  for (const { name, mimeType, bytes } of given) {
    const what = { name, mimeType, length: bytes.length }
    files.push({ file: await storeFile(host.store, { executionId: id }, what, pieces(bytes)) })
  }
  await host.until(id, (run) => run.nodeExecutions.some(({ nodeId }) => nodeId === 'wait'))
  await host.ask('POST', `/api/executions/${id}/events/files`, { files })
  return host.ended(id)
}

async function* pieces(bytes: Uint8Array) {
  yield bytes
}
