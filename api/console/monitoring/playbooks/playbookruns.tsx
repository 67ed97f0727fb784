import { ExecutionLink } from '../../executions/list.tsx'
import { nameConstant, Pill, type Tone } from '../../kit/status.tsx'
import { TableDialog } from '../../kit/tables/tabledialog.tsx'
import { Age } from '../../kit/time.tsx'
import { type Playbook, usePlaybookRuns } from './data.ts'

const TONES: Record<string, Tone> = { COMPLETED: 'good', FAILED: 'bad', PENDING: 'busy', SKIPPED: 'warn' }

/** The runs of a playbook, with what came of each step. */
export function PlaybookRuns({ playbook, onClose }: { playbook: Playbook; onClose: () => void }) {
  const found = usePlaybookRuns(playbook)
  return (
    <TableDialog
      title={`Runs of ${playbook.name}`}
      label="Runs"
      query={found}
      none="None in the last 30 days."
      onClose={onClose}
      columns={[
        {
          heading: 'Status',
          cell: ({ status, reason }) => (
            <>
              <Pill tone={TONES[status]}>{nameConstant(status)}</Pill>
              {reason && <div className="quiet said">{reason}</div>}
            </>
          ),
        },
        { heading: 'For', cell: ({ title }) => <span className="said">{title}</span> },
        {
          heading: 'Steps',
          cell: ({ steps }) =>
            steps.map(({ type, outcome }, at) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: the steps of a run stay as they are
              <div key={at}>
                {nameConstant(type)} <span className="quiet said">{outcome?.message ?? 'not done'}</span>{' '}
                {outcome?.executionId && <ExecutionLink id={outcome.executionId} />}
              </div>
            )),
        },
        { heading: 'Began', cell: ({ createdAt }) => <Age at={createdAt} /> },
      ]}
    />
  )
}
