import { ExecutionLink } from '../executions/list.tsx'
import { readPage, useQueryState } from '../kit/address.ts'
import { Chart } from '../kit/charts/chart.tsx'
import { Field } from '../kit/controls/field.tsx'
import { Select } from '../kit/controls/input.tsx'
import { Empty, Loaded } from '../kit/states.tsx'
import { nameConstant, Pill } from '../kit/status.tsx'
import { Pager } from '../kit/tables/pager.tsx'
import { Table } from '../kit/tables/table.tsx'
import { Age, formatMoney } from '../kit/time.tsx'
import { Figures } from '../monitoring/figures.tsx'
import { type Score, useScoreSummary, useScores } from './data.ts'
import { formatScore, formatShare } from './figures.ts'

const FILTERS = { workflowId: '', tab: 'scores', failed: '', page: '' }

/** How the runs of a workflow were judged: the last 30 days in sum, and each run. */
export function ScoresView({ workflowId }: { workflowId: string }) {
  const [query, setQuery, linkTo] = useQueryState(FILTERS)
  const found = useScores(workflowId, query.failed, readPage(query.page))
  return (
    <div className="stack">
      <Summary workflowId={workflowId} />
      <div className="filters">
        <Field label="Show">
          <Select
            value={query.failed}
            onChange={(failed) => setQuery({ failed })}
            empty="All runs"
            choices={[
              { value: 'true', label: 'Below the threshold' },
              { value: 'false', label: 'Passed' },
            ]}
          />
        </Field>
      </div>
      <Loaded query={found}>
        {(list) =>
          list.totalElements === 0 ? (
            <Empty
              title={query.failed ? 'Nothing found' : 'No runs were judged'}
              text={
                query.failed
                  ? 'No run fits this filter.'
                  : 'Switch it on in the settings: a sample of the runs that succeed is judged then.'
              }
            />
          ) : (
            <>
              <ScoreTable scores={list.content} />
              <Pager page={list} linkTo={(number) => linkTo({ page: number })} />
            </>
          )
        }
      </Loaded>
    </div>
  )
}

function Summary({ workflowId }: { workflowId: string }) {
  const { data } = useScoreSummary(workflowId)
  if (!data || data.scored === 0) return null
  return (
    <>
      <Figures
        figures={[
          ['Passed', formatShare(data.passRate), `of ${data.scored} judged in 30 days`],
          ['Score', formatScore(data.composite), 'from 1 to 5'],
          ...data.dimensions.map(
            ({ dimension, mean, scored }) =>
              [nameConstant(dimension), formatScore(mean), `of ${scored} runs`] as [string, string, string],
          ),
        ]}
      />
      {data.days.length > 1 && (
        <Chart
          label="Score by day"
          kind="line"
          points={data.days.map(({ day }) => day)}
          format={formatScore}
          series={[{ name: 'Score', values: data.days.map(({ composite }) => composite) }]}
        />
      )}
    </>
  )
}

function ScoreTable({ scores }: { scores: Score[] }) {
  return (
    <Table
      label="Judged runs"
      rows={scores}
      keyOf={({ id }) => id}
      columns={[
        { heading: 'Outcome', cell: (score) => <Outcome {...score} /> },
        { heading: 'Execution', cell: ({ executionId }) => <ExecutionLink id={executionId} /> },
        { heading: 'Score', number: true, cell: ({ composite }) => formatScore(composite) },
        {
          heading: 'Dimensions',
          cell: ({ scores: all }) => (
            <ul className="judgements">
              {all.map(({ dimension, score, explanation, reason, flagged }) => (
                <li key={dimension}>
                  <span className="name">
                    {nameConstant(dimension)} {formatScore(score)}
                  </span>
                  {flagged && <Pill tone="warn">Instructs the judge</Pill>}
                  {(explanation ?? reason) && <div className="quiet said">{explanation ?? reason}</div>}
                </li>
              ))}
            </ul>
          ),
        },
        {
          heading: 'Judged',
          cell: ({ judgedAt, createdAt, model, cost }) => (
            <>
              <Age at={judgedAt ?? createdAt} />
              {model && (
                <div className="quiet">
                  {model} {cost !== null && formatMoney(cost)}
                </div>
              )}
            </>
          ),
        },
      ]}
    />
  )
}

function Outcome({ status, failed, reason }: Score) {
  if (status !== 'SCORED')
    return (
      <>
        <Pill tone={status === 'FAILED' ? 'bad' : undefined}>
          {status === 'FAILED' ? 'Could not be judged' : nameConstant(status)}
        </Pill>
        {reason && <div className="quiet said">{reason}</div>}
      </>
    )
  return <Pill tone={failed ? 'bad' : 'good'}>{failed ? 'Too low' : 'Passed'}</Pill>
}
