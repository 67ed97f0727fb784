import { useState } from 'react'
import { tellError } from '../data/refusal.ts'
import { Button } from '../kit/controls/button.tsx'
import { notify } from '../kit/notices.tsx'
import { useConfirm } from '../kit/overlays/confirm.tsx'
import type { WorkflowItem } from './data.ts'
import { changeWorkflow, deleteWorkflow } from './data.ts'
import { exportWorkflow } from './transfer/data.ts'
import { nameFile, saveFile } from './transfer/exporting.tsx'

type BulkProps = { chosen: readonly WorkflowItem[]; onDone: () => void }

/** The acts on several workflows at once, one after the other; refusals are told by name. */
export function BulkActions({ chosen, onDone }: BulkProps) {
  const confirm = useConfirm()
  const [busy, setBusy] = useState(false)
  const each = async (done: string, work: (workflow: WorkflowItem) => Promise<unknown>) => {
    if (busy) return
    setBusy(true)
    const refused: string[] = []
    for (const workflow of chosen) {
      try {
        await work(workflow)
      } catch (error) {
        refused.push(workflow.name)
        notify(`${workflow.name}: ${tellError(error)}`, 'bad')
      }
    }
    const good = chosen.length - refused.length
    if (good > 0) notify(`${tellCount(good)} ${done}`)
    setBusy(false)
    onDone()
  }
  const activate = (active: boolean) =>
    each(active ? 'activated' : 'deactivated', async ({ id, active: now }) => {
      if (now !== active) await changeWorkflow(id, { active })
    })
  const remove = () =>
    confirm({
      title: `Delete ${tellCount(chosen.length)}?`,
      text: (
        <>
          This deletes <strong>{chosen.map(({ name }) => name).join(', ')}</strong> and the history of all
          their executions. It ends the running ones. It cannot be undone.
        </>
      ),
      label: 'Delete',
      danger: true,
      work: () => each('deleted', ({ id }) => deleteWorkflow(id)),
    })
  const take = () =>
    each('exported', async ({ id, name }) => saveFile(nameFile(name), await exportWorkflow(id)))
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for a form
    <div className="row bulk" role="group" aria-label={`With ${tellCount(chosen.length)}`}>
      <span className="quiet">{chosen.length} chosen</span>
      <Button small busy={busy} onClick={() => void activate(true)}>
        Activate
      </Button>
      <Button small disabled={busy} onClick={() => void activate(false)}>
        Deactivate
      </Button>
      <Button small disabled={busy} icon="download" onClick={() => void take()}>
        Export
      </Button>
      <Button small disabled={busy} look="danger" icon="trash" onClick={remove}>
        Delete
      </Button>
    </div>
  )
}

function tellCount(count: number): string {
  return count === 1 ? '1 workflow' : `${count} workflows`
}
