import type { Database } from '../../../db/connection.ts'
import { nodeExecutionId } from '../../../db/executions/records/projection.ts'
import type { Service } from '../service.ts'

/** Writes executions and their node records as the projection does, for tests that need no engine. */
export function createRuns({ store, teamId, user }: Pick<Service, 'store' | 'teamId' | 'user'>) {
  const { db } = store

  async function addWorkflow(): Promise<string> {
    const id = crypto.randomUUID()
    const name = `w ${id}`
    const of = { id, teamId, name, version: 1, settings: '{"timeoutMs":null}', createdBy: user.id }
    await db.insertInto('workflows').values(of).execute()
    const graph = { nodes: '[]', edges: '[]', nodeCount: 0, createdBy: user.id }
    await db
      .insertInto('workflowVersions')
      .values({ workflowId: id, version: 1, ...graph })
      .execute()
    return id
  }

  let workflowId: Promise<string> | undefined
  async function addRun(): Promise<string> {
    workflowId ??= addWorkflow()
    const id = crypto.randomUUID()
    const of = {
      id,
      teamId,
      workflowId: await workflowId,
      workflowName: 'w',
      workflowVersion: 1,
      nodeCount: 1,
    }
    const by = { trigger: 'API', triggerNodeId: 'start', startedByKind: 'USER' }
    await db
      .insertInto('executions')
      .values({ ...of, ...by, inputData: '{}', inputBytes: 2 })
      .execute()
    return id
  }

  /** Updates an execution. Its `lastEventId` increases, as with every projection. */
  async function setRun(id: string, set: { status?: string }, at: Database = db): Promise<void> {
    const ended = set.status !== undefined && !['PENDING', 'RUNNING'].includes(set.status)
    await at
      .updateTable('executions')
      .set((eb) => ({ ...set, lastEventId: eb('lastEventId', '+', 1) }))
      .$if(ended, (query) => query.set({ completedAt: new Date() }))
      .where('id', '=', id)
      .execute()
  }

  /** Writes the record of a node: live if the status is RUNNING, otherwise settled. */
  async function setNode(run: string, nodeId: string, status: string, at: Database = db): Promise<void> {
    const id = nodeExecutionId(run, nodeId, '')
    const settled = status !== 'RUNNING'
    const names = { nodeId, nodeName: nodeId, nodeType: 'NO_OP' }
    await at
      .insertInto('nodeExecutions')
      .values({ id, executionId: run, ...names, status, startedAt: new Date(), settled })
      .onConflict((oc) => oc.column('id').doUpdateSet({ status, settled }))
      .execute()
  }

  return { addRun, setRun, setNode, addWorkflow }
}
