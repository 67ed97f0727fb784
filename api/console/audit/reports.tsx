import { useState } from 'react'
import { addressOf } from '../data/client.ts'
import { serverNow } from '../data/clock.ts'
import { problemAt } from '../data/refusal.ts'
import { Button, LinkButton } from '../kit/controls/button.tsx'
import { Field } from '../kit/controls/field.tsx'
import { DateInput, Select, TextInput } from '../kit/controls/input.tsx'
import { notify } from '../kit/notices.tsx'
import { useConfirm } from '../kit/overlays/confirm.tsx'
import { FormDialog } from '../kit/overlays/dialog.tsx'
import { Empty, Loaded } from '../kit/states.tsx'
import { nameConstant, Pill, type Tone } from '../kit/status.tsx'
import { Table } from '../kit/tables/table.tsx'
import { Age, Time } from '../kit/time.tsx'
import { useTeam } from '../shell/role.tsx'
import { type AuditReport, createAuditReport, deleteAuditReport, isMade, useAuditReports } from './data.ts'

const TYPES: readonly { value: AuditReport['type']; label: string }[] = [
  { value: 'COMPLIANCE', label: 'Compliance – access, permissions, credentials' },
  { value: 'ACTIVITY', label: 'Activity – what was done, by whom and when' },
  { value: 'SECURITY', label: 'Security – failed sign-ins, denied acts, new addresses' },
]

const STATES: Record<AuditReport['status'], { label: string; tone: Tone }> = {
  PENDING: { label: 'Waits', tone: 'busy' },
  RUNNING: { label: 'Is made', tone: 'busy' },
  COMPLETED: { label: 'Ready', tone: 'good' },
  FAILED: { label: 'Failed', tone: 'bad' },
}

/** Reports for those who ask for proof: a worker makes them, and each proves the chain. */
export function AuditReports() {
  const { teamId } = useTeam()
  const found = useAuditReports(teamId)
  const [open, setOpen] = useState(false)
  return (
    <>
      <div className="audit-tools">
        <p className="quiet">A page to read and print, or JSON, of a period. Each report proves the chain.</p>
        <Button icon="plus" onClick={() => setOpen(true)}>
          New report
        </Button>
      </div>
      <Loaded query={found} rows={3}>
        {(reports) =>
          reports.length === 0 ? (
            <Empty title="No reports" text="Ask for one when somebody wants to see what was done." />
          ) : (
            <ReportTable rows={reports} />
          )
        }
      </Loaded>
      {open && <NewReport onClose={() => setOpen(false)} />}
    </>
  )
}

function ReportTable({ rows }: { rows: readonly AuditReport[] }) {
  return (
    <Table
      label="Audit reports"
      rows={rows}
      keyOf={({ id }) => id}
      columns={[
        {
          heading: 'Report',
          cell: ({ name, type, createdBy }) => (
            <>
              <div className="name">{name}</div>
              <div className="quiet">
                {nameConstant(type)}, by {createdBy.name}
              </div>
            </>
          ),
        },
        {
          heading: 'Period',
          cell: ({ from, to }) => (
            <>
              <div>
                <Time at={from} />
              </div>
              <div>
                <Time at={to} />
              </div>
            </>
          ),
        },
        {
          heading: 'Status',
          cell: ({ status, error }) => (
            <>
              <Pill tone={STATES[status].tone}>{STATES[status].label}</Pill>
              {error && <div className="quiet">{error}</div>}
            </>
          ),
        },
        { heading: 'Asked for', cell: ({ createdAt }) => <Age at={createdAt} /> },
        { heading: 'Removed', cell: ({ expiresAt }) => <Age at={expiresAt} /> },
        { heading: 'Actions', cell: (report) => <Actions report={report} /> },
      ]}
    />
  )
}

function Actions({ report }: { report: AuditReport }) {
  const { id, name, teamId, status, downloadUrl } = report
  const confirm = useConfirm()
  const act = isMade(report) ? 'Stop' : 'Delete'
  const remove = () =>
    confirm({
      title: 'Delete this report?',
      text: (
        <>
          <strong>{name}</strong> cannot be downloaded any more. What it tells of stays in the audit.
        </>
      ),
      label: 'Delete',
      danger: true,
      work: async () => {
        await deleteAuditReport(teamId, id)
        notify('Report deleted')
      },
    })
  return (
    <div className="row">
      {status === 'COMPLETED' &&
        (['html', 'json'] as const).map((format) => (
          <LinkButton
            key={format}
            small
            icon="download"
            aria-label={`Download ${name} as ${format.toUpperCase()}`}
            href={addressOf(`${downloadUrl}?format=${format}`)}
            download
          >
            {format.toUpperCase()}
          </LinkButton>
        ))}
      <Button small aria-label={`${act} ${name}`} onClick={remove}>
        {act}
      </Button>
    </div>
  )
}

function NewReport({ onClose }: { onClose: () => void }) {
  const { teamId } = useTeam()
  const [name, setName] = useState('')
  const [type, setType] = useState<string>('COMPLIANCE')
  const [from, setFrom] = useState(() => new Date(serverNow() - 90 * 86_400_000).toISOString())
  const [to, setTo] = useState(() => new Date().toISOString())
  const send = async () => {
    const chosen = TYPES.find(({ value }) => value === type)?.value ?? 'COMPLIANCE'
    await createAuditReport(teamId, { name, type: chosen, from, to })
    notify('The report is being made')
  }
  return (
    <FormDialog
      open
      onClose={onClose}
      title="New report"
      label="Create"
      onSubmit={send}
      fields={['name', 'type', 'from', 'to']}
    >
      {(error) => (
        <div className="stack">
          <Field label="Name" required error={problemAt(error, 'name')}>
            <TextInput value={name} maxLength={200} onChange={setName} />
          </Field>
          <Field label="Type" error={problemAt(error, 'type')}>
            <Select value={type} onChange={setType} choices={TYPES} />
          </Field>
          <Field label="From" required error={problemAt(error, 'from')}>
            <DateInput value={from} onChange={setFrom} />
          </Field>
          <Field label="Before" required error={problemAt(error, 'to')}>
            <DateInput value={to} onChange={setTo} />
          </Field>
        </div>
      )}
    </FormDialog>
  )
}
