import { Hono } from 'hono'
import * as v from 'valibot'
import { type Export, type ExportedExecution, type ExportedNode, openExport } from '../db/export.ts'
import { STATUSES } from '../db/listing.ts'
import { demandTeam } from '../db/scope.ts'
import { accept, InTeam, whole } from './accept.ts'
import { count, id, time } from './answers.ts'
import type { AppEnv } from './app.ts'
import { type Cell, writeCells, writeRecord } from './csv.ts'
import { type Part, streamParts } from './download.ts'

const COLUMNS =
  'execution_id workflow_id workflow_name status trigger started_at completed_at duration_ms node_id node_type node_name node_status node_started_at node_completed_at node_duration_ms node_error'

const TYPES = { csv: 'text/csv; charset=utf-8', json: 'application/json' }

const Query = v.object({
  format: v.optional(v.picklist(['csv', 'json'], 'must be csv or json'), 'csv'),
  days: v.pipe(
    v.optional(whole(1, 365), '30'),
    v.description('How far back, by when the executions were made'),
  ),
  bom: v.pipe(
    v.optional(v.picklist(['true', 'false'], 'must be true or false'), 'false'),
    v.description('Begin the CSV with a byte order mark, for Excel; Python and psql want none'),
  ),
})

const status = v.picklist(STATUSES)
const Exported = v.pipe(
  v.object({
    executionId: id,
    workflowId: id,
    workflowName: v.string(),
    status,
    trigger: v.string(),
    startedAt: v.nullable(time),
    completedAt: v.nullable(time),
    durationMs: v.nullable(count),
    nodeExecutions: v.array(
      v.object({
        nodeId: v.string(),
        nodeType: v.string(),
        nodeName: v.string(),
        status,
        startedAt: time,
        completedAt: v.nullable(time),
        durationMs: v.nullable(count),
        error: v.nullable(v.string()),
      }),
    ),
  }),
  v.title('ExportedExecution'),
)

/** A team's executions as a file. */
export function createExportRoutes() {
  return new Hono<AppEnv>().get(
    '/api/executions/team/:teamId/export',
    accept({
      id: 'exportExecutions',
      tag: 'Executions',
      summary: "Export a team's executions",
      description: `A file of the executions of the last days with their node records, the newest execution first, as they
stand when it begins. Personal data and secrets are masked. CSV has a row for each node record (one without a node for
an execution without any) and the columns ${COLUMNS.replaceAll(' ', ', ')}.
The connection breaks where the file does not come to its end, or is not read for 30 s.`,
      role: 'OPERATOR',
      params: InTeam,
      query: Query,
      responses: {
        200: {
          description: 'The file',
          schema: v.array(Exported),
          texts: ['text/csv'],
          headers: { 'Content-Disposition': 'The name of the file' },
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
      // Nothing leaves, so nothing is noted.
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

function writeCsv(rows: Export, bom: boolean): Part {
  let head = (bom ? '\uFEFF' : '') + writeRecord(COLUMNS.split(' '))
  let known: ExportedExecution | undefined
  let cells = ''
  const write = (execution: ExportedExecution, node: ExportedNode | null): string => {
    if (execution !== known) {
      known = execution
      cells = writeCells(listExecution(execution))
    }
    return `${cells},${writeRecord(node ? listNode(node) : NO_NODE)}`
  }
  return (put) => {
    put(head)
    head = ''
    return rows.read((execution, node) => put(write(execution, node)))
  }
}

const NO_NODE = Array<null>(8).fill(null)

function listExecution(one: ExportedExecution): Cell[] {
  const { executionId, workflowId, workflowName, status, trigger, startedAt, completedAt, durationMs } = one
  return [executionId, workflowId, workflowName, status, trigger, startedAt, completedAt, durationMs]
}

function listNode(one: ExportedNode): Cell[] {
  const { nodeId, nodeType, nodeName, status, startedAt, completedAt, durationMs, error } = one
  return [nodeId, nodeType, nodeName, status, startedAt, completedAt, durationMs, error]
}

/** An execution's head is written with its first record, its nodes as they come: there may be a million. */
function writeJson(rows: Export): Part {
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
