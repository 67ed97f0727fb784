import type { Store } from '../scope.ts'

/** The columns of an execution that judging needs; undefined if it is gone. */
export async function findJudgedRun({ db }: Store, executionId: string) {
  return db
    .selectFrom('executions')
    .select(['id', 'teamId', 'workflowId', 'workflowVersion', 'status', 'triggerNodeId', 'onlyNode'])
    .select(['inputData', 'inputBytes', 'keepInputs', 'keepOutputs'])
    .where('id', '=', executionId)
    .executeTakeFirst()
}
