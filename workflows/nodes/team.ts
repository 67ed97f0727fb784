import * as v from 'valibot'
import { described } from '../object.ts'
import { allowKeys, computed, demandKeys, nodeTypeRow, oneOf, textField, wholeNumber } from './fields.ts'

const OPERATIONS = ['listWorkflows', 'getWorkflow', 'listExecutions', 'getExecution'] as const
export type TeamOperation = (typeof OPERATIONS)[number]

/** The most entries of a list, and of one whose entries have their graphs or their values. */
export const MAX_LISTED = 1_000
export const MAX_WHOLE = 500

const STATUSES = ['PENDING', 'RUNNING', 'SUCCESS', 'FAILED', 'CANCELLED'] as const

const flag = v.boolean('must be true or false')

/** What operations need, and what each may have. */
const NEEDED = { getWorkflow: ['id'], getExecution: ['id'] }
const ALLOWED: Record<TeamOperation, string[]> = {
  listWorkflows: ['search', 'active', 'whole', 'limit', 'output'],
  getWorkflow: ['id'],
  listExecutions: ['workflowId', 'status', 'whole', 'limit', 'output'],
  getExecution: ['id', 'whole'],
}
const idField = computed(v.pipe(v.string('must be an id'), v.uuid('must be an id')))

/** What the settings are once they are computed. */
export const TEAM_VALUES = {
  id: v.pipe(v.string('must be an id'), v.uuid('must be an id')),
  search: v.pipe(v.string('must be a text'), v.maxLength(200, 'must have at most 200 characters')),
  active: flag,
  workflowId: v.pipe(v.string('must be an id'), v.uuid('must be an id')),
  status: oneOf(...STATUSES),
  limit: v.pipe(
    v.unknown(),
    v.transform((value) => (typeof value === 'string' && value.trim() !== '' ? Number(value) : value)),
    wholeNumber(1, MAX_LISTED),
  ),
} as const

const fields = described(
  {
    operation: oneOf(...OPERATIONS),
    id: v.optional(idField),
    search: v.optional(textField),
    active: v.optional(computed(flag)),
    workflowId: v.optional(idField),
    status: v.optional(computed(oneOf(...STATUSES))),
    whole: v.optional(flag),
    limit: v.optional(computed(wholeNumber(1, MAX_LISTED))),
    output: v.optional(oneOf('list')),
  },
  {
    operation: 'What is read.',
    id: 'The workflow, or the execution.',
    search: 'Only workflows with this text in their name, in small or capital letters.',
    active: 'Only workflows that are active, or only those that are not.',
    workflowId: 'Only executions of this workflow.',
    status: 'Only executions with this status.',
    whole:
      'Workflows with their nodes, edges and settings; an execution with its input, its output and its nodes.',
    limit: 'The most entries, the newest. 100 unless it is set.',
    output: 'The list alone, without a limit all of it, or it fails.',
  },
)

/** Node types that read what the team has made and executed. */
export const TEAM_NODES = {
  TEAM_READ: nodeTypeRow('effect', {
    summary: "Reads the team's workflows and executions.",
    config: v.pipe(v.object(fields), demandKeys(NEEDED), allowKeys(ALLOWED)),
    main: ['operation'],
    mainBy: {
      key: 'operation',
      keys: {
        listWorkflows: ['search', 'active'],
        getWorkflow: ['id'],
        listExecutions: ['workflowId', 'status'],
        getExecution: ['id', 'whole'],
      },
    },
    retry: { maxAttempts: 3, initialIntervalMs: 1_000, backoffCoefficient: 2, maxIntervalMs: 30_000 },
    timeoutMs: 60_000,
  }),
} as const
