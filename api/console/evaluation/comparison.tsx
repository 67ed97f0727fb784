import { useQueryState } from '../kit/address.ts'
import { Field } from '../kit/controls/field.tsx'
import { Select } from '../kit/controls/input.tsx'
import { Empty, Loaded } from '../kit/states.tsx'
import { nameConstant, Pill } from '../kit/status.tsx'
import { Table } from '../kit/tables/table.tsx'
import { type BatchDetail, type Comparison, useBatches, useComparison } from './data.ts'
import { formatDifference, formatP, formatScore, formatShare } from './figures.ts'

/** How this batch differs from another one of the workflow, case by case. */
export function ComparisonView({ batch }: { batch: BatchDetail }) {
  const [query, setQuery] = useQueryState({ cases: '', with: '', page: '' })
  const { data: list } = useBatches(batch.workflowId, 0, 100)
  const others = list?.content.filter(({ id }) => id !== batch.id) ?? []
  const found = useComparison(batch.workflowId, query.with, batch.id)
  if (others.length === 0) return null
  return (
    <section>
      <h2>Comparison</h2>
      <div className="filters">
        <Field label="Compare with">
          <Select
            value={query.with}
            onChange={(chosen) => setQuery({ with: chosen })}
            empty="No other batch"
            choices={others.map(({ id, name }) => ({ value: id, label: name }))}
          />
        </Field>
      </div>
      {query.with !== '' && (
        <Loaded query={found} rows={3}>
          {(comparison) =>
            comparison.paired === 0 ? (
              <Empty
                title="Nothing to compare"
                text="Cases are compared that have the same place and the same input in both."
              />
            ) : (
              <Differences comparison={comparison} />
            )
          }
        </Loaded>
      )}
    </section>
  )
}

function Differences({ comparison }: { comparison: Comparison }) {
  const { paired, unpaired, pass } = comparison
  const left = unpaired.before + unpaired.after
  const rows = [
    { name: 'Score', ...comparison.compositeScore },
    ...Object.entries(comparison.dimensions).map(([name, one]) => ({ name: nameConstant(name), ...one })),
  ]
  return (
    <div className="stack">
      <p>
        Of {paired} {paired === 1 ? 'case' : 'cases'} that both have, {formatShare(pass.before)} passed there
        and {formatShare(pass.after)} pass here: {pass.gained} gained, {pass.lost} lost (p{' '}
        {tellP(pass.pValue)}
        ).
        {left > 0 && ` ${left} could not be paired.`}
      </p>
      <Table
        label="Comparison"
        rows={rows}
        keyOf={({ name }) => name}
        columns={[
          { heading: 'Score', cell: ({ name }) => <span className="name">{name}</span> },
          { heading: 'There', number: true, cell: ({ before }) => formatScore(before) },
          { heading: 'Here', number: true, cell: ({ after }) => formatScore(after) },
          {
            heading: 'Difference',
            number: true,
            cell: ({ meanDifference, ci95 }) => (
              <>
                {formatDifference(meanDifference)}
                {ci95 && (
                  <div className="quiet">
                    {formatDifference(ci95.low)} to {formatDifference(ci95.high)}
                  </div>
                )}
              </>
            ),
          },
          { heading: 'Better', number: true, cell: ({ better }) => better },
          { heading: 'Worse', number: true, cell: ({ worse }) => worse },
          {
            heading: 'Verdict',
            cell: ({ meanDifference, pValue }) => (
              <>
                <Verdict difference={meanDifference} pValue={pValue} />
                <div className="quiet">p {tellP(pValue)}</div>
              </>
            ),
          },
        ]}
      />
    </div>
  )
}

const CHANCE = 0.05

const tellP = (value: number) => (value < 0.001 ? formatP(value) : `= ${formatP(value)}`)

function Verdict({ difference, pValue }: { difference: number | null; pValue: number }) {
  if (difference === null || pValue >= CHANCE) return <Pill>May be chance</Pill>
  return <Pill tone={difference > 0 ? 'good' : 'bad'}>{difference > 0 ? 'Better' : 'Worse'}</Pill>
}
