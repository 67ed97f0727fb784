import { useQueryState } from '../kit/address.ts'
import { Tabs } from '../kit/controls/tabs.tsx'
import { PageHeader } from '../kit/header.tsx'
import '../people/team.css'
import { useTeam } from '../shell/role.tsx'
import { AccountSettings } from './account.tsx'
import { InstanceSettings } from './instance.tsx'
import { TeamSettings } from './team.tsx'

/** The team's settings, one's own account, and the instance's for its admin. */
export function SettingsPage() {
  const { user } = useTeam()
  const [{ tab }, setQuery] = useQueryState({ tab: 'team' })
  return (
    <>
      <PageHeader title="Settings" />
      <Tabs
        label="Settings"
        value={tab}
        onChange={(next) => setQuery({ tab: next })}
        tabs={[
          { id: 'team', label: 'Team', content: <TeamSettings /> },
          { id: 'account', label: 'Your account', content: <AccountSettings /> },
          ...(user.instanceAdmin
            ? [{ id: 'instance', label: 'Instance', content: <InstanceSettings /> }]
            : []),
        ]}
      />
    </>
  )
}
