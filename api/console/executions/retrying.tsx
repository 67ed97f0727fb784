import { useState } from 'react'
import { FormDialog } from '../kit/overlays/dialog.tsx'
import { StatusBadge } from '../kit/status.tsx'
import { type ExecutionItem, retryExecutions } from './data.ts'
import { type Version, VersionChoice } from './starts/version.tsx'

/** How many of the executions are listed by name. */
const LISTED = 10

type RetryProps = {
  teamId: string
  executions: readonly ExecutionItem[]
  /** How many of those that were chosen have been retried before, and are left out. */
  left: number
  onDone: (answer: Awaited<ReturnType<typeof retryExecutions>>) => void
  onClose: () => void
}

/** Asks before several executions are retried: which, and by which version of their graphs. */
export function RetryDialog({ teamId, executions, left, onDone, onClose }: RetryProps) {
  const [version, setVersion] = useState<Version>('current')
  const ids = executions.map(({ id }) => id)
  const count = ids.length === 1 ? '1 execution' : `${ids.length} executions`
  return (
    <FormDialog
      open
      onClose={onClose}
      title={`Retry ${count}?`}
      label={`Retry ${count}`}
      onSubmit={async () => onDone(await retryExecutions(teamId, ids, version))}
    >
      <p>
        A new execution of each, with the same input, takes over what succeeded, and goes on from what did
        not. What it does is real.
      </p>
      <ul aria-label="Executions to retry">
        {executions.slice(0, LISTED).map(({ id, workflowName, status }) => (
          <li key={id}>
            {workflowName} <span className="quiet">{id.slice(-12)}</span> <StatusBadge status={status} />
          </li>
        ))}
        {ids.length > LISTED && <li className="quiet">and {ids.length - LISTED} more</li>}
      </ul>
      {left > 0 && <p className="quiet">{left} that were retried already are left out.</p>}
      <VersionChoice value={version} onChange={setVersion} same={undefined} current={undefined} />
    </FormDialog>
  )
}
