import { Hono } from 'hono'
import * as v from 'valibot'
import {
  type ExportedCall,
  type OpenUsageExport,
  openUsageExport,
} from '../../../db/monitoring/usage/export.ts'
import { demandTeam } from '../../../db/scope.ts'
import type { AppEnv } from '../../env.ts'
import { accept } from '../../http/accept.ts'
import { writeCsvRecord } from '../../http/csv.ts'
import { streamParts, type WriteNext } from '../../http/download.ts'
import { InTeam } from '../../http/fields.ts'
import { checkTimeRange } from '../../http/query.ts'
import { countSchema, idSchema, timeSchema } from '../../http/responses.ts'
import { checkDefaultEnd, checkDefaultStart, readSpan, usageSpan } from '../spans.ts'
import { costSchema } from './amounts.ts'

const COLUMNS = {
  time: 'time',
  executionId: 'execution_id',
  workflowId: 'workflow_id',
  nodeId: 'node_id',
  iteration: 'iteration',
  step: 'step',
  provider: 'provider',
  model: 'model',
  status: 'status',
  inputTokens: 'input_tokens',
  outputTokens: 'output_tokens',
  cachedTokens: 'cached_tokens',
  cacheWriteTokens: 'cache_write_tokens',
  reasoningTokens: 'reasoning_tokens',
  cost: 'cost',
  firstMs: 'first_ms',
  latencyMs: 'latency_ms',
} as const satisfies Record<keyof ExportedCall, string>
const FIELDS = Object.keys(COLUMNS) as (keyof ExportedCall)[]

const TYPES = { csv: 'text/csv; charset=utf-8', json: 'application/json' }

const ExportSpan = v.pipe(
  v.object({
    format: v.optional(v.picklist(['csv', 'json'], 'must be csv or json'), 'json'),
    ...usageSpan,
  }),
  checkTimeRange(),
  checkDefaultStart(),
  checkDefaultEnd(),
)

const tokens = v.nullable(countSchema)
const milliseconds = v.nullable(countSchema)
const CallSchema = v.pipe(
  v.object({
    time: v.pipe(timeSchema, v.description('When it began. UTC, ISO 8601')),
    executionId: v.pipe(v.nullable(idSchema), v.description('Null for a call outside of executions')),
    workflowId: v.nullable(idSchema),
    nodeId: v.nullable(v.string()),
    iteration: v.pipe(v.nullable(v.string()), v.description("The number of the loop's iteration, from 0")),
    step: v.pipe(v.nullable(countSchema), v.description('The step of an agent')),
    provider: v.pipe(v.string(), v.description('The type of the credential'), v.examples(['OPENAI'])),
    model: v.pipe(v.string(), v.examples(['gpt-4o'])),
    status: v.pipe(
      v.picklist(['OPEN', 'SUCCESS', 'REFUSED', 'LOST']),
      v.description('OPEN is under way. LOST broke off, or its worker was killed'),
    ),
    inputTokens: tokens,
    outputTokens: tokens,
    cachedTokens: tokens,
    cacheWriteTokens: tokens,
    reasoningTokens: tokens,
    cost: v.pipe(costSchema, v.description('US dollars; null if it is not known')),
    firstMs: v.pipe(milliseconds, v.description('Up to the first byte of the answer')),
    latencyMs: v.pipe(milliseconds, v.description('Up to the end of the answer')),
  }),
  v.title('ExportedModelCall'),
)

/** The route that exports what each call of a team to a model took. */
export function createUsageExportRoutes() {
  return new Hono<AppEnv>().get(
    '/api/monitoring/teams/:teamId/export',
    accept({
      id: 'exportTokenUsage',
      tag: 'Monitoring',
      summary: "Export a team's token usage",
      description:
        'A file of all calls to models that began in the span, the oldest first, also those of executions that are ' +
        'deleted since: as they are at the time of the request, without any text of them. CSV has the columns ' +
        `${Object.values(COLUMNS).join(', ')}. The connection is cut if the file cannot be completed, or if the client ` +
        'reads nothing for 30 s.',
      role: 'member',
      params: InTeam,
      query: ExportSpan,
      responses: {
        200: {
          description: 'The file',
          schema: v.array(CallSchema),
          texts: ['text/csv'],
          headers: { 'Content-Disposition': 'Holds the name of the file' },
        },
      },
    }),
    async (c) => {
      const { teamId } = c.req.valid('param')
      const { format, ...asked } = c.req.valid('query')
      const day = new Date().toISOString().slice(0, 10)
      const headers = {
        'Content-Type': TYPES[format],
        'Content-Disposition': `attachment; filename="token-usage-${day}.${format}"`,
      }
      // HEAD sends no data, so there is no audit entry.
      if (c.req.method === 'HEAD') {
        await demandTeam(c.get('scope'), teamId, 'VIEWER')
        return c.body(null, 200, headers)
      }
      const calls = await openUsageExport(c.get('scope'), teamId, readSpan(asked).query, format)
      const next = format === 'csv' ? writeCsv(calls) : writeJson(calls)
      return c.body(
        streamParts(c, next, () => calls.close()),
        200,
        headers,
      )
    },
  )
}

function writeCsv(calls: OpenUsageExport): WriteNext {
  let head = writeCsvRecord(Object.values(COLUMNS))
  return (put) => {
    put(head)
    head = ''
    return calls.read((call) => put(writeCsvRecord(FIELDS.map((field) => call[field]))))
  }
}

function writeJson(calls: OpenUsageExport): WriteNext {
  let before = '['
  return async (put) => {
    const more = await calls.read(({ cost, ...call }) => {
      put(`${before}\n${JSON.stringify({ ...call, cost: cost === null ? null : Number(cost) })}`)
      before = ','
    })
    if (!more) put(before === '[' ? '[]' : '\n]')
    return more
  }
}
