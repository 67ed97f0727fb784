import { Hono } from 'hono'
import * as v from 'valibot'
import { findDownload, openDownload } from '../../db/audit/reports/download.ts'
import {
  type AuditReport,
  createReport,
  deleteReport,
  listReports,
  REPORT_FORMATS,
  REPORT_STATUSES,
  REPORT_TYPES,
  readReport,
} from '../../db/audit/reports/reports.ts'
import type { AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { streamParts, writeEach } from '../http/download.ts'
import { InTeam, instantField, trimmedString, uuidField } from '../http/fields.ts'
import { checkTimeRange } from '../http/query.ts'
import { countSchema, idSchema, LOCATION_HEADER, messageResponse, timeSchema } from '../http/responses.ts'

const OneReport = v.object({ teamId: uuidField, id: uuidField })

/** With an offset a time may lie in a year that ISO 8601 does not write with four digits. */
const reportTime = v.pipe(
  instantField,
  v.check((time) => /^\d{4}-/.test(time.toISOString()), 'must be in the years 0000 to 9999, in UTC'),
)

const NewReport = v.pipe(
  v.object({
    name: trimmedString(200),
    type: v.picklist(REPORT_TYPES, `must be one of ${REPORT_TYPES.join(', ')}`),
    from: v.pipe(reportTime, v.description('The beginning of the period, inclusive')),
    to: v.pipe(
      reportTime,
      v.description('The end of the period, exclusive. If it is in the future, the period ends now'),
    ),
  }),
  checkTimeRange(),
  v.forward(
    v.check(({ from, to }) => from.getTime() !== to.getTime(), 'must be before to'),
    ['from'],
  ),
  v.forward(
    v.check(({ from }) => from.getTime() <= Date.now(), 'must not be in the future'),
    ['from'],
  ),
)

const FileSchema = v.object({
  bytes: countSchema,
  sha256: v.pipe(
    v.string(),
    v.regex(/^[\da-f]{64}$/),
    v.description('Hexadecimal'),
    v.examples(['9f2c3a5be1d04c7788a6f0e4b1c2d3e4f5061728394a5b6c7d8e9fa0b1c2d3e4']),
  ),
})

const ReportSchema = v.pipe(
  v.object({
    id: idSchema,
    teamId: idSchema,
    name: v.pipe(v.string(), v.examples(['Third quarter'])),
    type: v.picklist(REPORT_TYPES),
    status: v.picklist(REPORT_STATUSES),
    from: timeSchema,
    to: timeSchema,
    createdAt: timeSchema,
    createdBy: v.pipe(
      v.object({ id: v.nullable(idSchema), name: v.string() }),
      v.description('Who asked for it: the person, and the name of the person or of the SDK token'),
    ),
    startedAt: v.pipe(v.nullable(timeSchema), v.description('When a worker has begun with it')),
    finishedAt: v.pipe(v.nullable(timeSchema), v.description('When it was COMPLETED or FAILED')),
    expiresAt: v.pipe(timeSchema, v.description('When it is removed')),
    error: v.pipe(v.nullable(v.string()), v.description('Why it is FAILED; else null')),
    downloadUrl: v.pipe(v.string(), v.description('The path of the download; 409 until it is COMPLETED')),
    files: v.pipe(
      v.nullable(v.object({ html: FileSchema, json: FileSchema })),
      v.description('What there is to download; null until it is COMPLETED'),
    ),
  }),
  v.title('AuditReport'),
)

const DownloadQuery = v.object({
  format: v.optional(v.picklist(REPORT_FORMATS, 'must be html or json'), 'html'),
})

const cell = v.nullable(v.union([v.string(), v.number(), v.boolean()]))
const place = v.object({ seq: v.pipe(v.number(), v.integer()), hash: v.string() })
/** A report as JSON. */
const ContentSchema = v.pipe(
  v.object({
    format: v.literal('perdure-audit-report-v1'),
    report: v.object({
      ...{
        id: idSchema,
        name: v.string(),
        type: v.picklist(REPORT_TYPES),
        teamId: idSchema,
        teamName: v.string(),
      },
      ...{ from: timeSchema, to: timeSchema, createdAt: timeSchema },
      createdBy: v.object({ id: v.nullable(idSchema), name: v.string() }),
      madeAt: v.pipe(timeSchema, v.description('Of what moment the tables are')),
    }),
    entries: v.pipe(
      v.object({ first: v.nullable(countSchema), last: v.nullable(countSchema), count: countSchema }),
      v.description('The numbers of the entries in the period'),
    ),
    proof: v.object({
      valid: v.pipe(v.boolean(), v.description('Whether the chain verifies')),
      problem: v.nullable(
        v.object({ kind: v.string(), seq: v.nullable(v.pipe(v.number(), v.integer())), message: v.string() }),
      ),
      ...{ verifiedAt: timeSchema, entriesVerified: countSchema, intactFrom: countSchema },
      erased: v.pipe(
        countSchema,
        v.description('How many entries are without details, which the operator has erased'),
      ),
      breaks: v.array(v.object({ seq: countSchema, at: timeSchema })),
      last: v.pipe(v.nullable(place), v.description('The last entry that the report has seen')),
      checkpoint: v.nullable(
        v.object({
          ...{ teamId: idSchema, seq: countSchema, hash: v.string(), at: timeSchema, keyId: v.string() },
          signature: v.pipe(v.string(), v.description('Ed25519, base64')),
        }),
      ),
      publicKeys: v.array(
        v.object({ keyId: v.string(), algorithm: v.string(), publicKey: v.string(), current: v.boolean() }),
      ),
    }),
    sections: v.array(
      v.object({
        ...{ id: v.string(), title: v.string(), about: v.string() },
        columns: v.array(v.object({ key: v.string(), title: v.string() })),
        total: v.pipe(countSchema, v.description('How many rows there are; `rows` has at most 2,000')),
        rows: v.pipe(
          v.array(v.record(v.string(), cell)),
          v.description('The cells by the keys of the columns. Times are ISO 8601 in UTC'),
        ),
      }),
    ),
  }),
  v.title('AuditReportContent'),
)

/** Nothing in a report is carried out, even if a browser opens it. */
const PAGE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"

const TYPES = { html: 'text/html; charset=utf-8', json: 'application/json' }

function toReportView(report: AuditReport) {
  return { ...report, downloadUrl: `/api/audit/team/${report.teamId}/reports/${report.id}/download` }
}

const one = { 200: { description: 'The report', schema: ReportSchema } }

/** The routes of the reports on a team's audit. */
export function createAuditReportRoutes() {
  return new Hono<AppEnv>().route('/', createAuditReportListRoutes()).route('/', createOneAuditReportRoutes())
}

function createAuditReportListRoutes() {
  return new Hono<AppEnv>()
    .get(
      '/api/audit/team/:teamId/reports',
      accept({
        id: 'listAuditReports',
        tag: 'Audit',
        summary: "List the reports on a team's audit",
        description: 'All of them, newest first: at most 1,000.',
        role: 'ADMIN',
        params: InTeam,
        responses: { 200: { description: 'The reports', schema: v.array(ReportSchema) } },
      }),
      async (c) => c.json((await listReports(c.get('scope'), c.req.valid('param').teamId)).map(toReportView)),
    )
    .post(
      '/api/audit/team/:teamId/reports',
      accept({
        id: 'createAuditReport',
        tag: 'Audit',
        summary: "Ask for a report on a team's audit",
        description:
          'A worker makes it: read it until it is COMPLETED or FAILED, then download it. COMPLIANCE says who has ' +
          'access and how that came about, which permissions and credentials were changed and used, what was exported, ' +
          'and what is kept. ACTIVITY counts what was done, by user, act and day, and on what. SECURITY tells failed ' +
          'sign-ins, lockouts, denied acts, uses of revoked tokens, new addresses, raised roles, exports and breaks of ' +
          'the chain. Each one proves the chain. Asking for it is an entry of the audit. At most ten of a team are ' +
          'waited for at a time, and 1,000 are kept (409).',
        role: 'ADMIN',
        params: InTeam,
        json: NewReport,
        example: { name: 'Third quarter', type: 'COMPLIANCE', from: '2026-07-01', to: '2026-10-01' },
        faults: [409],
        responses: {
          201: { description: 'It was asked for', schema: ReportSchema, headers: LOCATION_HEADER },
        },
      }),
      async (c) => {
        const { teamId } = c.req.valid('param')
        const report = await createReport(c.get('scope'), teamId, c.req.valid('json'))
        return c.json(toReportView(report), 201, {
          Location: `/api/audit/team/${teamId}/reports/${report.id}`,
        })
      },
    )
}

function createOneAuditReportRoutes() {
  return new Hono<AppEnv>()
    .get(
      '/api/audit/team/:teamId/reports/:id',
      accept({
        id: 'readAuditReport',
        tag: 'Audit',
        summary: "Read a report on a team's audit",
        description: 'Says how far it is, and where it can be downloaded.',
        role: 'ADMIN',
        params: OneReport,
        responses: one,
      }),
      async (c) => {
        const { teamId, id } = c.req.valid('param')
        return c.json(toReportView(await readReport(c.get('scope'), teamId, id)))
      },
    )
    .delete(
      '/api/audit/team/:teamId/reports/:id',
      accept({
        id: 'deleteAuditReport',
        tag: 'Audit',
        summary: "Delete a report on a team's audit",
        description: 'Even while it is being made. It is an entry of the audit.',
        role: 'ADMIN',
        params: OneReport,
        responses: { 200: messageResponse('Report deleted') },
      }),
      async (c) => {
        const { teamId, id } = c.req.valid('param')
        await deleteReport(c.get('scope'), teamId, id)
        return c.json({ message: 'Report deleted' })
      },
    )
    .get(
      '/api/audit/team/:teamId/reports/:id/download',
      accept({
        id: 'downloadAuditReport',
        tag: 'Audit',
        summary: "Download a report on a team's audit",
        description:
          'A page for reading and printing, without scripts, or JSON. A table has at most 2,000 rows, and says how ' +
          'many there are. Each download is an entry of the audit, with the hash of the file. 409 until the report is ' +
          'COMPLETED.',
        role: 'ADMIN',
        params: OneReport,
        query: DownloadQuery,
        faults: [409],
        responses: {
          200: {
            description: 'The file',
            schema: ContentSchema,
            texts: ['text/html'],
            headers: { 'Content-Disposition': 'Holds the name of the file' },
          },
        },
      }),
      async (c) => {
        const { teamId, id } = c.req.valid('param')
        const { format } = c.req.valid('query')
        const headers = (file: { type: string; createdAt: Date; bytes: number }) => ({
          'Content-Type': TYPES[format],
          'Content-Disposition': `attachment; filename="audit-${file.type.toLowerCase()}-${file.createdAt.toISOString().slice(0, 10)}.${format}"`,
          'Content-Security-Policy': PAGE_POLICY,
          'Content-Length': String(file.bytes),
          'Cache-Control': 'no-store',
        })
        // HEAD sends no data, so there is no audit entry.
        if (c.req.method === 'HEAD') {
          const file = await findDownload(c.get('scope'), teamId, id, format)
          return c.body(null, 200, headers(file))
        }
        const file = await openDownload(c.get('scope'), teamId, id, format)
        const close = async () => void (await file.parts.return())
        return c.body(streamParts(c, writeEach(file.parts), close), 200, headers(file))
      },
    )
}
