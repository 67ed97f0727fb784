import { Link } from 'wouter'
import { Empty, Loaded } from '../kit/states.tsx'
import { Table } from '../kit/tables/table.tsx'
import { Age } from '../kit/time.tsx'
import { useTeam } from '../shell/role.tsx'
import { StatePill } from './alerts.tsx'
import { useShifts } from './usage/data.ts'

type Shifts = NonNullable<ReturnType<typeof useShifts>['data']>
type Checked = Omit<Shifts['drift'][number], 'side'>

const SIDES = { INPUT: 'What it is given', OUTPUT: 'What it answers' } as const

/** Whether workflows work on something else than in the two weeks before, and whether users sound otherwise. */
export function ShiftsView() {
  const { teamId } = useTeam()
  const found = useShifts(teamId)
  return (
    <Loaded query={found}>
      {({ drift, sentiment, days }) => {
        const told = days.filter(({ count }) => count > 0).toReversed()
        if (drift.length === 0 && sentiment.length === 0 && told.length === 0)
          return (
            <Empty
              title="Nothing sampled yet"
              text={
                <>
                  An ADMIN switches drift and sentiment on in the{' '}
                  <Link href="/monitoring?tab=settings">settings</Link>. Then the last 24 hours are compared
                  with the two weeks before.
                </>
              }
            />
          )
        return (
          <div className="stack">
            {drift.length > 0 && (
              <section>
                <h2>Drift</h2>
                <Table
                  label="Drift"
                  rows={drift}
                  keyOf={({ workflowId, side }) => `${workflowId} ${side}`}
                  columns={[
                    { heading: 'Workflow', cell: (row) => <Name {...row} /> },
                    { heading: 'Compared', cell: ({ side }) => SIDES[side] },
                    { heading: 'State', cell: (row) => <StatePill {...row} /> },
                    { heading: 'Shift', number: true, cell: (row) => formatShift(row) },
                    { heading: 'Samples', number: true, cell: (row) => formatSamples(row) },
                    { heading: 'Up to', cell: ({ windowTo }) => <Age at={windowTo} /> },
                  ]}
                />
              </section>
            )}
            {sentiment.length > 0 && (
              <section>
                <h2>How users sound, by workflow</h2>
                <Table
                  label="Sentiment by workflow"
                  rows={sentiment}
                  keyOf={({ workflowId }) => workflowId}
                  columns={[
                    { heading: 'Workflow', cell: (row) => <Name {...row} /> },
                    { heading: 'State', cell: (row) => <StatePill {...row} /> },
                    { heading: 'Now', number: true, cell: ({ observed }) => formatMood(observed) },
                    { heading: 'Before', number: true, cell: ({ expected }) => formatMood(expected) },
                    { heading: 'Samples', number: true, cell: (row) => formatSamples(row) },
                    { heading: 'Up to', cell: ({ windowTo }) => <Age at={windowTo} /> },
                  ]}
                />
              </section>
            )}
            {told.length > 0 && (
              <section>
                <h2>How users sound, by day (UTC)</h2>
                <p className="quiet">From -1, bad, to 1, good. Of few messages nothing is said.</p>
                <Table
                  label="Sentiment by day"
                  rows={told}
                  keyOf={({ date }) => date}
                  columns={[
                    { heading: 'Day', cell: ({ date }) => <span className="name">{date}</span> },
                    { heading: 'Mean', number: true, cell: ({ mean }) => formatMood(mean) },
                    { heading: 'Messages', number: true, cell: ({ count }) => count.toLocaleString() },
                  ]}
                />
              </section>
            )}
          </div>
        )
      }}
    </Loaded>
  )
}

function Name({ workflowId, workflowName }: Pick<Checked, 'workflowId' | 'workflowName'>) {
  return (
    <Link className="name" href={`/workflows/${workflowId}`}>
      {workflowName}
    </Link>
  )
}

function formatShift({ statistic, threshold }: Checked): string {
  if (statistic === null) return '–'
  return `${statistic.toFixed(2)}${threshold === null ? '' : ` of ${threshold.toFixed(2)}`}`
}

function formatSamples({ currentCount, referenceCount }: Checked): string {
  return `${currentCount.toLocaleString()} against ${referenceCount.toLocaleString()}`
}

function formatMood(mean: number | null): string {
  return mean === null ? '–' : mean.toFixed(2)
}
