import { useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { useParams } from 'wouter'
import { useApprovals } from '../approvals/data.ts'
import { serverNow } from '../data/clock.ts'
import { useQueryState } from '../kit/address.ts'
import { Checkbox } from '../kit/controls/input.tsx'
import { Tabs } from '../kit/controls/tabs.tsx'
import { Loading, Refused } from '../kit/states.tsx'
import { isOpen } from '../kit/status.tsx'
import { useRole, useTeam } from '../shell/role.tsx'
import { useWorkflow } from '../workflows/data.ts'
import { useGraph } from '../workflows/versions/data.ts'
import { Detail } from './detail/detail.tsx'
import type { RecordState } from './records.ts'
import { useWaits } from './waits.ts'
import './execution.css'
import { RunGraph } from './graph.tsx'
import { RunHeader } from './header.tsx'
import { useExecutionKeys } from './keys.ts'
import { type Run, useRun } from './live.ts'
import { Outcome } from './outcome.tsx'
import { iterationKey, listRows, type Pick } from './rows.ts'
import { Steps } from './steps.tsx'
import { Timeline } from './timeline/timeline.tsx'
import { countLoop, findLoop, placeOf, plantTree } from './tree.ts'
import { Waiting } from './waiting.tsx'

const STATE = { view: 'graph', node: '', at: '', step: '', failed: '' }
const APPROVALS = 20

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

function Followed({ run }: { run: Run }) {
  const open = isOpen(run.status)
  const now = useNow(open)
  const { data: workflow } = useWorkflow(run.workflowId)
  const { teamId: here, choose } = useTeam()
  const teamId = workflow?.teamId
  // A link may lead into another of the user's teams.
  useEffect(() => {
    if (teamId && teamId !== here) choose(teamId)
  }, [teamId, here, choose])
  const may = useRole(teamId)
  const { data: graph } = useGraph(workflow && run.workflowId, run.workflowVersion)
  const [state, setState] = useQueryState(STATE)
  const tree = useMemo(() => plantTree(run.records, graph), [run.records, graph])
  const known = useMemo(() => new Map(run.nodeExecutions.map((one) => [one.id, one])), [run.nodeExecutions])
  const asks = open && run.records.some(isAsking)
  const approvals = useApprovals(asks ? (teamId ?? '') : '', {
    executionId: run.id,
    status: 'OPEN',
    size: APPROVALS,
  })
  const shownApprovals = asks ? (approvals.data?.content ?? []) : []
  const waits = useWaits(run.id, asks && may('OPERATOR'))
  const shownWaits = asks ? (waits.data?.content ?? []) : []

  const [folds, setFolds] = useState<ReadonlyMap<string, boolean>>(new Map())
  const [picks, setPicks] = useState<ReadonlyMap<string, Pick>>(new Map())
  const failedOnly = state.failed === '1'
  const view = ['timeline', 'steps'].includes(state.view) ? state.view : 'graph'
  const rows = useMemo(
    () => listRows(tree, { open: folds, picks, failedOnly, tools: view !== 'timeline' }),
    [tree, folds, picks, failedOnly, view],
  )

  const record = useMemo((): RecordState | undefined => {
    if (!state.node) return undefined
    if (state.step) {
      const steps = tree.steps.get(placeOf({ nodeId: state.node, iteration: state.at || null }))
      return steps?.find(({ step }) => String(step) === state.step)
    }
    const all = tree.byNode.get(state.node) ?? []
    if (state.at) return all.find(({ iteration }) => iteration === state.at)
    // Of a node that ran more than once, what failed is looked for first, then what goes on.
    return all.find(({ status }) => status === 'FAILED') ?? all.find(({ status }) => isOpen(status)) ?? all[0]
  }, [state, tree])

  const onChoose = useCallback(
    ({ nodeId, iteration, step }: Chosen) =>
      setState({ node: nodeId, at: iteration ?? '', step: step ? String(step) : '' }, { replace: true }),
    [setState],
  )
  const close = useCallback(() => setState({ node: '', at: '', step: '' }, { replace: true }), [setState])

  // What is chosen is not folded away, unless somebody folds it then.
  const chosenPlace = record ? `${placeOf(record)} ${record.step ?? ''}` : ''
  const latest = useRef({ tree, record })
  latest.current = { tree, record }
  useEffect(() => {
    const { tree, record } = latest.current
    if (chosenPlace === '' || !record) return
    const keys: string[] = record.step === null ? [] : [placeOf(record)]
    let loop = findLoop(record, tree.parents)
    while (loop) {
      keys.push(loop.place, iterationKey(loop.place, loop.number))
      loop = findLoop(loop, tree.parents)
    }
    if (keys.length > 0)
      setFolds((before) => new Map([...before, ...keys.map((key) => [key, true] as const)]))
  }, [chosenPlace])

  useExecutionKeys({
    rows,
    chosen: record?.id,
    onChoose: onChoose,
    onClose: state.node ? close : null,
    onView: (next) => setState({ view: next }, { replace: true }),
  })

  const countOf = useCallback(
    (loop: RecordState) => {
      const taken = known.get(loop.id)?.itemsTaken ?? 0
      return countLoop(tree.loops.get(placeOf(loop)) ?? [], loop, taken)
    },
    [known, tree],
  )
  const list = {
    ...{ rows, chosen: record?.id, countOf, now },
    onChoose: onChoose,
    onFold: (key: string, next: boolean) => setFolds((before) => new Map(before).set(key, next)),
  }
  const failures = run.records.filter(({ status, step }) => status === 'FAILED' && step === null).length
  const filter = (
    <div className="run-filter">
      <Checkbox
        checked={failedOnly}
        onChange={(on) => setState({ failed: on ? '1' : '' }, { replace: true })}
      >
        Failed only ({failures.toLocaleString()})
      </Checkbox>
    </div>
  )
  return (
    <div className="run-page">
      <RunHeader run={run} teamId={teamId} newest={workflow?.version} now={now} />
      <Waiting
        executionId={run.id}
        approvals={shownApprovals}
        more={Math.max(0, (approvals.data?.totalElements ?? 0) - APPROVALS)}
        waits={shownWaits}
        records={run.records}
        now={now}
        onShow={onChoose}
      />
      <div className={state.node ? 'run-view split' : 'run-view'}>
        <Tabs
          label="Views of the execution"
          value={view}
          onChange={(next) => setState({ view: next }, { replace: true })}
          tabs={[
            {
              id: 'graph',
              label: 'Graph',
              content: graph ? (
                <RunGraph
                  label={`Graph of ${run.workflowName}`}
                  graph={graph}
                  tree={tree}
                  over={!open}
                  chosen={state.node}
                  onChoose={(node) => setState({ node, at: '', step: '' }, { replace: true })}
                  countOf={countOf}
                />
              ) : (
                <Loading text="The graph is drawn where the workflow can be read." />
              ),
            },
            {
              id: 'timeline',
              label: 'Timeline',
              content: (
                <>
                  {filter}
                  <Timeline run={run} {...list} />
                </>
              ),
            },
            {
              id: 'steps',
              label: `Steps (${Math.max(run.nodeExecutionsTotal, run.records.length).toLocaleString()})`,
              content: (
                <>
                  {filter}
                  <Steps
                    {...list}
                    picks={picks}
                    onPick={(place, pick) => setPicks((before) => new Map(before).set(place, pick))}
                    known={known}
                    failedOnly={failedOnly}
                  />
                </>
              ),
            },
          ]}
        />
        {state.node && (
          <Detail
            {...{ run, tree, graph, teamId, record, now }}
            nodeId={state.node}
            known={record && known.get(record.id)}
            approvals={shownApprovals}
            waits={shownWaits}
            onChoose={onChoose}
            onClose={close}
          />
        )}
      </div>
      <Outcome run={run} />
    </div>
  )
}

type Chosen = { nodeId: string; iteration: string | null; step?: number | null }

/** Whether a record may wait for people, or for an event: a step of an agent asks before it calls a tool. */
function isAsking({ nodeType, tool, status }: RecordState): boolean {
  return status === 'RUNNING' && (nodeType === 'APPROVAL' || nodeType === 'WAIT_FOR_EVENT' || tool !== null)
}
