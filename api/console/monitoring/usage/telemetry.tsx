import type { ReactNode } from 'react'
import { Link } from 'wouter'
import { Empty, Loaded } from '../../kit/states.tsx'
import { Table } from '../../kit/tables/table.tsx'
import { formatDuration } from '../../kit/time.tsx'
import { useRole, useTeam } from '../../shell/role.tsx'
import type { Period } from '../data.ts'
import { Figures } from '../figures.tsx'
import { MODEL_PROVIDERS, useTelemetry } from './data.ts'
import { formatCount } from './usage.tsx'

type Totals = NonNullable<ReturnType<typeof useTelemetry>['data']>['total']

/** What the team's agents elsewhere have sent of their work, by OpenTelemetry. */
export function TelemetryView({ span }: { span: Period }) {
  const { teamId } = useTeam()
  const mayMakeTokens = useRole()('ADMIN')
  const found = useTelemetry(teamId, span)
  return (
    <Loaded query={found}>
      {({ total, services, operations, models, agents }) =>
        total.calls === 0 ? (
          <Empty
            title="No telemetry"
            text={
              <>
                Agents that run elsewhere can send their spans by OpenTelemetry.{' '}
                {mayMakeTokens ? (
                  <>
                    <Link href="/tokens">SDK tokens</Link> says how.
                  </>
                ) : (
                  'An ADMIN makes a token for them.'
                )}
              </>
            }
          />
        ) : (
          <div className="stack">
            <Figures
              figures={[
                ['Spans', formatCount(total.calls)],
                ['Failed', formatShare(total), `${formatCount(total.errors)} spans`],
                ['Median duration', formatDuration(total.p50Ms)],
                ['95 % take at most', formatDuration(total.p95Ms)],
                ['Tokens', formatCount(total.inputTokens + total.outputTokens)],
              ]}
            />
            <Part heading="By service" rows={services} nameOf={({ service }) => service} />
            <Part heading="By operation" rows={operations} nameOf={({ operation }) => operation} />
            <Part heading="By agent" rows={agents} nameOf={({ agent }) => agent} />
            <Part
              heading="By model"
              rows={models}
              nameOf={({ model }) => model}
              noteOf={({ provider }) => MODEL_PROVIDERS[provider] ?? provider}
            />
          </div>
        )
      }
    </Loaded>
  )
}

type PartProps<Row> = {
  heading: string
  rows: readonly Row[]
  nameOf: (row: Row) => string
  noteOf?: (row: Row) => ReactNode
}

function Part<Row extends Totals>({ heading, rows, nameOf, noteOf }: PartProps<Row>) {
  if (rows.length === 0) return null
  return (
    <section>
      <h2>{heading}</h2>
      <Table
        label={`Telemetry ${heading.toLowerCase()}`}
        rows={rows}
        keyOf={(row) => `${nameOf(row)} ${noteOf?.(row)}`}
        columns={[
          {
            heading: heading.slice(3).replace(/^./, (first) => first.toUpperCase()),
            cell: (row) => (
              <>
                <span className="name">{nameOf(row)}</span>
                {noteOf && <div className="quiet">{noteOf(row)}</div>}
              </>
            ),
          },
          { heading: 'Spans', number: true, cell: ({ calls }) => formatCount(calls) },
          { heading: 'Failed', number: true, cell: (row) => formatShare(row) },
          { heading: 'Median', number: true, cell: ({ p50Ms }) => formatDuration(p50Ms) },
          { heading: '95 %', number: true, cell: ({ p95Ms }) => formatDuration(p95Ms) },
          { heading: 'Input', number: true, cell: ({ inputTokens }) => formatCount(inputTokens) },
          { heading: 'Output', number: true, cell: ({ outputTokens }) => formatCount(outputTokens) },
        ]}
      />
    </section>
  )
}

function formatShare({ calls, errors }: Totals): string {
  return (calls === 0 ? 0 : errors / calls).toLocaleString(undefined, {
    style: 'percent',
    maximumFractionDigits: 1,
  })
}
