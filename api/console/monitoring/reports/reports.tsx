import { useState } from 'react'
import { Button } from '../../kit/controls/button.tsx'
import { notify, notifyError } from '../../kit/notices.tsx'
import { useConfirm } from '../../kit/overlays/confirm.tsx'
import { Loaded } from '../../kit/states.tsx'
import { nameConstant } from '../../kit/status.tsx'
import { Managed } from '../../kit/tables/managed.tsx'
import { Age, Time, ZONE } from '../../kit/time.tsx'
import { useRole, useTeam } from '../../shell/role.tsx'
import { MissingYes } from '../missingyes.tsx'
import { deleteReport, type ScheduledReport, sendReport, updateReport, useReports } from './data.ts'
import { ReportDialog, RunStatus, RunsDialog } from './report.tsx'

/** The figures that the team has mailed to people at regular times. */
export function ReportsView() {
  const { teamId } = useTeam()
  const mayChange = useRole()('ADMIN')
  const confirm = useConfirm()
  const found = useReports(teamId)
  const [edited, setEdited] = useState<ScheduledReport | 'new' | null>(null)
  const [shown, setShown] = useState<ScheduledReport | null>(null)

  const send = (report: ScheduledReport) =>
    sendReport(teamId, report.id).then(() => notify(`${report.name} is sent soon`), notifyError)
  const turn = (report: ScheduledReport, enabled: boolean) => {
    const { name, schedule, recipients, metrics } = report
    return updateReport(teamId, report.id, { name, schedule, recipients, metrics, enabled })
  }
  const remove = (report: ScheduledReport) =>
    confirm({
      title: `Delete ${report.name}?`,
      text: 'It is not sent any more, and what came of its mails is forgotten. This cannot be undone.',
      label: 'Delete the report',
      danger: true,
      work: () => deleteReport(teamId, report.id),
    })
  return (
    <div className="stack">
      <Loaded query={found} rows={3}>
        {(reports) => (
          <Managed
            label="Reports"
            rows={reports}
            mayChange={mayChange}
            empty={{ title: 'No reports', text: 'A report mails figures of the team at regular times.' }}
            add={{ label: 'New report', onClick: () => setEdited('new') }}
            columns={[
              {
                heading: 'Report',
                cell: ({ name, metrics, recipients, recipientStates, held }) => (
                  <>
                    <span className="name">{name}</span>
                    <div className="quiet said">{metrics.map(nameConstant).join(', ')}</div>
                    <div className="quiet said">to {recipients.join(', ')}</div>
                    <MissingYes states={recipientStates} held={held} />
                  </>
                ),
              },
              {
                heading: 'Schedule',
                cell: ({ schedule, timezone }) => (
                  <>
                    <code>{schedule}</code>
                    <div className="quiet">{timezone}</div>
                  </>
                ),
              },
              { heading: `Next (${ZONE})`, cell: ({ nextRunAt }) => <Time at={nextRunAt} /> },
              {
                heading: 'Last',
                cell: ({ lastStatus, lastRunAt }) => (
                  <>
                    {lastStatus && <RunStatus status={lastStatus} />} <Age at={lastRunAt} />
                  </>
                ),
              },
            ]}
            onOff={{
              heading: 'Enabled',
              verb: 'Send',
              isOn: ({ enabled }) => enabled,
              change: turn,
              said: ({ name }, on) => (on ? `${name} is sent from now on` : `${name} is not sent any more`),
            }}
            act={(report) => (
              <Button small aria-label={`Mails of ${report.name}`} onClick={() => setShown(report)}>
                Mails
              </Button>
            )}
            menu={(report) => [
              { label: 'Send now', icon: 'play', onClick: () => void send(report) },
              { label: 'Edit', icon: 'edit', onClick: () => setEdited(report) },
              { label: 'Delete', icon: 'trash', danger: true, onClick: () => remove(report) },
            ]}
          />
        )}
      </Loaded>
      {edited && (
        <ReportDialog
          key={edited === 'new' ? 'new' : edited.id}
          teamId={teamId}
          report={edited === 'new' ? null : edited}
          onClose={() => setEdited(null)}
        />
      )}
      {shown && <RunsDialog teamId={teamId} report={shown} onClose={() => setShown(null)} />}
    </div>
  )
}
