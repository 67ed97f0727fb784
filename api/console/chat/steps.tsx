import { useState } from 'react'
import { useExecution } from '../executions/data.ts'
import { Loaded } from '../kit/states.tsx'
import { StatusBadge } from '../kit/status.tsx'
import { Table } from '../kit/tables/table.tsx'
import { formatDuration } from '../kit/time.tsx'

/** What the execution behind a reply has done, such as the tools that its agent called; read when it is opened. */
export function ChatSteps({ executionId }: { executionId: string }) {
  const [open, setOpen] = useState(false)
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Steps</summary>
      {open && <StepTable executionId={executionId} />}
    </details>
  )
}

function StepTable({ executionId }: { executionId: string }) {
  const found = useExecution(executionId)
  return (
    <Loaded query={found} rows={2}>
      {({ nodeExecutions }) => (
        <Table
          label="Steps"
          rows={nodeExecutions}
          keyOf={({ id }) => id}
          columns={[
            {
              heading: 'Step',
              cell: ({ nodeName, tool }) => (
                <>
                  <span className="name">{nodeName}</span>
                  {tool && <span className="quiet"> {tool}</span>}
                </>
              ),
            },
            { heading: 'Status', cell: ({ status }) => <StatusBadge status={status} /> },
            { heading: 'Took', cell: ({ durationMs }) => formatDuration(durationMs) },
          ]}
        />
      )}
    </Loaded>
  )
}
