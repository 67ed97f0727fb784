/** The triggers of an execution; a retry or a rerun keeps the trigger of the execution that it repeats. */
export const EXECUTION_TRIGGERS = [
  'MANUAL',
  'API',
  'WEBHOOK',
  'SCHEDULE',
  'CHAT',
  'SUB_WORKFLOW',
  'ERROR',
  'EVALUATION',
  'PLAYBOOK',
] as const
export type Trigger = (typeof EXECUTION_TRIGGERS)[number]

/** RETRY continues from the failed nodes, RERUN starts from the beginning with the same input. */
export const RECOVERIES = ['RETRY', 'RERUN'] as const
export type Recovery = (typeof RECOVERIES)[number]
