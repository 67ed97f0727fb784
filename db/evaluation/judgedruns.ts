import type { Store } from '../scope.ts'

/** What is needed of an execution to judge it; undefined if it is gone. */
export async function findJudgedRun({ db }: Store, executionId: string) {
  return db
    .selectFrom('executions')
    .select(['id', 'teamId', 'workflowId', 'workflowVersion', 'status', 'triggerNodeId', 'onlyNode'])
    .select(['inputData', 'inputBytes', 'keepInputs', 'keepOutputs'])
    .where('id', '=', executionId)
    .executeTakeFirst()
}
