import { useState } from 'react'
import { Button } from '../kit/controls/button.tsx'
import { notify } from '../kit/notices.tsx'
import { useConfirm } from '../kit/overlays/confirm.tsx'
import { isOpen } from '../kit/status.tsx'
import { useRole } from '../shell/role.tsx'
import { cancelExecutions, deleteExecutions, type ExecutionItem } from './data.ts'
import { RetryDialog } from './retrying.tsx'

type BulkProps = { teamId: string; chosen: readonly ExecutionItem[]; onDone: () => void }
type Tally = { skipped: { reason: string }[] }

/** What can be done with several executions at once; what was left out is told with its reason. */
export function ExecutionBulk({ teamId, chosen, onDone }: BulkProps) {
  const confirm = useConfirm()
  const may = useRole()
  const [retrying, setRetrying] = useState(false)
  const ids = (which: (status: string) => boolean) =>
    chosen.filter(({ status }) => which(status)).map(({ id }) => id)
  const open = ids(isOpen)
  const ended = ids((status) => !isOpen(status))
  const failed = chosen.filter(({ status }) => status === 'FAILED' || status === 'CANCELLED')
  const broken = failed.filter(({ retriedBy }) => retriedBy === null)
  const tell = (count: number, done: string, { skipped }: Tally) => {
    if (count > 0) notify(`${tellCount(count)} ${done}`)
    const reasons = new Set(skipped.map(({ reason }) => reason))
    if (skipped.length > 0) notify(`${tellCount(skipped.length)} left out: ${[...reasons].join('; ')}`, 'bad')
    onDone()
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
        <Button small onClick={cancel}>
          Cancel {open.length}
        </Button>
      )}
      {broken.length > 0 && (
        <Button small icon="refresh" onClick={() => setRetrying(true)}>
          Retry {broken.length}
        </Button>
      )}
      {may('BUILDER') && ended.length > 0 && (
        <Button small look="danger" icon="trash" onClick={remove}>
          Delete {ended.length}
        </Button>
      )}
      {retrying && (
        <RetryDialog
          teamId={teamId}
          executions={broken}
          left={failed.length - broken.length}
          onDone={(answer) => tell(answer.retried, 'retried', answer)}
          onClose={() => setRetrying(false)}
        />
      )}
    </div>
  )
}

function tellCount(count: number): string {
  return count === 1 ? '1 execution' : `${count} executions`
}
