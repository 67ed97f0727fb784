import { useState } from 'react'
import { Link } from 'wouter'
import { go, readPage, useQueryState } from '../kit/address.ts'
import { Button } from '../kit/controls/button.tsx'
import { Empty, Loaded } from '../kit/states.tsx'
import { nameConstant, Pill, type Tone } from '../kit/status.tsx'
import { Pager } from '../kit/tables/pager.tsx'
import { Table } from '../kit/tables/table.tsx'
import { Age, formatMoney } from '../kit/time.tsx'
import { useRole } from '../shell/role.tsx'
import { type Batch, useBatches } from './data.ts'
import { formatShare } from './figures.ts'
import { addressOfBatch, StartDialog } from './start.tsx'
import './evaluation.css'

/** A workflow's batches: cases that a model has judged, or judges now. */
export function BatchesView({ workflowId }: { workflowId: string }) {
  const [query, , linkTo] = useQueryState({ workflowId: '', tab: 'scores', page: '' })
  const found = useBatches(workflowId, readPage(query.page))
  const [starting, setStarting] = useState(false)
  const mayStart = useRole()('BUILDER')
  const start = mayStart && (
    <Button look="primary" icon="plus" onClick={() => setStarting(true)}>
      New batch
    </Button>
  )
  return (
    <div className="stack">
      <Loaded query={found}>
        {(list) =>
          list.totalElements === 0 ? (
            <Empty
              title="No batches"
              text="Paste cases: inputs with outputs that are judged, or inputs with which the workflow is run."
            >
              {start}
            </Empty>
          ) : (
            <>
              <div className="row">{start}</div>
              <Table
                label="Batches"
                rows={list.content}
                keyOf={({ id }) => id}
                onOpen={(batch) => go(addressOfBatch(batch))}
                columns={[
                  { heading: 'Status', cell: (batch) => <BatchStatus {...batch} /> },
                  {
                    heading: 'Batch',
                    cell: (batch) => (
                      <>
                        <Link className="name" href={addressOfBatch(batch)}>
                          {batch.name}
                        </Link>
                        <div className="quiet">
                          {batch.judgeModel} · version {batch.workflowVersion}
                        </div>
                      </>
                    ),
                  },
                  {
                    heading: 'Cases',
                    number: true,
                    cell: ({ completedCases, totalCases }) =>
                      completedCases === totalCases ? totalCases : `${completedCases} of ${totalCases}`,
                  },
                  {
                    heading: 'Passed',
                    number: true,
                    cell: ({ passedCases, completedCases }) =>
                      formatShare(completedCases === 0 ? null : passedCases / completedCases),
                  },
                  { heading: 'Cost', number: true, cell: ({ cost }) => formatMoney(cost) },
                  { heading: 'Started', cell: ({ createdAt }) => <Age at={createdAt} /> },
                ]}
              />
              <Pager page={list} linkTo={(number) => linkTo({ page: number })} />
            </>
          )
        }
      </Loaded>
      {starting && <StartDialog workflowId={workflowId} onClose={() => setStarting(false)} />}
    </div>
  )
}

const TONES: Record<Batch['status'], Tone> = {
  PENDING: 'warn',
  RUNNING: 'busy',
  COMPLETED: 'good',
  FAILED: 'bad',
  CANCELLED: 'warn',
}

export function BatchStatus({ status }: Pick<Batch, 'status'>) {
  return <Pill tone={TONES[status]}>{nameConstant(status)}</Pill>
}
