import '../monitoring/figures.css'
import { nameConstant, Pill, type Tone } from '../kit/status.tsx'
import { Table } from '../kit/tables/table.tsx'
import type { Checked, Violation } from './data.ts'

const ACTIONS: Record<string, Tone> = { BLOCKED: 'bad', WARNED: 'warn', REDACTED: 'busy' }

/** What a check has found in a text: the verdict, where it is, and how each check went. */
export function Found({ text, checked }: { text: string; checked: Checked }) {
  const { passed, violations, checks, redactedContent } = checked
  return (
    <section className="stack" aria-label="What was found">
      <div className="row" role="status">
        <Pill tone={passed ? 'good' : 'bad'}>{passed ? 'Passed' : 'Blocked'}</Pill>
        <span>
          {violations.length === 0
            ? 'Nothing was found'
            : `${violations.length} ${violations.length === 1 ? 'violation' : 'violations'}`}
        </span>
      </div>
      {violations.length > 0 && (
        <>
          <p className="panel said findings">{markFindings(text, violations)}</p>
          <Table
            label="Violations"
            rows={violations.map((violation, at) => ({ ...violation, at }))}
            keyOf={({ at }) => String(at)}
            columns={[
              {
                heading: 'Action',
                cell: ({ action }) => <Pill tone={ACTIONS[action]}>{nameConstant(action)}</Pill>,
              },
              {
                heading: 'What',
                cell: ({ type, message }) => (
                  <>
                    <span className="name">{nameConstant(type)}</span>
                    <div className="quiet said">{message}</div>
                  </>
                ),
              },
              { heading: 'Severity', cell: ({ severity }) => nameConstant(severity) },
              {
                heading: 'Confidence',
                number: true,
                cell: ({ confidence }) =>
                  confidence.toLocaleString(undefined, { style: 'percent', maximumFractionDigits: 0 }),
              },
            ]}
          />
        </>
      )}
      {redactedContent !== undefined && redactedContent !== text && (
        <div>
          <h2>Redacted</h2>
          <p className="panel said">{redactedContent}</p>
        </div>
      )}
      <Table
        label="Checks"
        rows={checks}
        keyOf={({ type }) => type}
        columns={[
          { heading: 'Check', cell: ({ type }) => nameConstant(type) },
          {
            heading: 'Outcome',
            cell: ({ passed: fine, error }) =>
              error ? (
                <>
                  <Pill tone="warn">Could not be made</Pill>
                  <div className="quiet">{error}</div>
                </>
              ) : (
                <Pill tone={fine ? 'good' : 'bad'}>{fine ? 'Passed' : 'Not passed'}</Pill>
              ),
          },
          { heading: 'Found', number: true, cell: ({ violationsFound }) => violationsFound },
          { heading: 'Took', number: true, cell: ({ durationMs }) => `${durationMs} ms` },
        ]}
      />
    </section>
  )
}

/** The text with the places of its violations marked; overlapping ones are one mark. */
function markFindings(text: string, violations: Violation[]) {
  const places = violations
    .flatMap(({ details: { start, end } }) =>
      start === undefined || end === undefined ? [] : [[start, end]],
    )
    .sort(([a], [b]) => a! - b!)
  const parts = []
  let at = 0
  for (const [start, end] of places as [number, number][]) {
    if (end <= at) continue
    const from = Math.max(start, at)
    parts.push(text.slice(at, from), <mark key={from}>{text.slice(from, end)}</mark>)
    at = end
  }
  return [...parts, text.slice(at)]
}
