import { useState } from 'react'
import { problemAt } from '../data/refusal.ts'
import {
  createReport,
  METRICS,
  type Metric,
  type Report,
  updateReport,
  useReportRuns,
} from '../data/reports.ts'
import { Button } from '../kit/button.tsx'
import { Dialog, FormDialog } from '../kit/dialog.tsx'
import { Field, FieldGroup } from '../kit/field.tsx'
import { Checkbox, TextArea, TextInput } from '../kit/input.tsx'
import { notify } from '../kit/notices.tsx'
import { Loaded } from '../kit/states.tsx'
import { nameConstant, Pill, type Tone } from '../kit/status.tsx'
import { Table } from '../kit/table.tsx'
import { Time, ZONE } from '../kit/time.tsx'

type EditProps = { teamId: string; report: Report | null; onClose: () => void }

/** Makes or changes a report. */
export function ReportDialog({ teamId, report, onClose }: EditProps) {
  const [name, setName] = useState(report?.name ?? '')
  const [schedule, setSchedule] = useState(report?.schedule ?? '0 7 * * MON')
  const [timezone, setTimezone] = useState(report?.timezone ?? ZONE)
  const [recipients, setRecipients] = useState(report?.recipients.join('\n') ?? '')
  const [metrics, setMetrics] = useState<Metric[]>(report?.metrics ?? ['token_usage', 'anomalies'])

  const save = async () => {
    const list = recipients.split(/[\s,]+/).filter(Boolean)
    const wanted = { name, schedule, timezone, recipients: list, metrics }
    const { warnings = [] } = report
      ? await updateReport(teamId, report.id, wanted)
      : await createReport(teamId, wanted)
    notify(warnings[0]?.message ?? 'Saved')
  }

  return (
    <FormDialog
      open
      onClose={onClose}
      title={report ? `Edit ${report.name}` : 'New report'}
      label="Save the report"
      onSubmit={save}
      fields={['name', 'schedule', 'timezone']}
    >
      {(error) => (
        <>
          <Field label="Name" required help="The subject of the mails." error={problemAt(error, 'name')}>
            <TextInput value={name} onChange={setName} required maxLength={100} />
          </Field>
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
          <Field label="Recipients" required help="One a line; all of them see each other.">
            <TextArea value={recipients} onChange={setRecipients} required rows={3} />
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
    </FormDialog>
  )
}

const TONES: Record<string, Tone> = { SENT: 'good', FAILED: 'bad', PENDING: 'busy', SKIPPED: 'warn' }

export function RunStatus({ status }: { status: string }) {
  return <Pill tone={TONES[status]}>{nameConstant(status)}</Pill>
}

/** What came of the mails of a report. */
export function RunsDialog({
  teamId,
  report,
  onClose,
}: {
  teamId: string
  report: Report
  onClose: () => void
}) {
  const found = useReportRuns(teamId, report.id)
  return (
    <Dialog open wide onClose={onClose} title={`Mails of ${report.name}`}>
      <div className="stack">
        <Loaded query={found} rows={3}>
          {({ content }) =>
            content.length === 0 ? (
              <p className="quiet">None in the last 90 days.</p>
            ) : (
              <Table
                label="Mails"
                rows={content}
                keyOf={({ id }) => id}
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
                    cell: ({ error, refused }) => (
                      <span className="said">
                        {error ?? '–'}
                        {refused.length > 0 && ` Refused: ${refused.join(', ')}`}
                      </span>
                    ),
                  },
                ]}
              />
            )
          }
        </Loaded>
        <div className="actions">
          <Button onClick={onClose}>Close</Button>
        </div>
      </div>
    </Dialog>
  )
}
