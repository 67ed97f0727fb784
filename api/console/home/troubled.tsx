import { Link } from 'wouter'
import { useStatisticsOf } from '../data/overview.ts'
import { useWorkflows } from '../data/workflows.ts'
import { linkWith } from '../kit/address.ts'
import { Table } from '../kit/table.tsx'
import { formatDuration } from '../kit/time.tsx'
import { useTeam } from '../shell/role.tsx'

/** Of so many workflows, the newest ones, the statistics are asked for: each is a question of its own. */
const ASKED = 25
const SHOWN = 5

/** The workflows that fail most, and those that take longest. */
export function Troubled({ hours, from }: { hours: number; from: string }) {
  const { teamId } = useTeam()
  const { data: list } = useWorkflows(teamId, { size: ASKED })
  const names = new Map((list?.content ?? []).map(({ id, name }) => [id, name]))
  const { data } = useStatisticsOf(teamId, hours, [...names.keys()])
  if (!data) return null
  const failing = data
    .filter(({ failed }) => failed > 0)
    .sort((a, b) => b.failed - a.failed)
    .slice(0, SHOWN)
  const slowest = data
    .filter(({ durationP95Ms }) => durationP95Ms !== null)
    .sort((a, b) => b.durationP95Ms! - a.durationP95Ms!)
    .slice(0, SHOWN)
  const named = (id: string) => (
    <Link className="name" href={`/workflows/${id}`}>
      {names.get(id)}
    </Link>
  )
  const among = (list?.totalElements ?? 0) > ASKED && (
    <span className="quiet">among the {ASKED} newest workflows</span>
  )
  return (
    <div className="charts">
      <section>
        <div className="section-head">
          <h2>Failing workflows</h2>
          {among}
        </div>
        {failing.length === 0 ? (
          <p className="panel quiet">None failed in this time.</p>
        ) : (
          <Table
            label="Failing workflows"
            rows={failing}
            keyOf={({ workflowId }) => workflowId}
            columns={[
              { heading: 'Workflow', cell: ({ workflowId }) => named(workflowId) },
              {
                heading: 'Failed',
                number: true,
                cell: ({ workflowId, failed, executions }) => (
                  <Link href={linkWith('/executions', { status: 'FAILED', workflowId, from })}>
                    {failed.toLocaleString()} of {executions.toLocaleString()}
                  </Link>
                ),
              },
            ]}
          />
        )}
      </section>
      <section>
        <div className="section-head">
          <h2>Slowest workflows</h2>
          {among}
        </div>
        {slowest.length === 0 ? (
          <p className="panel quiet">None ended in this time.</p>
        ) : (
          <Table
            label="Slowest workflows"
            rows={slowest}
            keyOf={({ workflowId }) => workflowId}
            columns={[
              { heading: 'Workflow', cell: ({ workflowId }) => named(workflowId) },
              { heading: 'Median', number: true, cell: (one) => formatDuration(one.durationP50Ms) },
              {
                heading: 'p95',
                number: true,
                cell: ({ workflowId, durationP95Ms }) => (
                  <Link href={linkWith('/executions', { workflowId, from })}>
                    {formatDuration(durationP95Ms)}
                  </Link>
                ),
              },
            ]}
          />
        )}
      </section>
    </div>
  )
}
