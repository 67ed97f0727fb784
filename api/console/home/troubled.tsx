import { Link } from 'wouter'
import { linkWith } from '../kit/address.ts'
import { Refused } from '../kit/states.tsx'
import { Table } from '../kit/tables/table.tsx'
import { formatAbout, formatDuration, formatRate } from '../kit/time.tsx'
import { useTeam } from '../shell/role.tsx'
import { useWorkflowStatistics, type WorkflowStatistics } from './data.ts'

/** The workflows that fail most, and those that take longest, of all that were executed in the time. */
export function Troubled({ hours, from }: { hours: number; from: string }) {
  const { teamId } = useTeam()
  const failed = useWorkflowStatistics(teamId, hours, 'failed')
  const slow = useWorkflowStatistics(teamId, hours, 'durationP95Ms')
  if (!failed.data || !slow.data) return <Refused error={failed.error ?? slow.error} />
  const failing = failed.data.workflows.filter((one) => one.failed > 0)
  const slowest = slow.data.workflows.filter(({ durationP95Ms }) => durationP95Ms !== null)
  const named = ({ workflowId, workflowName }: WorkflowStatistics) =>
    workflowName === null ? (
      <span className="quiet">A deleted workflow</span>
    ) : (
      <Link className="name" href={`/workflows/${workflowId}`}>
        {workflowName}
      </Link>
    )
  return (
    <div className="charts">
      <section>
        <div className="section-head">
          <h2>Failing workflows</h2>
        </div>
        {failing.length === 0 ? (
          <p className="panel quiet">None failed in this time.</p>
        ) : (
          <Table
            label="Failing workflows"
            rows={failing}
            keyOf={({ workflowId }) => workflowId}
            columns={[
              { heading: 'Workflow', cell: named },
              {
                heading: 'Failed',
                number: true,
                cell: ({ workflowId, failed, executions }) => (
                  <Link href={linkWith('/executions', { status: 'FAILED', workflowId, from })}>
                    {failed.toLocaleString()} of {executions.toLocaleString()}
                  </Link>
                ),
              },
              { heading: 'Rate', number: true, cell: ({ failureRate }) => formatRate(failureRate) },
            ]}
          />
        )}
      </section>
      <section>
        <div className="section-head">
          <h2>Slowest workflows</h2>
        </div>
        {slowest.length === 0 ? (
          <p className="panel quiet">None ended in this time.</p>
        ) : (
          <Table
            label="Slowest workflows"
            rows={slowest}
            keyOf={({ workflowId }) => workflowId}
            columns={[
              { heading: 'Workflow', cell: named },
              { heading: 'Average', number: true, cell: (one) => formatDuration(one.durationAverageMs) },
              {
                heading: 'p95',
                number: true,
                cell: ({ workflowId, durationP95Ms }) => (
                  <Link href={linkWith('/executions', { workflowId, from })}>
                    {formatAbout(durationP95Ms)}
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
