import { ExecutionLink } from '../executions/list.tsx'
import { Loaded } from '../kit/states.tsx'
import { StatusBadge } from '../kit/status.tsx'
import { Table } from '../kit/tables/table.tsx'
import { Age, Time } from '../kit/time.tsx'
import { type Schedule, useWorkflowSchedules } from '../schedules/data.ts'

/** When a workflow is executed next; an inactive one never is by itself. */
export function NextRun({ id, active }: { id: string; active: boolean }) {
  const { data } = useWorkflowSchedules(id, active)
  const next = (data ?? []).flatMap(({ paused, nextRuns }) => (paused ? [] : nextRuns.slice(0, 1))).sort()[0]
  return <Age at={next} />
}

/** When a workflow's schedules fire next, and what came of the last time. */
export function Schedules({ id }: { id: string }) {
  const found = useWorkflowSchedules(id, true)
  return (
    <Loaded query={found} rows={1}>
      {(schedules) => <ScheduleTable schedules={schedules} />}
    </Loaded>
  )
}

function ScheduleTable({ schedules }: { schedules: readonly Schedule[] }) {
  return (
    <Table
      label="Schedules"
      rows={schedules}
      keyOf={({ nodeId }) => nodeId}
      columns={[
        { heading: 'Node', cell: ({ nodeId }) => <span className="name">{nodeId}</span> },
        {
          heading: 'Schedule',
          cell: ({ cron, timezone }) => (
            <>
              <code>{cron}</code>
              <div className="quiet">{timezone}</div>
            </>
          ),
        },
        { heading: 'Next executions', cell: (schedule) => <Next schedule={schedule} /> },
        {
          heading: 'Last execution',
          cell: ({ lastRun }) =>
            lastRun ? (
              <span className="row">
                <StatusBadge status={lastRun.status} />
                <ExecutionLink id={lastRun.executionId} />
              </span>
            ) : (
              <span className="quiet">–</span>
            ),
        },
        {
          heading: 'Missed',
          number: true,
          cell: ({ missed, skipped }) => `${missed}${skipped > 0 ? `, ${skipped} skipped` : ''}`,
        },
      ]}
    />
  )
}

function Next({ schedule: { paused, registered, nextRuns } }: { schedule: Schedule }) {
  if (nextRuns.length === 0 || paused) {
    return <span className="quiet">{paused ? 'Paused' : registered ? 'None' : 'None while inactive'}</span>
  }
  return nextRuns.slice(0, 3).map((at) => (
    <div key={at}>
      <Time at={at} />
    </div>
  ))
}
