import { Dialog as Base } from '@base-ui/react/dialog'
import { Suspense, useEffect, useMemo, useRef, useState } from 'react'
import { flushSync } from 'react-dom'
import { Redirect, Route, Switch, useLocation } from 'wouter'
import { Button } from '../kit/controls/button.tsx'
import { Loading } from '../kit/states.tsx'
import { NAV, PAGES } from '../pages.tsx'
import { Boundary } from './boundary.tsx'
import type { User } from './data.ts'
import './frame.css'
import { NewTeam } from './newteam.tsx'
import { Palette } from './palette.tsx'
import { TeamContext } from './role.tsx'
import { ShortcutHelp, useShortcuts } from './shortcuts.tsx'
import { Brand, Sidebar } from './sidebar.tsx'
import { keep, recall } from './theme.ts'

const KEPT = 'perdure.team'

/** The frame around every page: the sidebar, or a drawer on a phone, the palette and the keys. */
export function Frame({ user, onLeave }: { user: User; onLeave: () => void }) {
  const [path, go] = useLocation()
  const [wanted, setWanted] = useState(() => recall(KEPT))
  const [shown, setShown] = useState<'palette' | 'help' | 'drawer' | null>(null)
  const main = useRef<HTMLElement>(null)
  const close = () => setShown(null)
  useShortcuts({ onPalette: () => flushSync(() => setShown('palette')), onHelp: () => setShown('help') })
  const team = user.teams.find((one) => one.teamId === wanted) ?? user.teams[0]
  const value = useMemo(() => {
    const choose = (teamId: string) => {
      keep(KEPT, teamId)
      setWanted(teamId)
    }
    const { teamId = '', teamName = '', role = null } = team ?? {}
    return { teamId, teamName, role, user, choose }
  }, [team, user])
  // biome-ignore lint/correctness/useExhaustiveDependencies: with every other page
  useEffect(() => {
    scrollTo(0, 0)
    setShown(null)
  }, [path])
  // What one team's page shows is not the other team's: the switch leads to the list of the same kind.
  const switchTo = (teamId: string) => {
    value.choose(teamId)
    const list = NAV.find((one) => path.startsWith(`${one.path}/`))
    if (list) go(list.path)
  }
  const sidebar = (
    <Sidebar
      onTeam={switchTo}
      onLeave={onLeave}
      onSearch={() => setShown('palette')}
      onHelp={() => setShown('help')}
    />
  )
  return (
    <TeamContext value={value}>
      {/* biome-ignore lint/a11y/useValidAnchor: the # of an address is a page here, so it cannot name the main part */}
      <a
        className="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault()
          main.current?.focus()
        }}
      >
        Skip to the page
      </a>
      <div className="frame">
        <header className="top">
          <Button look="plain" icon="menu" aria-label="Menu" onClick={() => setShown('drawer')} />
          <Brand />
          <Button look="plain" icon="search" aria-label="Search" onClick={() => setShown('palette')} />
        </header>
        <aside className="bar">{sidebar}</aside>
        <main id="main" ref={main} tabIndex={-1}>
          <Boundary key={`${value.teamId} ${path}`}>
            <Suspense fallback={<Loading />}>
              {!team && path !== '/confirm' ? <NewTeam onMade={value.choose} /> : <Pages />}
            </Suspense>
          </Boundary>
        </main>
      </div>
      <Base.Root open={shown === 'drawer'} onOpenChange={(open) => !open && close()}>
        <Base.Portal>
          <Base.Backdrop className="backdrop" />
          <Base.Popup className="bar drawer" aria-label="Menu">
            {sidebar}
          </Base.Popup>
        </Base.Portal>
      </Base.Root>
      <Palette open={shown === 'palette'} onClose={close} />
      <ShortcutHelp open={shown === 'help'} onClose={close} />
    </TeamContext>
  )
}

function Pages() {
  return (
    <Switch>
      {PAGES.map(({ path, show }) => (
        <Route key={path} path={path} component={show} />
      ))}
      <Route>
        <Redirect to={NAV[0]!.path} replace />
      </Route>
    </Switch>
  )
}
