import { Link } from 'wouter'
import { ExecutionLink } from '../executions/list.tsx'
import { readPage, useQueryState } from '../kit/address.ts'
import { PageHeader } from '../kit/header.tsx'
import { Empty, Loaded } from '../kit/states.tsx'
import { Pill, StatusBadge } from '../kit/status.tsx'
import { Pager } from '../kit/tables/pager.tsx'
import { Table } from '../kit/tables/table.tsx'
import { Age, formatDuration, Time, ZONE } from '../kit/time.tsx'
import { useTeam } from '../shell/role.tsx'
import { type Schedule, type ScheduledWorkflow, useSchedules } from './data.ts'

/** How many of the next times a row shows. */
const SHOWN = 3

/** When the team's workflows start by themselves. */
export function SchedulesPage() {
  const { teamId } = useTeam()
  const [{ page }, , linkTo] = useQueryState({ page: '' })
  const found = useSchedules(teamId, readPage(page))
  return (
    <>
      <PageHeader
        title="Schedules"
        lead="When workflows start by themselves, while they are active: each by the zone of its schedule. The times here are in your zone."
      />
      <Loaded query={found}>
        {(list) =>
          list.totalElements > 0 ? (
            <>
              <ScheduleTable workflows={list.content} />
              <Pager page={list} linkTo={(number) => linkTo({ page: number })} />
            </>
          ) : (
            <Empty
              title="No schedules"
              text="A workflow that begins with a schedule stands here, with the next times at which it starts."
            />
          )
        }
      </Loaded>
    </>
  )
}

type ScheduleRow = Omit<ScheduledWorkflow, 'schedules'> & { schedule: Schedule }

function ScheduleTable({ workflows }: { workflows: readonly ScheduledWorkflow[] }) {
  const rows: ScheduleRow[] = workflows.flatMap(({ schedules, ...workflow }) =>
    schedules.map((schedule) => ({ ...workflow, schedule })),
  )
  return (
    <Table
      label="Schedules"
      rows={rows}
      keyOf={({ workflowId, schedule }) => `${workflowId} ${schedule.nodeId}`}
      columns={[
        {
          heading: 'Workflow',
          cell: ({ workflowId, workflowName, schedule }) => (
            <>
              <Link className="name" href={`/workflows/${workflowId}`}>
                {workflowName}
              </Link>
              <div className="quiet">{schedule.nodeId}</div>
            </>
          ),
        },
        { heading: 'State', cell: (row) => <State row={row} /> },
        {
          heading: 'Schedule',
          cell: ({ schedule: { cron, timezone } }) => (
            <>
              <code>{cron}</code>
              <div className="quiet">{timezone}</div>
            </>
          ),
        },
        { heading: `Next executions (${ZONE})`, cell: (row) => <Next row={row} /> },
        { heading: 'Last execution', cell: ({ schedule }) => <Last schedule={schedule} /> },
        { heading: 'Missed', cell: ({ schedule }) => <Missed schedule={schedule} /> },
      ]}
    />
  )
}

function State({ row: { active, schedule } }: { row: ScheduleRow }) {
  if (!active) return <Pill>Inactive</Pill>
  if (schedule.paused) return <Pill tone="warn">Paused</Pill>
  return schedule.registered ? <Pill tone="good">Active</Pill> : <Pill tone="busy">Is set up</Pill>
}

function Next({ row: { active, schedule } }: { row: ScheduleRow }) {
  const { paused, nextRuns } = schedule
  const [first, ...more] = nextRuns.slice(0, SHOWN)
  if (!first || paused || !active) {
    return (
      <span className="quiet">{paused ? 'None while paused' : active ? 'None' : 'None while inactive'}</span>
    )
  }
  return (
    <>
      <div>
        <Time at={first} />{' '}
        <span className="quiet">
          (<Age at={first} />)
        </span>
      </div>
      {more.map((at) => (
        <div key={at} className="quiet">
          <Time at={at} />
        </div>
      ))}
    </>
  )
}

function Last({ schedule: { lastRun } }: { schedule: Schedule }) {
  if (!lastRun) return <span className="quiet">–</span>
  return (
    <>
      <StatusBadge status={lastRun.status} /> <ExecutionLink id={lastRun.executionId} />
      <div className="quiet">
        <Time at={lastRun.scheduledAt} />
      </div>
    </>
  )
}

function Missed({ schedule: { firings, missed, skipped, catchupWindowMs } }: { schedule: Schedule }) {
  const said = [
    missed > 0 ? `${missed} missed` : '',
    skipped > 0 ? `${skipped} skipped, as one was under way` : '',
  ].filter(Boolean)
  return (
    <>
      <div>{said.length > 0 ? said.join(', ') : 'None'}</div>
      <div className="quiet" title={`Made up for if at most ${formatDuration(catchupWindowMs)} late`}>
        of {(firings + missed + skipped).toLocaleString()}
      </div>
    </>
  )
}
