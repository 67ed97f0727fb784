import { useQuery } from '@tanstack/react-query'
import { type KeyboardEvent, useDeferredValue, useEffect, useId, useState } from 'react'
import { listExecutions } from '../executions/data.ts'
import { go, linkWith } from '../kit/address.ts'
import { Icon } from '../kit/controls/icon.tsx'
import { Dialog } from '../kit/overlays/dialog.tsx'
import { nameStatus } from '../kit/status.tsx'
import { formatAge } from '../kit/time.tsx'
import { NAV } from '../pages.tsx'
import { listWorkflows } from '../workflows/data.ts'
import { type Command, useRegistered } from './commands.tsx'
import { useRole, useTeam } from './role.tsx'
import './palette.css'

/** A search over executions looks at very many: not for a letter or two, and not while the user types. */
const LEAST = 3
const PAUSE_MS = 300

const ID = /^[0-9a-f]{8}-[0-9a-f-]{27}$/i

/** Search over everything that one can go to or do. */
export function Palette({ open, onClose }: { open: boolean; onClose: () => void }) {
  return (
    <Dialog open={open} onClose={onClose} title={<span className="hidden">Search</span>} wide>
      {open && <Search onClose={onClose} />}
    </Dialog>
  )
}

function Search({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState('')
  const [at, setAt] = useState(0)
  const { found, searching } = useFound(useDeferredValue(text.trim()))
  const listId = useId()
  const chosen = Math.min(at, found.length - 1)
  const run = (command: Command) => {
    onClose()
    command.run()
  }
  const press = (event: KeyboardEvent) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (by !== undefined && found.length > 0) {
      event.preventDefault()
      setAt((chosen + by + found.length) % found.length)
    } else if (event.key === 'Enter' && found[chosen]) {
      event.preventDefault()
      run(found[chosen])
    }
  }
  return (
    <div className="palette">
      <div className="palette-field">
        <Icon name="search" />
        <input
          // biome-ignore lint/a11y/noAutofocus: the dialog is for this field alone
          autoFocus
          role="combobox"
          aria-label="Search pages, workflows and commands"
          aria-expanded="true"
          aria-controls={listId}
          aria-activedescendant={found[chosen] ? `${listId}-${chosen}` : undefined}
          placeholder="Search pages, workflows, executions, commands"
          autoComplete="off"
          value={text}
          onChange={(event) => {
            setText(event.target.value)
            setAt(0)
          }}
          onKeyDown={press}
        />
        <kbd>Esc</kbd>
      </div>
      <div role="listbox" id={listId} aria-label="Found">
        {found.map((command, index) => (
          <div key={command.id}>
            {command.group !== found[index - 1]?.group && (
              <div className="palette-group" aria-hidden="true">
                {command.group}
              </div>
            )}
            {/* biome-ignore lint/a11y/useKeyWithClickEvents: the field hears the keys */}
            {/* biome-ignore lint/a11y/useFocusableInteractive: focus stays in the field */}
            <div
              role="option"
              id={`${listId}-${index}`}
              aria-selected={index === chosen}
              className="menu-item"
              ref={(element) => {
                if (index === chosen) element?.scrollIntoView({ block: 'nearest' })
              }}
              onClick={() => run(command)}
              onPointerMove={() => setAt(index)}
            >
              <Icon name={command.icon ?? 'right'} />
              <span className="line">{command.label}</span>
              {command.hint && <span className="end quiet">{command.hint}</span>}
            </div>
          </div>
        ))}
      </div>
      {searching ? (
        <p className="palette-none quiet">Searching executions…</p>
      ) : (
        found.length === 0 && <p className="palette-none quiet">Nothing found</p>
      )}
    </div>
  )
}

/** What fits the text, in groups: commands of the page, pages, workflows, and executions, which take longer to find. */
function useFound(text: string): { found: Command[]; searching: boolean } {
  const { teamId } = useTeam()
  const may = useRole()
  const registered = useRegistered()
  const workflows = useQuery({
    queryKey: ['workflows', teamId, { search: text, size: 8 }],
    queryFn: ({ signal }) => listWorkflows(teamId, { search: text, size: 8 }, signal),
    enabled: teamId !== '',
    placeholderData: (before) => before,
  })
  const settled = useSettled(text, PAUSE_MS)
  const search = settled.length >= LEAST ? { search: settled } : {}
  const executions = useQuery({
    queryKey: ['executions', teamId, { ...search, size: 8 }],
    queryFn: ({ signal }) => listExecutions(teamId, { ...search, size: 8 }, signal),
    enabled: teamId !== '',
    staleTime: 10_000,
  })
  const searching = text.length >= LEAST && (settled !== text || executions.isPending)
  const fits = (label: string) => label.toLowerCase().includes(text.toLowerCase())
  const pages = NAV.filter(({ nav }) => !nav.least || may(nav.least)).map(({ path, nav }): Command => {
    const hint = nav.key ? { hint: `g ${nav.key}` } : {}
    return { id: path, label: nav.label, group: 'Pages', icon: nav.icon, run: () => go(path), ...hint }
  })
  const byName = (workflows.data?.content ?? []).map(({ id, name, active }): Command => {
    const hint = active ? 'active' : ''
    return { id, label: name, group: 'Workflows', icon: 'workflows', hint, run: () => go(`/workflows/${id}`) }
  })
  const rows = searching ? [] : (executions.data?.content ?? [])
  const runs = rows.map(({ id, workflowName, status, startedAt, errorMessage }): Command => {
    const hint = [nameStatus(status), startedAt && formatAge(startedAt)].filter(Boolean).join(' · ')
    const isAsked = errorMessage?.toLowerCase().includes(text.toLowerCase())
    const label = text && isAsked ? `${workflowName}: ${errorMessage}` : `${workflowName} ${id.slice(-12)}`
    return { id, label, group: 'Executions', icon: 'executions', hint, run: () => go(`/executions/${id}`) }
  })
  // The whole id opens it at once, also in another team.
  const isListed = rows.some(({ id }) => id === text.toLowerCase())
  const byId: Command[] =
    ID.test(text) && !isListed
      ? [{ id: text, label: `Execution ${text}`, group: 'Executions', run: () => go(`/executions/${text}`) }]
      : []
  const more = rows.length > 0 || executions.data?.searchedFrom
  const all: Command[] =
    text.length >= LEAST && !searching && more
      ? [
          {
            id: 'all executions',
            label: `Search executions for “${text}”`,
            group: 'Executions',
            icon: 'search',
            run: () => go(linkWith('/executions', { search: text })),
          },
        ]
      : []
  const found = [
    ...registered.filter(({ label }) => fits(label)).map((one) => ({ group: 'This page', ...one })),
    ...pages.filter(({ label }) => fits(label)),
    ...(text === '' ? byName.slice(0, 4) : byName.filter(({ label }) => fits(label))),
    ...byId,
    ...(text === ''
      ? runs.slice(0, 5)
      : text.length < LEAST
        ? runs.filter(({ label }) => fits(label))
        : runs),
    ...all,
  ]
  return { found, searching }
}

/** A value once it has stayed the same for a while. */
function useSettled(value: string, pauseMs: number): string {
  const [settled, setSettled] = useState(value)
  useEffect(() => {
    const timer = setTimeout(setSettled, pauseMs, value)
    return () => clearTimeout(timer)
  }, [value, pauseMs])
  return settled
}
