import { useCallback } from 'react'
import { Checkbox } from '../../kit/controls/input.tsx'
import { Tabs } from '../../kit/controls/tabs.tsx'
import { Loading } from '../../kit/states.tsx'
import { isOpen } from '../../kit/status.tsx'
import type { VersionGraph } from '../../workflows/versions/data.ts'
import { RunGraph } from '../graph.tsx'
import { useExecutionKeys } from '../keys.ts'
import type { Run } from '../live.ts'
import type { NodeRecord, RecordState } from '../records.ts'
import { Steps } from '../steps.tsx'
import { Timeline } from '../timeline/timeline.tsx'
import { countLoop, placeOf, type Tree } from '../tree.ts'
import { type useChosen, useRows } from './chosen.ts'

type ViewsProps = {
  run: Run
  /** Missing where the workflow cannot be read. */
  graph: VersionGraph | undefined
  tree: Tree
  known: ReadonlyMap<string, NodeRecord>
  chosen: ReturnType<typeof useChosen>
  now: number
}

/** The records of an execution, drawn in its graph, over time, and as a list. */
export function Views({ run, graph, tree, known, chosen, now }: ViewsProps) {
  const { node, record, view, choose, close, show, failedOnly } = chosen
  const { rows, picks, fold, pick } = useRows(tree, chosen)
  useExecutionKeys({ rows, chosen: record?.id, onChoose: choose, onClose: node ? close : null, onView: show })
  const countOf = useCallback(
    (loop: RecordState) => {
      const taken = known.get(loop.id)?.itemsTaken ?? 0
      return countLoop(tree.loops.get(placeOf(loop)) ?? [], loop, taken)
    },
    [known, tree],
  )
  const list = { rows, chosen: record?.id, countOf, now, onChoose: choose, onFold: fold }
  const failures = run.records.filter(({ status, step }) => status === 'FAILED' && step === null).length
  const filter = (
    <div className="run-filter">
      <Checkbox checked={failedOnly} onChange={chosen.filter}>
        Failed only ({failures.toLocaleString()})
      </Checkbox>
    </div>
  )
  const drawn = graph ? (
    <RunGraph
      label={`Graph of ${run.workflowName}`}
      graph={graph}
      tree={tree}
      over={!isOpen(run.status)}
      chosen={node}
      onChoose={chosen.chooseNode}
      countOf={countOf}
    />
  ) : (
    <Loading text="The graph is drawn where the workflow can be read." />
  )
  const timeline = (
    <>
      {filter}
      <Timeline run={run} {...list} />
    </>
  )
  const steps = (
    <>
      {filter}
      <Steps {...list} picks={picks} onPick={pick} known={known} failedOnly={failedOnly} />
    </>
  )
  const count = Math.max(run.nodeExecutionsTotal, run.records.length).toLocaleString()
  return (
    <Tabs
      label="Views of the execution"
      value={view}
      onChange={show}
      tabs={[
        { id: 'graph', label: 'Graph', content: drawn },
        { id: 'timeline', label: 'Timeline', content: timeline },
        { id: 'steps', label: `Steps (${count})`, content: steps },
      ]}
    />
  )
}
