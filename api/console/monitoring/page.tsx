import type { ReactNode } from 'react'
import { addressOf } from '../data/client.ts'
import { linkWith, useQueryState } from '../kit/address.ts'
import { LinkButton } from '../kit/controls/button.tsx'
import { Tabs } from '../kit/controls/tabs.tsx'
import { PageHeader } from '../kit/header.tsx'
import { useTeam } from '../shell/role.tsx'
import { AlertsView } from './alerts.tsx'
import { ChannelsView } from './channels/channels.tsx'
import { ExecutionsView } from './executions.tsx'
import { PeriodChoice, useSpan } from './period.tsx'
import { PlaybooksView } from './playbooks/playbooks.tsx'
import { ReportsView } from './reports/reports.tsx'
import { AlertSettings } from './settings.tsx'
import { ShiftsView } from './shifts.tsx'
import { PricesView } from './usage/prices.tsx'
import { TelemetryView } from './usage/telemetry.tsx'
import { UsageView } from './usage/usage.tsx'

/** What the team's AI costs, how its executions go, and what it is alerted of. */
export function MonitoringPage() {
  const { teamId } = useTeam()
  const [query, setQuery] = useQueryState({ tab: 'usage', days: '7' })
  const span = useSpan(query.days)
  const inPeriod = (content: ReactNode, beside?: ReactNode) => (
    <div className="stack">
      <div className="filters">
        <PeriodChoice value={query.days} onChange={(days) => setQuery({ days })} />
        {beside}
      </div>
      {content}
    </div>
  )
  const csv = addressOf(linkWith(`/api/monitoring/teams/${teamId}/export`, { ...span, format: 'csv' }))
  return (
    <>
      <PageHeader title="Monitoring" />
      <Tabs
        label="Monitoring"
        value={query.tab}
        onChange={(tab) => setQuery({ tab })}
        tabs={[
          {
            id: 'usage',
            label: 'Tokens and cost',
            content: inPeriod(
              <UsageView span={span} />,
              <LinkButton href={csv} download icon="download">
                Export CSV
              </LinkButton>,
            ),
          },
          { id: 'executions', label: 'Executions', content: inPeriod(<ExecutionsView span={span} />) },
          { id: 'elsewhere', label: 'Agents elsewhere', content: inPeriod(<TelemetryView span={span} />) },
          { id: 'alerts', label: 'Alerts', content: <AlertsView /> },
          { id: 'shifts', label: 'Shifts', content: <ShiftsView /> },
          { id: 'channels', label: 'Channels', content: <ChannelsView /> },
          { id: 'playbooks', label: 'Playbooks', content: <PlaybooksView /> },
          { id: 'reports', label: 'Reports', content: <ReportsView /> },
          { id: 'prices', label: 'Prices', content: <PricesView /> },
          { id: 'settings', label: 'Settings', content: <AlertSettings /> },
        ]}
      />
    </>
  )
}
