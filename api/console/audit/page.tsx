import { addressOf } from '../data/client.ts'
import { useQueryState } from '../kit/address.ts'
import { LinkButton } from '../kit/controls/button.tsx'
import { Tabs } from '../kit/controls/tabs.tsx'
import { PageHeader } from '../kit/header.tsx'
import { Empty } from '../kit/states.tsx'
import { useRole, useTeam } from '../shell/role.tsx'
import './audit.css'
import { AuditEntries } from './entries.tsx'
import { AuditForwarders } from './forwarders.tsx'
import { AuditReports } from './reports.tsx'
import { AuditRetention } from './retention.tsx'
import { useVerdict } from './verdict.tsx'

/** The acts in the team, in a chain that proves itself. */
export function AuditPage() {
  const may = useRole()
  return may('ADMIN') ? (
    <Audit />
  ) : (
    <>
      <PageHeader title="Audit" />
      <Empty title="Not for your role" text="ADMINs of a team read its audit." />
    </>
  )
}

function Audit() {
  const { teamId } = useTeam()
  const [{ tab }, setQuery] = useQueryState({ tab: 'entries' })
  const { button, verdict } = useVerdict(teamId)
  return (
    <>
      <PageHeader
        title="Audit"
        lead="Everything that was done in this team. Each entry is signed, and linked to the one before it by a hash."
      >
        <LinkButton icon="download" href={addressOf(`/api/audit/team/${teamId}/export`)} download>
          Export
        </LinkButton>
        {button}
      </PageHeader>
      {verdict}
      <Tabs
        label="Audit"
        value={tab}
        onChange={(next) => setQuery({ tab: next })}
        tabs={[
          { id: 'entries', label: 'Entries', content: <AuditEntries /> },
          { id: 'reports', label: 'Reports', content: <AuditReports /> },
          { id: 'forwarders', label: 'SIEM', content: <AuditForwarders /> },
          { id: 'retention', label: 'Retention', content: <AuditRetention /> },
        ]}
      />
    </>
  )
}
