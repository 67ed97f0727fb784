import { useState } from 'react'
import { Button } from '../kit/controls/button.tsx'
import { Field } from '../kit/controls/field.tsx'
import { Select } from '../kit/controls/input.tsx'
import { Dialog } from '../kit/overlays/dialog.tsx'
import type { Acts } from './graph/acts.ts'
import type { Target } from './graph/edits.ts'
import { handlesOf, isLoop, isTrigger, type NodeTypes, nameHandle, nameNode } from './graph/kinds.ts'
import { type Draft, type EditorNode, refuseEdge, withChildren } from './graph/model.ts'
import { type EditorStore, useEditor } from './graph/store.ts'

type Props = {
  store: EditorStore
  acts: Acts
  types: NodeTypes
  id: string
  onPick: (target: Target) => void
  onClose: () => void
}

/** Where a node leads to and which loop it is in: all that the mouse does by dragging. */
export function Connections({ store, acts, types, id, onPick, onClose }: Props) {
  const draft = useEditor(store, (state) => state.draft)
  const node = draft.nodes.find((one) => one.id === id)
  if (!node) return null
  return (
    <Dialog open onClose={onClose} title={`Connections of ${nameNode(node)}`}>
      <div className="stack">
        <Present draft={draft} node={node} acts={acts} onPick={onPick} />
        <Connect draft={draft} node={node} acts={acts} types={types} onClose={onClose} />
        {!isTrigger(node.type, types) && <Loop draft={draft} node={node} acts={acts} />}
        <div className="actions">
          <Button onClick={onClose}>Close</Button>
        </div>
      </div>
    </Dialog>
  )
}

type PartProps = { draft: Draft; node: EditorNode; acts: Acts }

function Present({ draft, node, acts, onPick }: PartProps & { onPick: Props['onPick'] }) {
  const names = new Map(draft.nodes.map((one) => [one.id, nameNode(one)]))
  const own = draft.edges.filter(({ source, target }) => source === node.id || target === node.id)
  if (own.length === 0) return <p className="quiet">It is connected to nothing yet.</p>
  return (
    <ul className="edge-list">
      {own.map((edge) => {
        const { source, target, sourceHandle } = edge
        const by = sourceHandle ? ` (${sourceHandle})` : ''
        const text = `${names.get(source) ?? source}${by} → ${names.get(target) ?? target}`
        return (
          <li key={`${source} ${sourceHandle} ${target}`}>
            <span className="name">{text}</span>
            <Button
              small
              look="plain"
              icon="plus"
              aria-label={`Add a node between: ${text}`}
              onClick={() => onPick({ edge })}
            />
            <Button
              small
              look="plain"
              icon="trash"
              aria-label={`Remove the connection ${text}`}
              onClick={() => acts.disconnect(edge)}
            />
          </li>
        )
      })}
    </ul>
  )
}

function Connect({
  draft,
  node,
  acts,
  types,
  onClose,
}: PartProps & { types: NodeTypes; onClose: () => void }) {
  const handles = handlesOf(node, types)
  const [at, setAt] = useState(() => handles.indexOf(acts.freeEnd(node).handle))
  const [target, setTarget] = useState('')
  const end = { id: node.id, handle: handles[at] ?? null }
  const possible = draft.nodes.filter((one) => refuseEdge(draft, end, one.id, types) === undefined)
  const chosen = possible.find((one) => one.id === target)
  if (handles.length === 0) return null
  return (
    <form
      className="stack"
      onSubmit={(event) => {
        event.preventDefault()
        if (chosen && acts.connect(end, chosen.id)) onClose()
      }}
    >
      {handles.length > 1 && (
        <Field label="Leaves by">
          <Select
            value={String(at)}
            onChange={(value) => setAt(Number(value))}
            choices={handles.map((handle, index) => ({ value: String(index), label: nameHandle(handle) }))}
          />
        </Field>
      )}
      <Field
        label="Connect to"
        {...(possible.length === 0 ? { help: 'There is no node that it could lead to.' } : {})}
      >
        <Select
          value={chosen ? target : ''}
          onChange={setTarget}
          empty="Choose a node"
          choices={possible.map((one) => ({ value: one.id, label: `${nameNode(one)} (${one.id})` }))}
        />
      </Field>
      <div className="row">
        <Button type="submit" look="primary" disabled={!chosen}>
          Connect
        </Button>
      </div>
    </form>
  )
}

function Loop({ draft, node, acts }: PartProps) {
  const own = withChildren(draft.nodes, [node.id])
  const loops = draft.nodes.filter(({ id, type }) => isLoop(type) && !own.has(id))
  if (loops.length === 0 && !node.parentId) return null
  return (
    <Field label="Stands in" help="Connections over the border of a loop are removed.">
      <Select
        value={node.parentId ?? ''}
        onChange={(parent) => acts.putInto(new Set([node.id]), parent || undefined)}
        empty="No loop"
        choices={loops.map((loop) => ({ value: loop.id, label: nameNode(loop) }))}
      />
    </Field>
  )
}
