import { Chart } from '../kit/charts/chart.tsx'
import { Empty, Loaded } from '../kit/states.tsx'
import { formatAbout } from '../kit/time.tsx'
import { useTeam } from '../shell/role.tsx'
import { type Period, useStatistics } from './data.ts'
import { Figures } from './figures.tsx'
import { formatCount } from './usage/usage.tsx'

/** How the executions of a span ended, and how long they took. */
export function ExecutionsView({ span }: { span: Period }) {
  const { teamId } = useTeam()
  const found = useStatistics(teamId, span)
  return (
    <Loaded query={found}>
      {({ totals, hours }) => {
        if (totals.executions === 0)
          return <Empty title="No executions have ended" text="Choose a longer period." />
        const points = hours.map(({ hour }) => hour)
        const format = hours.length > 48 ? formatDate : formatHour
        return (
          <div className="stack">
            <Figures
              figures={[
                ['Executions', formatCount(totals.executions), `${formatCount(totals.cancelled)} cancelled`],
                ['Failed', formatShare(totals.failureRate), `${formatCount(totals.failed)} executions`],
                ['Median duration', formatAbout(totals.durationP50Ms)],
                ['95 % take at most', formatAbout(totals.durationP95Ms)],
                ['Retries of nodes', formatCount(totals.retries)],
              ]}
            />
            <Chart
              label="Executions by hour"
              kind="bars"
              points={points}
              formatPoint={format}
              series={[
                { name: 'Success', tone: 'good', values: hours.map((hour) => hour.succeeded) },
                { name: 'Failed', tone: 'bad', values: hours.map((hour) => hour.failed) },
                { name: 'Cancelled', values: hours.map((hour) => hour.cancelled) },
              ]}
            />
            <Chart
              label="Durations by hour"
              kind="line"
              points={points}
              formatPoint={format}
              format={formatAbout}
              series={[
                { name: 'Median', values: hours.map((hour) => hour.durationP50Ms) },
                { name: '95 % take at most', values: hours.map((hour) => hour.durationP95Ms) },
              ]}
            />
          </div>
        )
      }}
    </Loaded>
  )
}

function formatShare(share: number | null): string {
  if (share === null) return '–'
  return share.toLocaleString(undefined, { style: 'percent', maximumFractionDigits: 1 })
}

function formatHour(at: string): string {
  return new Date(at).toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit' })
}

function formatDate(at: string): string {
  return new Date(at).toLocaleString(undefined, { month: 'short', day: 'numeric', hour: '2-digit' })
}
