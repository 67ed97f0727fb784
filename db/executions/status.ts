/** The statuses of an execution: the first two are open, the others final. */
export const EXECUTION_STATUSES = ['PENDING', 'RUNNING', 'SUCCESS', 'FAILED', 'CANCELLED'] as const
export const OPEN_STATUSES = ['PENDING', 'RUNNING'] as const
export const FINAL_STATUSES = ['SUCCESS', 'FAILED', 'CANCELLED'] as const

export type ExecutionStatus = (typeof EXECUTION_STATUSES)[number]

export function isEnded(status: string): boolean {
  return status !== 'PENDING' && status !== 'RUNNING'
}
