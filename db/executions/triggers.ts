import { sql } from 'kysely'

/** The triggers of an execution; a retry or a rerun keeps the trigger of the execution that it repeats. */
export const EXECUTION_TRIGGERS = [
  'MANUAL',
  'API',
  'WEBHOOK',
  'FORM',
  'SCHEDULE',
  'CHAT',
  'MCP',
  'SUB_WORKFLOW',
  'ERROR',
  'EVALUATION',
  'PLAYBOOK',
] as const
export type Trigger = (typeof EXECUTION_TRIGGERS)[number]

/** Those of executions that are made for a test: no alert, sample or error workflow comes of them. */
export const TEST_TRIGGERS = ['EVALUATION', 'PLAYBOOK'] as const satisfies Trigger[]

/** Whether an execution `e` is no test, neither of an evaluation or a playbook nor of a draft. */
export const IS_NO_TEST = sql<boolean>`(e.trigger not in (${sql.join(TEST_TRIGGERS.map((one) => sql.lit(one)))}) and not e.draft)`

/** RETRY continues from the failed nodes, RERUN starts from the beginning with the same input. */
export const RECOVERIES = ['RETRY', 'RERUN'] as const
export type Recovery = (typeof RECOVERIES)[number]
