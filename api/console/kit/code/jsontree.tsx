import { type CSSProperties, type DragEvent, useMemo, useState } from 'react'
import { CopyButton, copyText } from '../controls/copy.tsx'
import { Icon } from '../controls/icon.tsx'
import './jsontree.css'
import { Windowed } from '../tables/windowed.tsx'

type Node = { path: string; name: string; value: unknown; depth: number; size: number | null; open: boolean }

type TreeProps = {
  label: string
  value: unknown
  /** What paths begin with when they are copied or dragged: `$input`, `$nodes.fetch`. */
  root?: string
  /** Whether values can be dragged into an expression (`text/plain` is the path). */
  draggable?: boolean
  /** Takes the path of a value by a button beside it, which copies it otherwise. */
  onPick?: (path: string) => void
}

const LONG = 2_000
const FIRST_OPEN = 40

/** A JSON value as a tree: what is closed is not looked into, what is not seen is not drawn. */
export function JsonTree({ label, value, root = '', draggable, onPick }: TreeProps) {
  const [toggled, setToggled] = useState<ReadonlySet<string>>(new Set())
  const rows = useMemo(() => listRows(value, root, toggled), [value, root, toggled])
  const toggle = (path: string) =>
    setToggled((before) => {
      const after = new Set(before)
      if (!after.delete(path)) after.add(path)
      return after
    })
  return (
    <div>
      <div className="json-header">
        <strong>{label}</strong>
        <CopyButton text={() => JSON.stringify(value, null, 2) ?? ''} label={`Copy ${label}`} />
      </div>
      <div className="json">
        <Windowed label={label} rows={rows} keyOf={(row) => row.path || '$'} height={22}>
          {(row) => <Row {...{ row, toggle, onPick }} draggable={draggable ?? false} />}
        </Windowed>
      </div>
    </div>
  )
}

type RowProps = {
  row: Node
  toggle: (path: string) => void
  draggable: boolean
  onPick: ((path: string) => void) | undefined
}

function Row({ row, toggle, draggable, onPick }: RowProps) {
  const drag = (event: DragEvent) => event.dataTransfer.setData('text/plain', row.path)
  return (
    <div
      className="json-row"
      style={{ '--depth': row.depth } as CSSProperties}
      {...(draggable && row.path ? { draggable: true, onDragStart: drag } : {})}
    >
      {row.size ? (
        <button
          type="button"
          aria-expanded={row.open}
          aria-label={row.name || 'All'}
          onClick={() => toggle(row.path)}
        >
          <Icon name="right" size={10} />
        </button>
      ) : (
        <i />
      )}
      {row.name && <span className="json-key">{row.name}:</span>}
      <span className={`value json-${nameKind(row.value)}`}>{tell(row)}</span>
      {row.path && (
        <button
          type="button"
          className="copy"
          onClick={() => (onPick ? onPick(row.path) : void copyText(row.path))}
          title={row.path}
          {...(onPick ? { 'aria-label': `Insert ${row.path}` } : {})}
        >
          {onPick ? 'Insert' : 'Copy path'}
        </button>
      )}
    </div>
  )
}

function listRows(value: unknown, root: string, toggled: ReadonlySet<string>): Node[] {
  const rows: Node[] = []
  const add = (value: unknown, path: string, name: string, depth: number) => {
    const size = sizeOf(value)
    // Small values are open at first, down to the second level.
    const open = size !== null && (depth < 2 && size <= FIRST_OPEN) !== toggled.has(path)
    rows.push({ path, name, value, depth, size, open })
    if (!open) return
    if (Array.isArray(value)) {
      for (const [at, one] of value.entries()) add(one, `${path}[${at}]`, String(at), depth + 1)
    } else {
      for (const [key, one] of Object.entries(value as object)) {
        const plain = /^[A-Za-z_]\w*$/.test(key)
        // As expressions write it: in brackets it would be a filter.
        const name = plain ? key : `\`${key}\``
        const step = path ? `.${name}` : name
        add(one, `${path}${step}`, key, depth + 1)
      }
    }
  }
  add(value, root, '', 0)
  return rows
}

function sizeOf(value: unknown): number | null {
  if (value === null || typeof value !== 'object') return null
  return Array.isArray(value) ? value.length : Object.keys(value).length
}

function nameKind(value: unknown): string {
  if (typeof value === 'string') return 'text'
  return value !== null && typeof value === 'object' ? 'group' : 'literal'
}

function tell({ value, size, open }: Node): string {
  if (size === null) {
    const text = JSON.stringify(value) ?? String(value)
    return text.length > LONG ? `${text.slice(0, LONG)}…` : text
  }
  const list = Array.isArray(value)
  if (size === 0) return list ? '[]' : '{}'
  const count = `${size} ${list ? (size === 1 ? 'item' : 'items') : size === 1 ? 'key' : 'keys'}`
  return open ? (list ? `[ ${count} ]` : `{ ${count} }`) : list ? `[… ${count}]` : `{… ${count}}`
}
