import { useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from 'react'
import { Button } from '../../kit/controls/button.tsx'
import type { NodeType } from '../../nodeform/data.ts'
import { GROUPS, type Group, kindOf, type NodeTypes } from '../graph/kinds.ts'
import { DRAGGED } from './canvas.tsx'
import { Sign } from './signs.tsx'

type PaletteProps = {
  types: NodeTypes
  /** Where what is picked goes, in words. */
  where: string
  /** Triggers cannot stand behind another node. */
  triggers: boolean
  onPick: (type: string) => void
  onClose: () => void
}

/** The node types with a search: the arrow keys choose, Enter or a click adds, and each can be dragged to its place. */
export function Palette({ types, where, triggers, onPick, onClose }: PaletteProps) {
  const [text, setText] = useState('')
  const [at, setAt] = useState(0)
  const listId = useId()
  const list = useRef<HTMLDivElement>(null)
  const field = useRef<HTMLInputElement>(null)
  useLayoutEffect(() => field.current?.focus(), [])
  const groups = useMemo(() => findTypes(types, text, triggers), [types, text, triggers])
  const flat = groups.flatMap(({ found }) => found)
  const active = flat[Math.min(at, flat.length - 1)]
  useEffect(() => {
    list.current?.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' })
  })
  return (
    <section className="palette-dock" aria-label="Add a node">
      <div className="palette-head">
        <strong>Add a node</strong>
        <Button look="plain" small icon="close" aria-label="Close the palette" onClick={onClose} />
      </div>
      <p className="quiet">{where}</p>
      <input
        ref={field}
        className="input"
        type="search"
        role="combobox"
        placeholder="Search nodes"
        aria-label="Search nodes"
        aria-expanded="true"
        aria-controls={listId}
        aria-activedescendant={active ? `${listId}-${active.type}` : undefined}
        autoComplete="off"
        value={text}
        onChange={(event) => {
          setText(event.target.value)
          setAt(0)
        }}
        onKeyDown={(event) => {
          if (event.key === 'ArrowDown') setAt(Math.min(at + 1, flat.length - 1))
          else if (event.key === 'ArrowUp') setAt(Math.max(at - 1, 0))
          else if (event.key === 'Enter' && active) onPick(active.type)
          else if (event.key === 'Escape') onClose()
          else return
          event.preventDefault()
          event.stopPropagation()
        }}
      />
      <div className="palette-list" id={listId} role="listbox" aria-label="Node types" ref={list}>
        {groups.map(({ group, found }) => (
          // biome-ignore lint/a11y/useSemanticElements: a group of options
          <div key={group} role="group" aria-label={group}>
            <div className="palette-group" aria-hidden="true">
              {group}
            </div>
            {found.map(({ type, summary }) => (
              // biome-ignore lint/a11y/useFocusableInteractive: the focus stays in the search field
              // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are the search field's
              <div
                key={type}
                id={`${listId}-${type}`}
                role="option"
                aria-selected={type === active?.type}
                className="palette-item"
                data-group={group}
                title={summary}
                draggable
                onDragStart={(event) => {
                  event.dataTransfer.setData(DRAGGED, type)
                  event.dataTransfer.effectAllowed = 'copy'
                }}
                onClick={() => onPick(type)}
              >
                <span className="step-sign">
                  <Sign name={kindOf(type).sign} size={16} />
                </span>
                <span>
                  {kindOf(type).label}
                  <small>{summary}</small>
                </span>
              </div>
            ))}
          </div>
        ))}
        {flat.length === 0 && <p className="quiet">No node is called so.</p>}
      </div>
    </section>
  )
}

/** Types whose name, type or summary has each of the words; those whose name begins so come first. */
function findTypes(types: NodeTypes, text: string, triggers: boolean) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  const all = [...types.values()].filter(({ kind }) => triggers || kind !== 'trigger')
  const rank = ({ type, summary }: NodeType): number => {
    const label = kindOf(type).label.toLowerCase()
    if (words.every((word) => label.startsWith(word))) return 0
    if (words.every((word) => `${label} ${type.toLowerCase()}`.includes(word))) return 1
    return words.every((word) => `${label} ${type} ${summary}`.toLowerCase().includes(word)) ? 2 : 3
  }
  const ranked = all.map((one) => ({ one, rank: rank(one) })).filter((it) => it.rank < 3)
  if (words.length > 0) ranked.sort((a, b) => a.rank - b.rank)
  const byGroup = Map.groupBy(ranked, ({ one }) => kindOf(one.type).group)
  const order: Group[] = [...GROUPS, 'More']
  // With a search, the group of the best comes first.
  const names = words.length > 0 ? [...byGroup.keys()] : order
  return names.flatMap((group) => {
    const found = byGroup.get(group)?.map(({ one }) => one)
    return found ? [{ group, found }] : []
  })
}
