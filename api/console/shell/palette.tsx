import { useQuery } from '@tanstack/react-query'
import { type KeyboardEvent, useDeferredValue, useId, useState } from 'react'
import { listExecutions } from '../data/executions.ts'
import { listWorkflows } from '../data/workflows.ts'
import { go } from '../kit/address.ts'
import { Dialog } from '../kit/dialog.tsx'
import { Icon } from '../kit/icon.tsx'
import { nameStatus } from '../kit/status.tsx'
import { formatAge } from '../kit/time.tsx'
import { NAV } from '../pages.tsx'
import { type Command, useRegistered } from './commands.tsx'
import { useRole, useTeam } from './role.tsx'
import './palette.css'

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
  const found = useFound(useDeferredValue(text.trim()))
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
      {found.length === 0 && <p className="palette-none quiet">Nothing found</p>}
    </div>
  )
}

/** What fits the text, in groups: commands of the page, pages, workflows, recent executions. */
function useFound(text: string): Command[] {
  const { teamId } = useTeam()
  const may = useRole()
  const registered = useRegistered()
  const workflows = useQuery({
    queryKey: ['workflows', teamId, { search: text, size: 8 }],
    queryFn: ({ signal }) => listWorkflows(teamId, { search: text, size: 8 }, signal),
    enabled: teamId !== '',
    placeholderData: (before) => before,
  })
  const executions = useQuery({
    queryKey: ['executions', teamId, { size: 8 }],
    queryFn: ({ signal }) => listExecutions(teamId, { size: 8 }, signal),
    enabled: teamId !== '',
  })
  const fits = (label: string) => label.toLowerCase().includes(text.toLowerCase())
  const pages = NAV.filter(({ nav }) => !nav.least || may(nav.least)).map(({ path, nav }): Command => {
    const hint = nav.key ? { hint: `g ${nav.key}` } : {}
    return { id: path, label: nav.label, group: 'Pages', icon: nav.icon, run: () => go(path), ...hint }
  })
  const byName = (workflows.data?.content ?? []).map(({ id, name, active }): Command => {
    const hint = active ? 'active' : ''
    return { id, label: name, group: 'Workflows', icon: 'workflows', hint, run: () => go(`/workflows/${id}`) }
  })
  const recent = (executions.data?.content ?? []).map(({ id, workflowName, status, startedAt }): Command => {
    const hint = [nameStatus(status), startedAt && formatAge(startedAt)].filter(Boolean).join(' · ')
    const label = `${workflowName} ${id.slice(-12)}`
    return { id, label, group: 'Executions', icon: 'executions', hint, run: () => go(`/executions/${id}`) }
  })
  const byId: Command[] = ID.test(text)
    ? [{ id: text, label: `Execution ${text}`, group: 'Executions', run: () => go(`/executions/${text}`) }]
    : []
  return [
    ...registered.filter(({ label }) => fits(label)).map((one) => ({ group: 'This page', ...one })),
    ...pages.filter(({ label }) => fits(label)),
    ...(text === '' ? byName.slice(0, 4) : byName.filter(({ label }) => fits(label))),
    ...byId,
    ...recent.filter(({ label }) => fits(label)).slice(0, text === '' ? 5 : 8),
  ]
}
