import { useWorkflow } from '../../workflows/data.ts'
import type { Run } from '../live.ts'
import type { NodeRecord, RecordState } from '../records.ts'
import { NodeDialog, PinDialog } from '../starts/starting.tsx'
import { findLoop, type Tree } from '../tree.ts'

type StartProps = {
  how: 'node' | 'pin'
  run: Run
  tree: Tree
  teamId: string
  name: string
  record: RecordState
  whole: NodeRecord
  onClose: () => void
}

/** Asks before the node is executed alone, or the workflow with its output pinned. */
export function AskedStart({ how, run, tree, teamId, name, record, whole, onClose }: StartProps) {
  const { data: workflow } = useWorkflow(run.workflowId)
  const has = workflow?.nodes.some(({ id }) => id === record.nodeId) ?? false
  const loop = findLoop(record, tree.parents)
  // The first record of an iteration has taken the item.
  const first = loop && tree.loops.get(loop.place)?.find(({ number }) => number === loop.number)?.records[0]
  const item = first && run.nodeExecutions.find(({ id }) => id === first.id)?.inputData
  const about = {
    ...{ run, name, onClose },
    nodeId: record.nodeId,
    input: whole.inputData,
    item,
    output: whole.outputData,
    handle: whole.handle,
  }
  return how === 'node' ? <NodeDialog {...about} has={has} /> : <PinDialog {...about} teamId={teamId} />
}
