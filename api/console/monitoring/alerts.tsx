import { useState } from 'react'
import { ExecutionLink } from '../executions/list.tsx'
import { readPage, useQueryState } from '../kit/address.ts'
import { Button } from '../kit/controls/button.tsx'
import { Field } from '../kit/controls/field.tsx'
import { Select } from '../kit/controls/input.tsx'
import { notify, notifyError } from '../kit/notices.tsx'
import { Empty, Loaded } from '../kit/states.tsx'
import { nameConstant, Pill, type Tone } from '../kit/status.tsx'
import { Pager } from '../kit/tables/pager.tsx'
import { Table } from '../kit/tables/table.tsx'
import { Age } from '../kit/time.tsx'
import { useRole, useTeam } from '../shell/role.tsx'
import { WorkflowName } from '../workflows/name.tsx'
import {
  ALERT_STATUSES,
  ALERT_TYPES,
  type Alert,
  acknowledgeAlerts,
  settleAlert,
  useAlerts,
  useWatched,
} from './data.ts'

const TONES: Record<string, Tone> = { CRITICAL: 'bad', HIGH: 'bad', MEDIUM: 'warn', LOW: 'busy' }
const FILTERS = { tab: 'alerts', days: '7', status: '', type: '', page: '' }

/** The team's alerts with what can be done about them, and what is watched. */
export function AlertsView() {
  const { teamId } = useTeam()
  const may = useRole()
  const [query, setQuery, linkTo] = useQueryState(FILTERS)
  const { status, type } = query
  const found = useAlerts(teamId, { status, type, page: readPage(query.page) })
  const [busy, setBusy] = useState(false)

  async function acknowledgeAll(alerts: Alert[]) {
    setBusy(true)
    try {
      let count = 0
      for (const [of, some] of Map.groupBy(alerts, (alert) => alert.type))
        count += await acknowledgeAlerts(
          teamId,
          of,
          some.map(({ id }) => id),
        )
      notify(`${count} ${count === 1 ? 'alert' : 'alerts'} acknowledged`)
    } catch (error) {
      notifyError(error)
    } finally {
      setBusy(false)
    }
  }

  return (
    <div className="stack">
      <div className="filters">
        <Field label="Status">
          <Select
            value={status}
            onChange={(next) => setQuery({ status: next })}
            empty="Any status"
            choices={ALERT_STATUSES.map((value) => ({ value, label: nameConstant(value) }))}
          />
        </Field>
        <Field label="Type">
          <Select
            value={type}
            onChange={(next) => setQuery({ type: next })}
            empty="Any type"
            choices={ALERT_TYPES.map((value) => ({ value, label: nameConstant(value) }))}
          />
        </Field>
      </div>
      <Loaded query={found}>
        {(list) => {
          if (list.totalElements === 0)
            return (
              <Empty
                title={status || type ? 'Nothing found' : 'No alerts'}
                text={
                  status || type
                    ? 'No alert fits these filters.'
                    : 'The settings say what is watched. Hours are evaluated a minute after they are over.'
                }
              />
            )
          const open = list.content.filter((alert) => alert.status === 'OPEN')
          return (
            <>
              {may('OPERATOR') && open.length > 1 && (
                <div className="row">
                  <Button small busy={busy} onClick={() => void acknowledgeAll(open)}>
                    Acknowledge the {open.length} open ones on this page
                  </Button>
                </div>
              )}
              <AlertTable alerts={list.content} />
              <Pager page={list} linkTo={(number) => linkTo({ page: number })} />
            </>
          )
        }}
      </Loaded>
      <Watched teamId={teamId} />
    </div>
  )
}

