import { Hono } from 'hono'
import * as v from 'valibot'
import {
  createScheduledReport,
  deleteScheduledReport,
  listScheduledReports,
  MAX_REPORTS_AN_HOUR,
  MAX_SCHEDULED_REPORTS,
  type ScheduledReport,
  updateScheduledReport,
} from '../../../db/monitoring/reports/reports.ts'
import { ASKED_PER_HOUR, askForReport, listReportRuns } from '../../../db/monitoring/reports/runs.ts'
import type { Store } from '../../../db/scope.ts'
import type { AppEnv } from '../../env.ts'
import { accept } from '../../http/accept.ts'
import { InTeam, uuidField } from '../../http/fields.ts'
import { paging } from '../../http/query.ts'
import { LOCATION_HEADER, messageResponse, pageSchema } from '../../http/responses.ts'
import { listWarnings } from '../../warnings.ts'
import {
  ChangedReportSchema,
  ReportRunSchema,
  ScheduledReportBody,
  ScheduledReportChange,
  ScheduledReportSchema,
} from './fields.ts'

const OfReport = v.object({ teamId: uuidField, id: uuidField })

const EXAMPLE = {
  name: 'Weekly figures',
  schedule: '0 7 * * MON',
  timezone: 'Europe/Berlin',
  recipients: ['grace@example.com'],
  metrics: ['token_usage', 'anomalies'],
  enabled: true,
}

/** The routes of the reports that a team has mailed to people. */
export function createScheduledReportRoutes() {
  return new Hono<AppEnv>().route('/', createReportPlanRoutes()).route('/', createReportRunRoutes())
}

function createReportPlanRoutes() {
  return new Hono<AppEnv>()
    .get(
      '/api/monitoring/teams/:teamId/scheduled-reports',
      accept({
        id: 'listScheduledReports',
        tag: 'Monitoring',
        summary: "List a team's scheduled reports",
        role: 'member',
        params: InTeam,
        responses: {
          200: { description: 'All of them, the oldest first', schema: v.array(ScheduledReportSchema) },
        },
      }),
      async (c) => c.json(await listScheduledReports(c.get('scope'), c.req.valid('param').teamId)),
    )
    .post(
      '/api/monitoring/teams/:teamId/scheduled-reports',
      accept({
        id: 'createScheduledReport',
        tag: 'Monitoring',
        summary: 'Have figures of a team mailed at regular times',
        description:
          'At each slot of `schedule` each recipient gets a mail, about the time since the slot before, at most 31 ' +
          'days. Of slots that have passed while the service did not run only the latest is sent. A mail server that ' +
          'takes nothing is tried until the next slot, and for a day at most. Without a `credentialId` the service must ' +
          'have an SMTP server (`SMTP_URL`), and mail goes to those who want it: see `recipientStates`. ' +
          `A team can have ${MAX_SCHEDULED_REPORTS} reports, with ${MAX_REPORTS_AN_HOUR} slots an hour together.`,
        role: 'ADMIN',
        params: InTeam,
        json: ScheduledReportBody,
        example: EXAMPLE,
        faults: [409],
        responses: {
          201: { description: 'The new report', schema: ChangedReportSchema, headers: LOCATION_HEADER },
        },
      }),
      async (c) => {
        const { teamId } = c.req.valid('param')
        const report = await createScheduledReport(c.get('scope'), teamId, c.req.valid('json'))
        const path = `/api/monitoring/teams/${teamId}/scheduled-reports/${report.id}`
        return c.json({ ...report, ...warnOfMail(c.get('scope').store, report) }, 201, { Location: path })
      },
    )
    .put(
      '/api/monitoring/teams/:teamId/scheduled-reports/:id',
      accept({
        id: 'updateScheduledReport',
        tag: 'Monitoring',
        summary: 'Change a scheduled report',
        description:
          'Takes all of its fields; `timezone` and `enabled` stay as they are if they are not given. A mail that is due ' +
          'already, and not sent, goes as the report was at its slot; once the report is not enabled any more, it is not sent.',
        role: 'ADMIN',
        params: OfReport,
        json: ScheduledReportChange,
        example: EXAMPLE,
        faults: [409],
        responses: { 200: { description: 'The report', schema: ChangedReportSchema } },
      }),
      async (c) => {
        const { teamId, id } = c.req.valid('param')
        const scope = c.get('scope')
        const report = await updateScheduledReport(scope, teamId, id, c.req.valid('json'))
        return c.json({ ...report, ...warnOfMail(scope.store, report) })
      },
    )
    .delete(
      '/api/monitoring/teams/:teamId/scheduled-reports/:id',
      accept({
        id: 'deleteScheduledReport',
        tag: 'Monitoring',
        summary: 'Delete a scheduled report and its runs',
        role: 'ADMIN',
        params: OfReport,
        responses: { 200: messageResponse('Scheduled report deleted') },
      }),
      async (c) => {
        const { teamId, id } = c.req.valid('param')
        await deleteScheduledReport(c.get('scope'), teamId, id)
        return c.json({ message: 'Scheduled report deleted' })
      },
    )
}

function createReportRunRoutes() {
  return new Hono<AppEnv>()
    .get(
      '/api/monitoring/teams/:teamId/scheduled-reports/:id/runs',
      accept({
        id: 'listReportRuns',
        tag: 'Monitoring',
        summary: 'List what came of the mails of a scheduled report',
        description: 'The latest first. Runs are kept for 90 days.',
        role: 'member',
        params: OfReport,
        query: v.object(paging),
        responses: {
          200: { description: 'A page of them', schema: pageSchema('ReportRunPage', ReportRunSchema) },
        },
      }),
      async (c) => {
        const { teamId, id } = c.req.valid('param')
        return c.json(await listReportRuns(c.get('scope'), teamId, id, c.req.valid('query')))
      },
    )
    .post(
      '/api/monitoring/teams/:teamId/scheduled-reports/:id/send',
      accept({
        id: 'sendScheduledReport',
        tag: 'Monitoring',
        summary: 'Send a scheduled report now',
        description:
          'Also of a report that is not enabled. It is about the time until now, as long as from one slot to the next. ' +
          'While one that was asked for is not sent yet, the answer is that one. The slots stay as they are. ' +
          `A team can ask for ${ASKED_PER_HOUR} mails an hour (429).`,
        role: 'ADMIN',
        params: OfReport,
        responses: { 202: { description: 'The run, which is sent soon', schema: ReportRunSchema } },
      }),
      async (c) => {
        const { teamId, id } = c.req.valid('param')
        return c.json(await askForReport(c.get('scope'), teamId, id), 202)
      },
    )
}

/** The warnings about a saved report that is not sent, or not sent to all. */
function warnOfMail({ emailProof }: Store, { credentialId, held, recipientStates }: ScheduledReport) {
  if (credentialId !== null) return {}
  const message = 'The service has no mail server: until its operator sets SMTP_URL, nothing is sent'
  if (emailProof?.() !== 'mail') return listWarnings([{ path: 'recipients', message }])
  if (held !== null) return listWarnings([{ path: 'recipients', message: held }])
  return listWarnings(
    recipientStates.flatMap(({ state }, index) =>
      state === 'READY' ? [] : [{ path: `recipients[${index}]`, message: MISSING_YES[state] }],
    ),
  )
}

const MISSING_YES = {
  ASKED: 'gets no mail before its owner says yes; a mail asks them',
  NOT_ASKED: 'gets no mail before its owner says yes; a mail will ask them',
  REFUSED: 'has said no to mail of this team: it gets none',
}
