import { Hono } from 'hono'
import * as v from 'valibot'
import {
  type ExportedExecution,
  type ExportedNode,
  type OpenExport,
  openExport,
} from '../../db/executions/export.ts'
import { EXECUTION_STATUSES } from '../../db/executions/status.ts'
import { demandTeam } from '../../db/scope.ts'
import type { AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { type CsvCell, writeCsvCells, writeCsvRecord } from '../http/csv.ts'
import { streamParts, type WriteNext } from '../http/download.ts'
import { InTeam } from '../http/fields.ts'
import { queryInteger } from '../http/query.ts'
import { countSchema, idSchema, timeSchema } from '../http/responses.ts'
import { UsageSchema } from '../monitoring/usage/amounts.ts'

const COLUMNS =
  'execution_id workflow_id workflow_name status trigger started_at completed_at duration_ms node_id ' +
  'node_type node_name node_status node_started_at node_completed_at node_duration_ms node_error'

const TYPES = { csv: 'text/csv; charset=utf-8', json: 'application/json' }

const ExportQuery = v.object({
  format: v.optional(v.picklist(['csv', 'json'], 'must be csv or json'), 'csv'),
  days: v.pipe(
    v.optional(queryInteger(1, 365), '30'),
    v.description('The number of days to go back, by the creation time of executions'),
  ),
  bom: v.pipe(
    v.optional(v.picklist(['true', 'false'], 'must be true or false'), 'false'),
    v.description(
      'Whether the CSV begins with a byte order mark. Excel needs one; Python and psql do not expect it',
    ),
  ),
})

const status = v.picklist(EXECUTION_STATUSES)
const ExportedSchema = v.pipe(
  v.object({
    executionId: idSchema,
    workflowId: idSchema,
    workflowName: v.string(),
    status,
    trigger: v.string(),
    startedAt: v.nullable(timeSchema),
    completedAt: v.nullable(timeSchema),
    durationMs: v.nullable(countSchema),
    usage: v.nullable(UsageSchema),
    nodeExecutions: v.array(
      v.object({
        nodeId: v.string(),
        nodeType: v.string(),
        nodeName: v.string(),
        iteration: v.pipe(
          v.nullable(v.string()),
          v.description("The number of the loop's iteration, from 0; null outside of loops"),
        ),
        step: v.nullable(countSchema),
        tool: v.nullable(v.string()),
        status,
        startedAt: timeSchema,
        completedAt: v.nullable(timeSchema),
        durationMs: v.nullable(countSchema),
        error: v.nullable(v.string()),
        usage: v.optional(UsageSchema),
      }),
    ),
  }),
  v.title('ExportedExecution'),
)

/** The route that exports a team's executions as a file. */
export function createExportRoutes() {
  return new Hono<AppEnv>().get(
    '/api/executions/team/:teamId/export',
    accept({
      id: 'exportExecutions',
      tag: 'Executions',
      summary: "Export a team's executions",
      description:
        'A file of the executions of the last days with their node records, newest execution first. It ' +
        'shows the state at the time of the request. Personal data and secrets are masked. CSV has one row ' +
        'for each node record (an execution without node records has one row with empty node columns) and ' +
        `the columns ${COLUMNS.replaceAll(' ', ', ')}. The connection is cut if the file cannot be ` +
        'completed, or if the client reads nothing for 30 s.',
      role: 'OPERATOR',
      params: InTeam,
      query: ExportQuery,
      responses: {
        200: {
          description: 'The file',
          schema: v.array(ExportedSchema),
          texts: ['text/csv'],
          headers: { 'Content-Disposition': 'Holds the name of the file' },
        },
      },
    }),
    async (c) => {
      const { teamId } = c.req.valid('param')
      const { format, days, bom } = c.req.valid('query')
      const day = new Date().toISOString().slice(0, 10)
      const headers = {
        'Content-Type': TYPES[format],
        'Content-Disposition': `attachment; filename="executions-${day}.${format}"`,
      }
      // HEAD sends no data, so there is no audit entry.
      if (c.req.method === 'HEAD') {
        await demandTeam(c.get('scope'), teamId, 'OPERATOR')
        return c.body(null, 200, headers)
      }
      const rows = await openExport(c.get('scope'), teamId, { days, format })
      const next = format === 'csv' ? writeCsv(rows, bom === 'true') : writeJson(rows)
      return c.body(
        streamParts(c, next, () => rows.close()),
        200,
        headers,
      )
    },
  )
}

function writeCsv(rows: OpenExport, bom: boolean): WriteNext {
  let head = (bom ? '\uFEFF' : '') + writeCsvRecord(COLUMNS.split(' '))
  let known: ExportedExecution | undefined
  let cells = ''
  const write = (execution: ExportedExecution, node: ExportedNode | null): string => {
    if (execution !== known) {
      known = execution
      cells = writeCsvCells(listExecution(execution))
    }
    return `${cells},${writeCsvRecord(node ? listNode(node) : NO_NODE)}`
  }
  return (put) => {
    put(head)
    head = ''
    return rows.read((execution, node) => put(write(execution, node)))
  }
}

const NO_NODE = Array<null>(8).fill(null)

function listExecution(one: ExportedExecution): CsvCell[] {
  const { executionId, workflowId, workflowName, status, trigger, startedAt, completedAt, durationMs } = one
  return [executionId, workflowId, workflowName, status, trigger, startedAt, completedAt, durationMs]
}

function listNode(one: ExportedNode): CsvCell[] {
  const { nodeId, nodeType, nodeName, status, startedAt, completedAt, durationMs, error } = one
  return [nodeId, nodeType, nodeName, status, startedAt, completedAt, durationMs, error]
}

/** Writes an execution's own fields first, then its node records as they come: there may be a million. */
function writeJson(rows: OpenExport): WriteNext {
  let known: ExportedExecution | undefined
  let before = '['
  const write = (execution: ExportedExecution, node: ExportedNode | null): string => {
    let text = ','
    if (execution !== known) {
      text = `${known ? ']},' : ''}\n${JSON.stringify(execution).slice(0, -1)},"nodeExecutions":[`
      known = execution
    }
    return node ? text + JSON.stringify(node) : text
  }
  return async (put) => {
    put(before)
    before = ''
    const more = await rows.read((execution, node) => put(write(execution, node)))
    if (!more) put(known ? ']}\n]' : ']')
    return more
  }
}