function AlertTable({ alerts }: { alerts: Alert[] }) {
  const may = useRole()
  const settle = async (alert: Alert, how: 'acknowledge' | 'resolve') => {
    try {
      await settleAlert(alert, how)
      notify(how === 'resolve' ? 'Resolved' : 'Acknowledged')
    } catch (error) {
      notifyError(error)
    }
  }
  return (
    <Table
      label="Alerts"
      rows={alerts}
      keyOf={({ id }) => id}
      columns={[
        {
          heading: 'Severity',
          cell: ({ severity }) => <Pill tone={TONES[severity]}>{nameConstant(severity)}</Pill>,
        },
        {
          heading: 'Alert',
          cell: (alert) => (
            <>
              <span className="said">{alert.message}</span>
              <div className="quiet">
                {nameConstant(alert.type)}
                {alert.workflowId && (
                  <>
                    {' · '}
                    <WorkflowName id={alert.workflowId} />
                  </>
                )}
                {alert.sampleExecutionIds.length > 0 && ' · for example '}
                {alert.sampleExecutionIds.slice(0, 2).map((id, at) => (
                  <span key={id}>
                    {at > 0 && ', '}
                    <ExecutionLink id={id} />
                  </span>
                ))}
              </div>
            </>
          ),
        },
        { heading: 'Opened', cell: ({ createdAt }) => <Age at={createdAt} /> },
        {
          heading: 'Status',
          cell: (alert) => (
            <>
              {nameConstant(alert.status)}
              {alert.acknowledgedBy && <div className="quiet">by {alert.acknowledgedBy.name}</div>}
            </>
          ),
        },
        may('OPERATOR') && {
          heading: 'Act',
          cell: (alert) => (
            <div className="row acts">
              {alert.status === 'OPEN' && (
                <Button
                  small
                  aria-label={`Acknowledge: ${alert.message}`}
                  onClick={() => void settle(alert, 'acknowledge')}
                >
                  Acknowledge
                </Button>
              )}
              {alert.status !== 'RESOLVED' && (
                <Button
                  small
                  aria-label={`Resolve: ${alert.message}`}
                  onClick={() => void settle(alert, 'resolve')}
                >
                  Resolve
                </Button>
              )}
            </div>
          ),
        },
      ]}
    />
  )
}

const STATES: Record<string, { text: string; tone?: Tone }> = {
  FIRING: { text: 'Firing', tone: 'bad' },
  QUIET: { text: 'Quiet', tone: 'good' },
  INSUFFICIENT_DATA: { text: 'Too little data', tone: 'warn' },
  FAILED: { text: 'Could not be evaluated', tone: 'bad' },
}

/** The state of a watched metric, and the reason why nothing can be said. */
export function StatePill({ state, reason }: { state: string; reason: string | null }) {
  return (
    <>
      <Pill tone={STATES[state]?.tone}>{STATES[state]?.text ?? state}</Pill>
      {reason && <div className="quiet">{reason}</div>}
    </>
  )
}

/** Each metric that is watched, and how it was in the newest hour. */
function Watched({ teamId }: { teamId: string }) {
  const found = useWatched(teamId)
  return (
    <Loaded query={found} rows={3}>
      {({ content, totalElements, evaluatedTo }) => (
        <section>
          <h2>What is watched</h2>
          {evaluatedTo === null ? (
            <p className="quiet">Nothing yet: an ADMIN switches it on in the settings.</p>
          ) : (
            <>
              <p className="quiet">
                Evaluated up to <Age at={evaluatedTo} />
                {totalElements > content.length && `, the first ${content.length} of ${totalElements}`}
              </p>
              <Table
                label="What is watched"
                rows={content}
                keyOf={({ metric, workflowId }) => `${metric} ${workflowId}`}
                columns={[
                  { heading: 'Metric', cell: ({ metric }) => nameConstant(metric) },
                  {
                    heading: 'Of',
                    cell: ({ workflowId }) => (workflowId ? <WorkflowName id={workflowId} /> : 'the team'),
                  },
                  {
                    heading: 'State',
                    cell: (row) => <StatePill {...row} />,
                  },
                  { heading: 'Since', cell: ({ since }) => <Age at={since} /> },
                ]}
              />
            </>
          )}
        </section>
      )}
    </Loaded>
  )
}
