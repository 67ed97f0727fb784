import { Hono } from 'hono'
import * as v from 'valibot'
import { cancelExecution } from '../../db/executions/cancel.ts'
import { deleteExecution } from '../../db/executions/delete.ts'
import {
  hasEnded,
  listTeamExecutions,
  listWorkflowExecutions,
  readExecution,
} from '../../db/executions/executions.ts'
import { listNodeExecutions } from '../../db/executions/records/records.ts'
import { EXECUTION_STATUSES, isEnded } from '../../db/executions/status.ts'
import { EXECUTION_TRIGGERS } from '../../db/executions/triggers.ts'
import type { ApiDeps, AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { ById, boundedString, InTeam, uuidField } from '../http/fields.ts'
import { checkTimeRange, paging, timeRange } from '../http/query.ts'
import { messageResponse, pageSchema, timeSchema } from '../http/responses.ts'
import { carryOutEach } from '../outbox.ts'
import { ExecutionItemSchema, ExecutionSchema } from './fields.ts'
import { NodeExecutionSchema } from './records.ts'
import type { Seats } from './seats.ts'
import { awaitEnd, PREFER_HEADER, readWait, waitFor, waitMsField } from './wait.ts'

const END_WAIT_MS = 1_000

const filters = {
  ...paging,
  ...timeRange,
  status: v.optional(v.picklist(EXECUTION_STATUSES, `must be one of ${EXECUTION_STATUSES.join(', ')}`)),
  search: v.pipe(
    v.optional(boundedString(200, 0)),
    v.description(
      "Any part of the id, the workflow's name, the error message or the input (as JSON without spaces), ignoring case",
    ),
  ),
  trigger: v.pipe(
    v.optional(v.picklist(EXECUTION_TRIGGERS, `must be one of ${EXECUTION_TRIGGERS.join(', ')}`)),
    v.description('What started the executions, as `triggerType` has it'),
  ),
}

const TeamExecutionsQuery = v.pipe(
  v.object({ ...filters, workflowId: v.optional(uuidField) }),
  checkTimeRange(),
)
const WorkflowExecutionsQuery = v.pipe(v.object({ ...filters, workflowId: uuidField }), checkTimeRange())

const NodeExecutionsQuery = v.object({
  ...paging,
  status: filters.status,
  nodeId: v.optional(boundedString(100)),
  steps: v.optional(
    v.pipe(
      v.picklist(['true', 'false'], 'must be true or false'),
      v.transform((text) => text === 'true'),
      v.description('`false` leaves the steps of agents out'),
    ),
  ),
})

const TIME_RANGE = '`from` (inclusive) and `to` (exclusive) select executions by their creation time.'
const SEARCH =
  ' With `search` or `trigger` the list has the newest executions that fit: at most 1,000; with `search`, as far back as ' +
  'one gets in about a second. `searchedFrom` says from when on all were looked at; send it as `to` to look further back. An execution ' +
  'whose id begins with what is searched for (8 characters or more) is found however old it is. Values that are hidden ' +
  'from the caller are not looked at.'
const EXECUTION_PAGE = {
  description: 'One page, newest first',
  schema: v.pipe(
    v.object({
      ...pageSchema('ExecutionPage', ExecutionItemSchema).entries,
      searchedFrom: v.optional(
        v.pipe(
          v.nullable(timeSchema),
          v.description(
            'Only with `search` or `trigger`: executions created before were not looked at, and are in no total; null if ' +
              'all were',
          ),
        ),
      ),
    }),
    v.title('ExecutionPage'),
  ),
}

/** The routes that list, read, cancel and delete executions. */
export function createExecutionRoutes(deps: ApiDeps, seats: Seats) {
  return new Hono<AppEnv>()
    .route('/', createExecutionReadRoutes(deps, seats))
    .route('/', createExecutionChangeRoutes(deps))
}

function createExecutionReadRoutes(deps: ApiDeps, seats: Seats) {
  return new Hono<AppEnv>()
    .get(
      '/api/executions',
      accept({
        id: 'listWorkflowExecutions',
        tag: 'Executions',
        summary: "List a workflow's executions",
        description: TIME_RANGE + SEARCH,
        role: 'member',
        query: WorkflowExecutionsQuery,
        responses: { 200: EXECUTION_PAGE },
      }),
      async (c) => {
        const { workflowId, ...query } = c.req.valid('query')
        return c.json(await listWorkflowExecutions(c.get('scope'), workflowId, query))
      },
    )
    .get(
      '/api/executions/team/:teamId',
      accept({
        id: 'listTeamExecutions',
        tag: 'Executions',
        summary: "List a team's executions",
        description: TIME_RANGE + SEARCH,
        role: 'member',
        params: InTeam,
        query: TeamExecutionsQuery,
        responses: { 200: EXECUTION_PAGE },
      }),
      async (c) =>
        c.json(await listTeamExecutions(c.get('scope'), c.req.valid('param').teamId, c.req.valid('query'))),
    )
    .get(
      '/api/executions/:id',
      accept({
        id: 'readExecution',
        tag: 'Executions',
        summary: 'Read an execution',
        description:
          'With `waitMs`, or the header `Prefer: wait=<seconds>`, the response waits for the end of the ' +
          'execution, and shows it as it is then or when the time is over. A person and a team with too many ' +
          'waiting requests get 429.',
        role: 'member',
        of: 'executions',
        params: ById,
        query: v.object({ waitMs: waitMsField }),
        headers: PREFER_HEADER,
        responses: {
          200: {
            description: 'The execution, with its nodes in the order they started',
            schema: ExecutionSchema,
          },
        },
      }),
      async (c) => {
        const { id } = c.req.valid('param')
        const wait = readWait(c, c.req.valid('query'))
        if (wait.ms > 0) await awaitEnd(deps, c, id, { seats, ...wait })
        return c.json(await readExecution(c.get('scope'), id, deps.temporalUi))
      },
    )
    .get(
      '/api/executions/:id/nodes',
      accept({
        id: 'listNodeExecutions',
        tag: 'Executions',
        summary: "List an execution's node records",
        description:
          'All records, in the order the nodes started, or those of a `status`, of a node, or of both, with the ' +
          'steps of agents unless `steps` is false. The ' +
          'execution itself shows at most 1,000.',
        role: 'member',
        of: 'executions',
        params: ById,
        query: NodeExecutionsQuery,
        responses: {
          200: { description: 'One page', schema: pageSchema('NodeExecutionPage', NodeExecutionSchema) },
        },
      }),
      async (c) =>
        c.json(await listNodeExecutions(c.get('scope'), c.req.valid('param').id, c.req.valid('query'))),
    )
}

function createExecutionChangeRoutes(deps: ApiDeps) {
  return new Hono<AppEnv>()
    .post(
      '/api/executions/:id/cancel',
      accept({
        id: 'cancelExecution',
        tag: 'Executions',
        summary: 'Cancel an execution',
        description:
          'After the response, the execution can only end CANCELLED. An execution that has ended cannot ' +
          'be cancelled (409).',
        role: 'OPERATOR',
        of: 'executions',
        params: ById,
        responses: { 200: { description: 'The execution is being cancelled; the response has no body' } },
        faults: [409],
      }),
      async (c) => {
        const { id } = c.req.valid('param')
        const status = await cancelExecution(c.get('scope'), id)
        if (isEnded(status)) {
          // It was PENDING and has ended in the database. Temporal is told in case a start is under way.
          void deps.carryOut({ kind: 'CANCEL', subjectId: id, key: '' })
        } else if (await carryOutEach(deps, 'CANCEL', [id])) {
          // So that the caller's next GET shows CANCELLED. The cancel itself is already stored.
          await waitFor(
            deps.bus,
            id,
            { ms: END_WAIT_MS },
            async () => (await hasEnded(deps.store, id)) || undefined,
          )
        }
        return c.body(null, 200)
      },
    )
    .delete(
      '/api/executions/:id',
      accept({
        id: 'deleteExecution',
        tag: 'Executions',
        summary: 'Delete an execution',
        description:
          'With its values, records and files, and its history in Temporal. Cannot be undone. One that has not ended ' +
          'cannot be deleted (409), nor one of which an execution that waits for it, an error workflow or a chat has yet ' +
          'to read what it came to. What it has started, and what repeats it, stays; so do usage, statistics and audit.',
        role: 'BUILDER',
        of: 'executions',
        params: ById,
        responses: { 200: messageResponse('Execution deleted') },
        faults: [409],
      }),
      async (c) => {
        const { id } = c.req.valid('param')
        await deleteExecution(c.get('scope'), id)
        await carryOutEach(deps, 'DELETE', [id])
        return c.json({ message: 'Execution deleted' })
      },
    )
}
