import { useState } from 'react'
import { tellError } from '../data/refusal.ts'
import { Button } from '../kit/controls/button.tsx'
import { notify } from '../kit/notices.tsx'
import { useConfirm } from '../kit/overlays/confirm.tsx'
import { isOpen } from '../kit/status.tsx'
import { useRole } from '../shell/role.tsx'
import { cancelExecutions, deleteExecutions, type ExecutionItem, retryExecutions } from './data.ts'

type BulkProps = { teamId: string; chosen: readonly ExecutionItem[]; onDone: () => void }
type Tally = { skipped: { reason: string }[] }

/** The acts on several executions at once; those that were left out are told with their reason. */
export function BulkActions({ teamId, chosen, onDone }: BulkProps) {
  const confirm = useConfirm()
  const may = useRole()
  const [busy, setBusy] = useState(false)
  const ids = (which: (status: string) => boolean) =>
    chosen.filter(({ status }) => which(status)).map(({ id }) => id)
  const open = ids(isOpen)
  const ended = ids((status) => !isOpen(status))
  const broken = ids((status) => status === 'FAILED' || status === 'CANCELLED')
  const tell = (count: number, done: string, { skipped }: Tally) => {
    if (count > 0) notify(`${tellCount(count)} ${done}`)
    const reasons = new Set(skipped.map(({ reason }) => reason))
    if (skipped.length > 0) notify(`${tellCount(skipped.length)} left out: ${[...reasons].join('; ')}`, 'bad')
    onDone()
  }
  const retry = async () => {
    setBusy(true)
    try {
      const answer = await retryExecutions(teamId, broken)
      tell(answer.retried, 'retried', answer)
    } catch (error) {
      notify(tellError(error), 'bad')
    }
    setBusy(false)
  }
  const cancel = () =>
    confirm({
      title: `Cancel ${tellCount(open.length)}?`,
      text: 'Nodes that are running are told to stop. What they have done already is not undone.',
      label: 'Cancel executions',
      danger: true,
      work: async () => {
        const answer = await cancelExecutions(teamId, open)
        tell(answer.cancelled, 'cancelled', answer)
      },
    })
  const remove = () =>
    confirm({
      title: `Delete ${tellCount(ended.length)}?`,
      text: 'Inputs, outputs, records and files go, and the history in Temporal. It cannot be undone. Those that have not ended stay.',
      label: 'Delete',
      danger: true,
      work: async () => {
        const answer = await deleteExecutions(teamId, ended)
        tell(answer.deleted, 'deleted', answer)
      },
    })
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for a form
    <div className="row bulk" role="group" aria-label={`With ${tellCount(chosen.length)}`}>
      <span className="quiet">{chosen.length} chosen</span>
      {open.length > 0 && (
        <Button small disabled={busy} onClick={cancel}>
          Cancel {open.length}
        </Button>
      )}
      {broken.length > 0 && (
        <Button small busy={busy} icon="refresh" onClick={() => void retry()}>
          Retry {broken.length}
        </Button>
      )}
      {may('BUILDER') && ended.length > 0 && (
        <Button small disabled={busy} look="danger" icon="trash" onClick={remove}>
          Delete {ended.length}
        </Button>
      )}
    </div>
  )
}

function tellCount(count: number): string {
  return count === 1 ? '1 execution' : `${count} executions`
}
