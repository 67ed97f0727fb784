import { validate as isUuid } from 'uuid'
import { changeInstance } from '../change.ts'
import type { Scope } from '../scope.ts'

/**
 * Notes in the instance's audit chain that the rows of an execution, or of all if it is null, are about to be written
 * anew (operator). The rows follow from the histories, so the audit needs no other details.
 */
export async function auditRebuild(scope: Scope, executionId: string | null): Promise<void> {
  const resourceId = executionId !== null && isUuid(executionId) ? executionId : null
  await changeInstance(scope, 'EXECUTIONS_REBUILT', async () => ({
    result: undefined,
    resourceId,
    details: executionId === null ? { all: true } : {},
  }))
}
