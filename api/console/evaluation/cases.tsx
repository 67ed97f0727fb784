import { useState } from 'react'
import { ExecutionLink } from '../executions/list.tsx'
import { readPage, useQueryState } from '../kit/address.ts'
import { JsonTree } from '../kit/code/jsontree.tsx'
import { Button, LinkButton } from '../kit/controls/button.tsx'
import { Field } from '../kit/controls/field.tsx'
import { Select } from '../kit/controls/input.tsx'
import { Facts } from '../kit/header.tsx'
import { Dialog } from '../kit/overlays/dialog.tsx'
import { Empty, Loaded } from '../kit/states.tsx'
import { nameConstant, Pill } from '../kit/status.tsx'
import { Table } from '../kit/tables/table.tsx'
import { type BatchDetail, CASES, type Case, useCases } from './data.ts'
import { formatScore } from './figures.ts'

/** The cases of a batch, in their order. */
export function CasesView({ batch }: { batch: BatchDetail }) {
  const [query, setQuery, linkTo] = useQueryState({ cases: '', with: '', page: '' })
  const page = readPage(query.page)
  const found = useCases(batch, query.cases, page)
  const [shown, setShown] = useState<Case | null>(null)
  const total =
    query.cases === 'failed'
      ? batch.failedCases
      : query.cases === 'passed'
        ? batch.passedCases
        : batch.totalCases
  return (
    <section>
      <h2>Cases</h2>
      <div className="filters">
        <Field label="Show">
          <Select
            value={query.cases}
            onChange={(cases) => setQuery({ cases })}
            empty="All cases"
            choices={[
              { value: 'failed', label: 'Failed only' },
              { value: 'passed', label: 'Passed only' },
            ]}
          />
        </Field>
      </div>
      <Loaded query={found}>
        {(cases) =>
          cases.length === 0 ? (
            <Empty title="Nothing found" text="No case fits this filter." />
          ) : (
            <>
              <CaseTable cases={cases} onOpen={setShown} />
              <nav className="pager" aria-label="Pages of cases">
                <span>
                  {page * CASES + 1}–{page * CASES + cases.length} of {Math.max(total, cases.length)}
                </span>
                {page > 0 && (
                  <LinkButton small href={linkTo({ page: page - 1 })}>
                    Previous
                  </LinkButton>
                )}
                {(page + 1) * CASES < total && (
                  <LinkButton small href={linkTo({ page: page + 1 })}>
                    Next
                  </LinkButton>
                )}
              </nav>
            </>
          )
        }
      </Loaded>
      {shown && <CaseDialog one={shown} onClose={() => setShown(null)} />}
    </section>
  )
}

function CaseTable({ cases, onOpen }: { cases: Case[]; onOpen: (one: Case) => void }) {
  return (
    <Table
      label="Cases"
      rows={cases}
      keyOf={({ id }) => id}
      onOpen={onOpen}
      columns={[
        {
          heading: 'Case',
          cell: (one) => (
            <Button
              small
              look="plain"
              aria-label={`Show case ${one.testCaseIndex + 1}`}
              onClick={() => onOpen(one)}
            >
              {one.testCaseIndex + 1}
            </Button>
          ),
        },
        { heading: 'Outcome', cell: (one) => <CaseOutcome {...one} /> },
        {
          heading: 'Input',
          cell: ({ testInput }) => <div className="line code">{JSON.stringify(testInput)}</div>,
        },
        {
          heading: 'Output',
          cell: ({ actualOutput, reason }) => (
            <div className="line" title={reason ?? undefined}>
              {actualOutput ?? reason ?? '–'}
            </div>
          ),
        },
        { heading: 'Score', number: true, cell: ({ compositeScore }) => formatScore(compositeScore) },
      ]}
    />
  )
}

function CaseOutcome({ passed, status, flagged, goldStandardMatch }: Case) {
  return (
    <>
      {passed === null ? (
        <Pill tone={status === 'RUNNING' ? 'busy' : undefined}>{nameConstant(status)}</Pill>
      ) : (
        <Pill tone={passed ? 'good' : 'bad'}>{passed ? 'Passed' : 'Failed'}</Pill>
      )}
      {flagged && <div className="quiet">flagged</div>}
      {goldStandardMatch === false && <div className="quiet">not as expected</div>}
    </>
  )
}

/** Everything about a case: what went in, what came out, and what the judge says. */
function CaseDialog({ one, onClose }: { one: Case; onClose: () => void }) {
  return (
    <Dialog open wide onClose={onClose} title={`Case ${one.testCaseIndex + 1}`}>
      <div className="stack">
        <Facts
          facts={[
            ['Outcome', <CaseOutcome key="outcome" {...one} />],
            ['Score', formatScore(one.compositeScore)],
            ['Execution', one.executionId && <ExecutionLink key="execution" id={one.executionId} />],
          ]}
        />
        {one.reason && <p className="failure said">{one.reason}</p>}
        <JsonTree label="Input" value={one.testInput} />
        <Said heading="Output" text={one.actualOutput} />
        <Said heading="Expected" text={one.expectedOutput} />
        {one.goldStandardReasoning && <p className="quiet said">{one.goldStandardReasoning}</p>}
        <ul className="judgements">
          {Object.entries(one.scores).map(([dimension, score]) => (
            <li key={dimension}>
              <span className="name">
                {nameConstant(dimension)} {formatScore(score)}
              </span>
              <div className="quiet said">{one.reasoning[dimension]}</div>
            </li>
          ))}
        </ul>
        <div className="actions">
          <Button onClick={onClose}>Close</Button>
        </div>
      </div>
    </Dialog>
  )
}

function Said({ heading, text }: { heading: string; text: string | null }) {
  if (text === null) return null
  return (
    <div>
      <strong>{heading}</strong>
      <p className="panel said">{text}</p>
    </div>
  )
}
