import { Link, useLocation } from 'wouter'
import { useOpenCount } from '../executions/waits/data.ts'
import icon from '../icon.svg'
import { Button } from '../kit/controls/button.tsx'
import { Icon, type IconName } from '../kit/controls/icon.tsx'
import { notifyError } from '../kit/notices.tsx'
import { Menu } from '../kit/overlays/menu.tsx'
import { NAV, NAV_GROUPS } from '../pages.tsx'
import { signOut } from './data.ts'
import { useRole, useTeam } from './role.tsx'
import { THEMES, type Theme, useTheme } from './theme.ts'

type SidebarProps = {
  onTeam: (teamId: string) => void
  onLeave: () => void
  onSearch: () => void
  onHelp: () => void
}

const THEME_ICONS: Record<Theme, IconName> = { system: 'desktop', light: 'sun', dark: 'moon' }

export function Brand() {
  return (
    <Link className="brand" href="/">
      <img src={icon} alt="" width={22} height={22} />
      Perdure
    </Link>
  )
}

/** The brand, the team, search, the pages in groups, and who is signed in. */
export function Sidebar({ onTeam, onLeave, onSearch, onHelp }: SidebarProps) {
  const { teamId, user } = useTeam()
  const [theme, setTheme] = useTheme()
  const may = useRole()
  const name = `${user.firstName} ${user.lastName}`.trim() || user.email
  const leave = () => void signOut().then(onLeave, notifyError)
  return (
    <>
      <Brand />
      {user.teams.length > 0 && (
        <select
          className="input"
          aria-label="Team"
          value={teamId}
          onChange={(event) => onTeam(event.target.value)}
        >
          {user.teams.map((team) => (
            <option key={team.teamId} value={team.teamId}>
              {team.teamName}
            </option>
          ))}
        </select>
      )}
      <button type="button" className="search-button" onClick={onSearch}>
        <Icon name="search" />
        Search
        <kbd>Ctrl K</kbd>
      </button>
      <nav aria-label="Console">
        {NAV_GROUPS.map((group) => {
          const pages = NAV.filter(({ nav }) => nav.group === group && (!nav.least || may(nav.least)))
          if (pages.length === 0) return null
          return (
            <div key={group}>
              <h2>{group}</h2>
              {pages.map(({ path, nav }) => (
                <NavLink key={path} path={path} label={nav.label} icon={nav.icon} />
              ))}
            </div>
          )
        })}
        <a href="/api/docs/guide">
          <Icon name="guide" />
          Guide
        </a>
      </nav>
      <div className="who">
        {(!user.emailConfirmed || user.pendingEmail !== null) && (
          <Link className="unconfirmed" href="/confirm">
            Confirm your e-mail
          </Link>
        )}
        <span title={user.email}>{name}</span>
        <div className="row">
          <Button small onClick={leave}>
            Sign out
          </Button>
          <Menu
            trigger={<Button look="plain" small icon={THEME_ICONS[theme]} aria-label="Theme" />}
            items={THEMES.map((one) => ({
              label: one[0]!.toUpperCase() + one.slice(1),
              icon: THEME_ICONS[one],
              onClick: () => setTheme(one),
              end: one === theme && <Icon name="check" />,
            }))}
          />
          <Button look="plain" small icon="help" aria-label="Keyboard" onClick={onHelp} />
        </div>
      </div>
    </>
  )
}

function NavLink({ path, label, icon }: { path: string; label: string; icon: IconName }) {
  const [here] = useLocation()
  const current = here === path || (path !== '/' && here.startsWith(`${path}/`))
  return (
    <Link href={path} aria-current={current ? 'page' : undefined}>
      <Icon name={icon} />
      {label}
      {path === '/approvals' && <OpenCount />}
    </Link>
  )
}

function OpenCount() {
  const { teamId } = useTeam()
  const may = useRole()
  const count = useOpenCount(teamId, may('OPERATOR'))
  if (count === '') return null
  return (
    <span className="count" title="Open ones that you may decide">
      {count}
    </span>
  )
}
