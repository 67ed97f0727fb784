import * as v from 'valibot'
import { isMailAddress } from '../../../activities/mail/addresses.ts'
import { REPORT_METRICS, REPORT_RUN_STATUSES } from '../../../db/monitoring/reports/reports.ts'
import { parseCron } from '../../../workflows/cron/cron.ts'
import { findTimezone } from '../../../workflows/cron/zones.ts'
import { boundedString, trimmedString, uuidField } from '../../http/fields.ts'
import { countSchema, idSchema, timeSchema, warningsEntry } from '../../http/responses.ts'
import { mailViewEntries } from '../../mail/fields.ts'

const MOST_RECIPIENTS = 50

const scheduleField = v.pipe(
  boundedString(300),
  v.check(
    (text) => findScheduleFault(text) === null,
    ({ input }) => findScheduleFault(input as string) ?? '',
  ),
  v.description('A cron expression of five fields'),
  v.examples(['0 7 * * MON']),
)

/** A list without two that are the same but for capitals. */
const isUnique = (list: string[]) => new Set(list.map((one) => one.toLowerCase())).size === list.length

const timezoneField = v.pipe(
  boundedString(100),
  v.check((name) => findTimezone(name) !== undefined, 'must be a time zone such as Europe/Berlin'),
)
const enabledField = v.boolean('must be true or false')
const ZONE = 'That of the schedule, and of the days in the report'

const fields = {
  name: v.pipe(
    trimmedString(100),
    v.check((name) => !/\p{Cc}/u.test(name), 'must not contain control characters'),
    v.description('It is in the mails; by a `credentialId` it is their subject'),
  ),
  schedule: scheduleField,
  recipients: v.pipe(
    v.array(
      v.pipe(boundedString(320), v.check(isMailAddress, 'must be an e-mail address')),
      'must be an array',
    ),
    v.minLength(1, 'must have at least one address'),
    v.maxLength(MOST_RECIPIENTS, `must have at most ${MOST_RECIPIENTS} addresses`),
    v.check((list) => isUnique(list), 'must not have an address twice'),
    v.description('Each gets a mail of their own'),
  ),
  metrics: v.pipe(
    v.array(v.picklist(REPORT_METRICS, `must be one of ${REPORT_METRICS.join(', ')}`), 'must be an array'),
    v.minLength(1, 'must have at least one metric'),
    v.maxLength(REPORT_METRICS.length, `must have at most ${REPORT_METRICS.length} metrics`),
    v.check((list) => isUnique(list), 'must not have a metric twice'),
  ),
}

const BY =
  "A credential of the team of the type SMTP. Null: the service's own server sends it, to those who want it"

/** The body of a new report. */
export const ScheduledReportBody = v.object({
  ...fields,
  credentialId: v.pipe(v.optional(v.nullable(uuidField), null), v.description(BY)),
  timezone: v.pipe(v.optional(timezoneField, 'UTC'), v.description(ZONE)),
  enabled: v.optional(enabledField, true),
})

/** The body of a change. */
export const ScheduledReportChange = v.object({
  ...fields,
  credentialId: v.pipe(v.optional(v.nullable(uuidField)), v.description(`${BY}. Not given: as it is`)),
  timezone: v.pipe(v.optional(timezoneField), v.description(`${ZONE}. Not given: as it is`)),
  enabled: v.pipe(v.optional(enabledField), v.description('Not given: as it is')),
})

const report = {
  id: idSchema,
  name: v.string(),
  schedule: v.pipe(v.string(), v.examples(['0 7 * * MON'])),
  timezone: v.pipe(v.string(), v.examples(['UTC'])),
  recipients: v.array(v.string()),
  metrics: v.array(v.picklist(REPORT_METRICS)),
  enabled: v.boolean(),
  credentialId: v.nullable(idSchema),
  ...mailViewEntries,
  createdAt: timeSchema,
  updatedAt: timeSchema,
  nextRunAt: v.pipe(v.nullable(timeSchema), v.description('The next slot; null if it is not enabled')),
  lastRunAt: v.pipe(v.nullable(timeSchema), v.description('The slot of the last run')),
  lastStatus: v.pipe(v.nullable(v.picklist(REPORT_RUN_STATUSES)), v.description('What came of the last run')),
}

export const ScheduledReportSchema = v.pipe(v.object(report), v.title('ScheduledReport'))

/** A report that was just changed, with what may keep it from being sent. */
export const ChangedReportSchema = v.pipe(
  v.object({ ...report, ...warningsEntry }),
  v.title('ChangedScheduledReport'),
)

export const ReportRunSchema = v.pipe(
  v.object({
    id: idSchema,
    slot: v.pipe(timeSchema, v.description('The time of the schedule, or when somebody asked for it')),
    manual: v.pipe(v.boolean(), v.description('Whether somebody asked for it')),
    periodFrom: v.pipe(timeSchema, v.description('The report is about the time from here to the slot')),
    recipients: v.array(v.string()),
    metrics: v.array(v.picklist(REPORT_METRICS)),
    status: v.pipe(
      v.picklist(REPORT_RUN_STATUSES),
      v.description(
        'SENT: the mail server has taken it for one at least. SKIPPED: the slot was missed, or the report disabled before',
      ),
    ),
    tries: countSchema,
    error: v.pipe(v.nullable(v.string()), v.description('Why it was not sent, or not to all')),
    refused: v.pipe(
      v.array(v.string()),
      v.description('The recipients that the mail server has refused; the others got theirs'),
    ),
    withheld: v.pipe(
      v.array(v.string()),
      v.description('The recipients who had not said yes to mail of this team, or had said no'),
    ),
    sentAt: v.nullable(timeSchema),
    createdAt: timeSchema,
  }),
  v.title('ReportRun'),
)

function findScheduleFault(text: string): string | null {
  // An empty text is reported as such.
  if (text === '') return null
  const { problems } = parseCron(text)
  return problems.length > 0 ? problems.join('; ') : null
}
