import { type ReactNode, useMemo } from 'react'
import { Link } from 'wouter'
import { serverNow } from '../data/clock.ts'
import type { useExecutions } from '../executions/data.ts'
import { ExecutionTable } from '../executions/list.tsx'
import { useApprovals } from '../executions/waits/data.ts'
import { linkWith, useQueryState } from '../kit/address.ts'
import { Chart } from '../kit/charts/chart.tsx'
import { LinkButton } from '../kit/controls/button.tsx'
import { Field } from '../kit/controls/field.tsx'
import { Select } from '../kit/controls/input.tsx'
import { PageHeader } from '../kit/header.tsx'
import { Loaded, Refused } from '../kit/states.tsx'
import { Pill } from '../kit/status.tsx'
import { Age, formatAbout, formatRate } from '../kit/time.tsx'
import { useRole, useTeam } from '../shell/role.tsx'
import { type OpenAlert, useOpenAlerts, useRecentStatistics } from './data.ts'
import './home.css'
import { gather, PERIODS, readPeriod } from './periods.ts'
import { Troubled } from './troubled.tsx'

/** Charts, what waits for people, and which workflows need a look; every number leads to the list behind it. */
export function Overview({ newest }: { newest: ReturnType<typeof useExecutions> }) {
  const { teamId } = useTeam()
  const may = useRole()
  const [query, setQuery] = useQueryState({ period: 'day' })
  const period = readPeriod(query.period)
  const statistics = useRecentStatistics(teamId, period.hours)
  const { data } = statistics
  const buckets = useMemo(() => (data ? gather(data.hours, period.step) : undefined), [data, period])
  const from = useMemo(
    () => new Date(Math.floor(serverNow() / 60_000) * 60_000 - period.hours * 3_600_000).toISOString(),
    [period],
  )
  const linkTo = (status: string) => linkWith('/executions', { status, from })
  return (
    <>
      <PageHeader title="Home">
        <Field label="Period" hideLabel>
          <Select
            value={period.id}
            onChange={(id) => setQuery({ period: id })}
            choices={PERIODS.map(({ id, label }) => ({ value: id, label }))}
          />
        </Field>
        {may('BUILDER') && (
          <LinkButton href="/start" look="primary" icon="plus">
            New workflow
          </LinkButton>
        )}
      </PageHeader>
      <Refused error={statistics.error} />
      <div className="tiles">
        <Tile name="Executions" href={linkTo('')} value={data?.totals.executions.toLocaleString()}>
          {data && `${data.totals.succeeded.toLocaleString()} succeeded`}
        </Tile>
        <Tile
          name="Failure rate"
          href={linkTo('FAILED')}
          value={data && formatRate(data.totals.failureRate)}
          bad={(data?.totals.failed ?? 0) > 0}
        >
          {data && `${data.totals.failed.toLocaleString()} failed`}
        </Tile>
        <Tile
          name="Median duration"
          href={linkTo('SUCCESS')}
          value={data && formatAbout(data.totals.durationP50Ms)}
        >
          {data && `p95 ${formatAbout(data.totals.durationP95Ms)}`}
        </Tile>
        <Approvals />
        <Alerts />
      </div>
      <div className="charts">
        <section className="panel">
          {buckets && (
            <Chart
              label="Executions"
              kind="bars"
              points={buckets.map(({ at }) => at)}
              formatPoint={period.format}
              series={[
                { name: 'Succeeded', values: buckets.map((one) => one.succeeded), tone: 'good' },
                { name: 'Failed', values: buckets.map((one) => one.failed), tone: 'bad' },
                { name: 'Cancelled', values: buckets.map((one) => one.cancelled), tone: 'warn' },
              ]}
            />
          )}
        </section>
        <section className="panel">
          {buckets && (
            <Chart
              label="Duration"
              kind="line"
              points={buckets.map(({ at }) => at)}
              formatPoint={period.format}
              format={formatAbout}
              series={[
                { name: 'Median', values: buckets.map((one) => one.durationP50Ms) },
                { name: 'p95', values: buckets.map((one) => one.durationP95Ms) },
              ]}
            />
          )}
        </section>
      </div>
      <Troubled hours={period.hours} from={from} />
      <section className="home-section">
        <div className="section-head">
          <h2>Latest executions</h2>
          <Link href="/executions">All executions</Link>
        </div>
        <Loaded query={newest}>{({ content }) => <ExecutionTable rows={content} named />}</Loaded>
      </section>
    </>
  )
}

type TileProps = {
  name: string
  href: string
  value: string | undefined
  bad?: boolean
  children?: ReactNode
}

function Tile({ name, href, value, bad, children }: TileProps) {
  return (
    <Link className="tile" href={href}>
      <span className="quiet">{name}</span>
      <strong className={bad ? 'bad' : undefined}>{value ?? '–'}</strong>
      <span className="quiet">{children}</span>
    </Link>
  )
}

function Approvals() {
  const { teamId } = useTeam()
  const { data } = useApprovals(teamId, { status: 'OPEN', size: 1 })
  const oldest = data?.content.at(-1)
  return (
    <Tile name="Open approvals" href="/approvals" value={data?.totalElements.toLocaleString()}>
      {oldest ? (
        <>
          newest <Age at={oldest.createdAt} />
        </>
      ) : (
        data && 'Nothing to decide'
      )}
    </Tile>
  )
}

function Alerts() {
  const { teamId } = useTeam()
  const { data } = useOpenAlerts(teamId)
  const worst = data?.content[0]
  return (
    <Tile
      name="Open alerts"
      href="/monitoring?tab=alerts"
      value={data?.totalElements.toLocaleString()}
      bad={(data?.totalElements ?? 0) > 0}
    >
      {worst ? <AlertLine alert={worst} /> : data && 'Nothing unusual'}
    </Tile>
  )
}

function AlertLine({ alert }: { alert: OpenAlert }) {
  return (
    <span className="alert-line" title={alert.message}>
      <Pill tone={alert.severity === 'LOW' ? 'warn' : 'bad'}>{alert.severity.toLowerCase()}</Pill>
      <span>{alert.message}</span>
    </span>
  )
}
