import { useParams } from 'wouter'
import { isRefused } from '../data/refusal.ts'
import { go } from '../kit/address.ts'
import { Button, LinkButton } from '../kit/controls/button.tsx'
import { Facts, PageHeader } from '../kit/header.tsx'
import { useConfirm } from '../kit/overlays/confirm.tsx'
import { Empty, Loaded } from '../kit/states.tsx'
import { nameConstant } from '../kit/status.tsx'
import { useStream } from '../kit/stream.ts'
import { Table } from '../kit/tables/table.tsx'
import { formatMoney, Time } from '../kit/time.tsx'
import { Figures } from '../monitoring/figures.tsx'
import { useRole } from '../shell/role.tsx'
import { BatchStatus } from './batches.tsx'
import { CasesView } from './cases.tsx'
import { ComparisonView } from './comparison.tsx'
import {
  type BatchDetail,
  cancelBatch,
  deleteBatch,
  eventsOf,
  exportOf,
  isBatchOpen,
  refreshEvaluations,
  useBatch,
} from './data.ts'
import './evaluation.css'
import { formatScore, formatShare, tellInterval } from './figures.ts'

const EVENTS = ['progress', 'end']

/** One batch: how far it is, what it says in sum, its cases, and how it differs from another one. */
export function BatchPage() {
  const { workflowId = '', runId = '' } = useParams()
  const found = useBatch(workflowId, runId)
  if (isRefused(found.error, 404))
    return (
      <>
        <PageHeader title="Batch" crumbs={[['Evaluation', '/evaluation']]} />
        <Empty title="There is no such batch" text="It was deleted, or is older than those that are kept.">
          <LinkButton href={listOf(workflowId)}>All batches</LinkButton>
        </Empty>
      </>
    )
  return <Loaded query={found}>{(batch) => <BatchView key={batch.id} batch={batch} />}</Loaded>
}

function listOf(workflowId: string): string {
  return `/evaluation?workflowId=${workflowId}&tab=batches`
}

function BatchView({ batch }: { batch: BatchDetail }) {
  const confirm = useConfirm()
  const mayChange = useRole()('BUILDER')
  const open = isBatchOpen(batch)
  useStream(open ? eventsOf(batch) : null, {
    events: EVENTS,
    end: 'end',
    onNews: () => void refreshEvaluations(),
  })
  const remove = () =>
    confirm({
      title: `Delete ${batch.name}?`,
      text: 'Its cases and their scores are deleted with it. This cannot be undone.',
      label: 'Delete the batch',
      danger: true,
      work: async () => {
        await deleteBatch(batch)
        go(listOf(batch.workflowId))
      },
    })
  const cancel = () =>
    confirm({
      title: `Cancel ${batch.name}?`,
      text: 'What has been judged stays. Executions that it waits for are cancelled.',
      label: 'Cancel the batch',
      danger: true,
      work: () => cancelBatch(batch),
    })
  return (
    <>
      <PageHeader
        title={batch.name}
        beside={<BatchStatus status={batch.status} />}
        crumbs={[
          ['Evaluation', '/evaluation'],
          ['Batches', listOf(batch.workflowId)],
        ]}
      >
        <LinkButton href={exportOf(batch, 'csv')} download icon="download">
          CSV
        </LinkButton>
        <LinkButton href={exportOf(batch, 'json')} download icon="download">
          JSON
        </LinkButton>
        {mayChange && open && (
          <Button icon="stop" onClick={cancel}>
            Cancel
          </Button>
        )}
        {mayChange && (
          <Button look="danger" icon="trash" onClick={remove}>
            Delete
          </Button>
        )}
      </PageHeader>
      <div className="stack">
        {batch.reason && <p className="hint">{batch.reason}</p>}
        {open && <Progress {...batch} />}
        <Facts
          facts={[
            ['Judge', `${batch.judgeModel} (${batch.judgeProvider})`],
            ['Passes from', formatScore(batch.passThreshold)],
            ['Version', batch.workflowVersion],
            ['Outputs', batch.runWorkflow ? 'given, or of executions' : 'given'],
            ['Most it may cost', batch.maxCost !== null && formatMoney(batch.maxCost)],
            ['Started', <Time key="started" at={batch.createdAt} />],
            ['Ended', batch.completedAt && <Time key="ended" at={batch.completedAt} />],
            ['By', batch.startedBy],
          ]}
        />
        <Summary batch={batch} />
        <CasesView batch={batch} />
        <ComparisonView batch={batch} />
      </div>
    </>
  )
}

function Progress({ completedCases, totalCases }: BatchDetail) {
  return (
    <div className="batch-progress">
      <progress value={completedCases} max={totalCases} aria-label="Cases that have ended" />
      <span role="status">
        {completedCases} of {totalCases} cases
      </span>
    </div>
  )
}

function Summary({ batch }: { batch: BatchDetail }) {
  const { passRate, compositeScore, goldStandard, flaggedCases, failureReasons, dimensions } = batch.summary
  return (
    <>
      <Figures
        figures={[
          ['Passed', formatShare(passRate.rate), tellInterval(passRate.ci95, formatShare)],
          ['Score', formatScore(compositeScore.mean), tellInterval(compositeScore.ci95, formatScore)],
          ...(goldStandard.n > 0
            ? [['As expected', formatShare(goldStandard.rate), `of ${goldStandard.n} cases`] as Figure]
            : []),
          ['Cost', formatMoney(batch.cost), `${batch.calls} calls`],
          ...(flaggedCases > 0
            ? [['Flagged', String(flaggedCases), 'may instruct the judge'] as Figure]
            : []),
        ]}
      />
      <section>
        <h2>By dimension</h2>
        <Table
          label="Scores by dimension"
          rows={Object.entries(dimensions)}
          keyOf={([name]) => name}
          columns={[
            { heading: 'Dimension', cell: ([name]) => <span className="name">{nameConstant(name)}</span> },
            { heading: 'Mean', number: true, cell: ([, { mean }]) => formatScore(mean) },
            {
              heading: '95 % interval',
              number: true,
              cell: ([, { ci95 }]) => (ci95 ? `${formatScore(ci95.low)} – ${formatScore(ci95.high)}` : '–'),
            },
            { heading: 'Median', number: true, cell: ([, { median }]) => formatScore(median) },
            { heading: 'Lowest', number: true, cell: ([, { min }]) => formatScore(min) },
            { heading: 'Without a score', number: true, cell: ([, { failed }]) => failed },
          ]}
        />
      </section>
      {failureReasons.length > 0 && (
        <section>
          <h2>Why cases failed</h2>
          <ul className="reasons">
            {failureReasons.map(({ reason, count }) => (
              <li key={reason} className="said">
                {count} × {reason}
              </li>
            ))}
          </ul>
        </section>
      )}
    </>
  )
}

type Figure = [string, string, string]
