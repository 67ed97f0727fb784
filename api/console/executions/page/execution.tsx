import './execution.css'
import { useEffect, useMemo, useState } from 'react'
import { useParams } from 'wouter'
import { serverNow } from '../../data/clock.ts'
import { Loading, Refused } from '../../kit/states.tsx'
import { isOpen } from '../../kit/status.tsx'
import { useTeam } from '../../shell/role.tsx'
import { useWorkflow, type Workflow } from '../../workflows/data.ts'
import { useGraph } from '../../workflows/versions/data.ts'
import { Detail } from '../detail/detail.tsx'
import { type Run, useRun } from '../live.ts'
import { Outcome } from '../outcome.tsx'
import { plantTree } from '../tree.ts'
import { Waiting } from '../waits/waiting.tsx'
import { useAsks } from './asks.ts'
import { useChosen } from './chosen.ts'
import { RunHeader } from './header.tsx'
import { Views } from './views.tsx'

/** One execution, followed until it ends: its graph, its timeline, its steps, and each record. */
export function ExecutionPage() {
  const { id = '' } = useParams<{ id: string }>()
  return <OneExecution key={id} id={id} />
}

function OneExecution({ id }: { id: string }) {
  const { data: run, error } = useRun(id)
  if (run) return <Followed run={run} />
  return error ? <Refused error={error} /> : <Loading />
}

function useNow(open: boolean): number {
  const [now, setNow] = useState(serverNow)
  useEffect(() => {
    if (!open) return
    const clock = setInterval(() => setNow(serverNow()), 1_000)
    return () => clearInterval(clock)
  }, [open])
  return now
}

/** Which team's the execution is. A link may lead into another of the user's teams, which is chosen then. */
function useTeamOf(workflow: Workflow | undefined): string | undefined {
  const { teamId: here, choose } = useTeam()
  const teamId = workflow?.teamId
  useEffect(() => {
    if (teamId && teamId !== here) choose(teamId)
  }, [teamId, here, choose])
  return teamId
}

function Followed({ run }: { run: Run }) {
  const now = useNow(isOpen(run.status))
  const { data: workflow } = useWorkflow(run.workflowId)
  const teamId = useTeamOf(workflow)
  const { data: graph } = useGraph(workflow && run.workflowId, run.workflowVersion)
  const tree = useMemo(() => plantTree(run.records, graph), [run.records, graph])
  const known = useMemo(() => new Map(run.nodeExecutions.map((one) => [one.id, one])), [run.nodeExecutions])
  const asks = useAsks(run, teamId)
  const chosen = useChosen(tree)
  const { node, record, choose, close } = chosen
  return (
    <div className="run-page">
      <RunHeader run={run} teamId={teamId} newest={workflow?.version} now={now} />
      <Waiting executionId={run.id} {...asks} records={run.records} now={now} onShow={choose} />
      <div className={node ? 'run-view split' : 'run-view'}>
        <Views {...{ run, graph, tree, known, chosen, now }} />
        {node && (
          <Detail
            {...{ run, tree, graph, teamId, record, now }}
            nodeId={node}
            known={record && known.get(record.id)}
            approvals={asks.approvals}
            waits={asks.waits}
            onChoose={choose}
            onClose={close}
          />
        )}
      </div>
      <Outcome run={run} />
    </div>
  )
}
