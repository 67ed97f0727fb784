import { useState } from 'react'
import { useCredentials } from '../../credentials/data.ts'
import { problemAt } from '../../data/refusal.ts'
import { Field, FieldGroup } from '../../kit/controls/field.tsx'
import { Checkbox, Select, TextArea, TextInput } from '../../kit/controls/input.tsx'
import { nameConstant, Pill, type Tone } from '../../kit/status.tsx'
import { ManagedForm } from '../../kit/tables/managedform.tsx'
import { TableDialog } from '../../kit/tables/tabledialog.tsx'
import { Time, ZONE } from '../../kit/time.tsx'
import {
  createReport,
  METRICS,
  type Metric,
  type ScheduledReport,
  updateReport,
  useReportRuns,
} from './data.ts'

type EditProps = { teamId: string; report: ScheduledReport | null; onClose: () => void }

/** Makes or changes a report. */
export function ReportDialog({ teamId, report, onClose }: EditProps) {
  const [schedule, setSchedule] = useState(report?.schedule ?? '0 7 * * MON')
  const [timezone, setTimezone] = useState(report?.timezone ?? ZONE)
  const [recipients, setRecipients] = useState(report?.recipients.join('\n') ?? '')
  const [credentialId, setCredentialId] = useState(report?.credentialId ?? '')
  const servers = useCredentials(teamId).data?.filter((one) => one.type === 'SMTP') ?? []
  const [metrics, setMetrics] = useState<Metric[]>(report?.metrics ?? ['token_usage', 'anomalies'])

  const save = async (name: string) => {
    const list = recipients.split(/[\s,]+/).filter(Boolean)
    const about = { name, schedule, timezone, metrics }
    const wanted = { ...about, recipients: list, credentialId: credentialId || null }
    const { warnings = [] } = report
      ? await updateReport(teamId, report.id, wanted)
      : await createReport(teamId, wanted)
    return warnings[0]?.message
  }

  return (
    <ManagedForm
      noun="report"
      thing={report}
      nameHelp="In the mails; with a mail server of the team it is their subject."
      onClose={onClose}
      save={save}
      fields={['schedule', 'timezone', 'credentialId']}
    >
      {(error) => (
        <>
          <Field
            label="Schedule"
            required
            help="A cron expression: minute, hour, day of the month, month, day of the week."
            error={problemAt(error, 'schedule')}
          >
            <TextInput value={schedule} onChange={setSchedule} required className="code" />
          </Field>
          <Field label="Time zone" required error={problemAt(error, 'timezone')}>
            <TextInput value={timezone} onChange={setTimezone} required maxLength={100} />
          </Field>
          <Field label="Recipients" required help="One a line; each gets a mail of their own.">
            <TextArea value={recipients} onChange={setRecipients} required rows={3} />
          </Field>
          <Field label="Mail server" error={problemAt(error, 'credentialId')}>
            <Select
              value={credentialId}
              onChange={setCredentialId}
              empty="The service's own, to those who want it"
              choices={servers.map((one) => ({ value: one.id, label: one.name }))}
            />
          </Field>
          <FieldGroup label="About">
            {METRICS.map((metric) => (
              <Checkbox
                key={metric}
                checked={metrics.includes(metric)}
                onChange={(on) =>
                  setMetrics(on ? [...metrics, metric] : metrics.filter((other) => other !== metric))
                }
              >
                {nameConstant(metric)}
              </Checkbox>
            ))}
          </FieldGroup>
        </>
      )}
    </ManagedForm>
  )
}

const TONES: Record<string, Tone> = { SENT: 'good', FAILED: 'bad', PENDING: 'busy', SKIPPED: 'warn' }

export function RunStatus({ status }: { status: string }) {
  return <Pill tone={TONES[status]}>{nameConstant(status)}</Pill>
}

/** The outcomes of the mails of a report. */
export function RunsDialog({
  teamId,
  report,
  onClose,
}: {
  teamId: string
  report: ScheduledReport
  onClose: () => void
}) {
  const found = useReportRuns(teamId, report.id)
  return (
    <TableDialog
      title={`Mails of ${report.name}`}
      label="Mails"
      query={found}
      none="None in the last 90 days."
      onClose={onClose}
      columns={[
        { heading: 'Status', cell: ({ status }) => <RunStatus status={status} /> },
        {
          heading: 'For',
          cell: ({ slot, manual }) => (
            <>
              <Time at={slot} /> {manual && <div className="quiet">asked for</div>}
            </>
          ),
        },
        {
          heading: 'Said',
          cell: ({ error, refused, withheld }) => (
            <span className="said">
              {error ?? '–'}
              {refused.length > 0 && ` Refused: ${refused.join(', ')}`}
              {withheld.length > 0 && ` No yes: ${withheld.join(', ')}`}
            </span>
          ),
        },
      ]}
    />
  )
}
