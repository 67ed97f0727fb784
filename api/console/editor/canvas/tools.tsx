import { Panel } from '@xyflow/react'
import { NOTE_COLOURS, type NoteColour } from '../../graph/notes.ts'
import { Button } from '../../kit/controls/button.tsx'
import { Select } from '../../kit/controls/input.tsx'
import { Menu } from '../../kit/overlays/menu.tsx'
import { nameConstant } from '../../kit/status.tsx'
import type { Acts } from '../graph/acts.ts'
import { isExecutable } from '../graph/kinds.ts'
import { type EditorStore, useEditor } from '../graph/store.ts'

type ToolsProps = {
  store: EditorStore
  acts: Acts
  readOnly: boolean
  onAdd: () => void
  onNote: () => void
  onOpen: (id: string) => void
  onConnect: (id: string) => void
  onExecuteTo: (id: string) => void
}

/** The tools of the canvas, and of the nodes that are chosen there. */
export function Tools({ store, acts, readOnly, onAdd, onNote, ...chosen }: ToolsProps) {
  const past = useEditor(store, (state) => state.past.length > 0)
  const future = useEditor(store, (state) => state.future.length > 0)
  if (readOnly) return null
  return (
    <>
      <Panel position="top-left" className="tools">
        <Button look="primary" icon="plus" onClick={onAdd} title="Add a node (a)">
          Add node
        </Button>
        <Button icon="edit" aria-label="Add a note (n)" onClick={onNote} />
        <Button icon="workflows" aria-label="Lay out the graph (l)" onClick={() => acts.arrange()} />
        <Button icon="undo" aria-label="Undo (Ctrl Z)" disabled={!past} onClick={store.undo} />
        <Button icon="redo" aria-label="Redo (Ctrl Shift Z)" disabled={!future} onClick={store.redo} />
      </Panel>
      <Chosen store={store} acts={acts} {...chosen} />
    </>
  )
}

function Chosen({
  store,
  acts,
  onOpen,
  onConnect,
  onExecuteTo,
}: Omit<ToolsProps, 'readOnly' | 'onAdd' | 'onNote'>) {
  const selected = useEditor(store, (state) => state.selected)
  const draft = useEditor(store, (state) => state.draft)
  if (selected.size === 0) return null
  const nodes = draft.nodes.filter(({ id }) => selected.has(id))
  const note = draft.notes.find(({ id }) => selected.has(id))
  const only = nodes.length === 1 && selected.size === 1 ? nodes[0] : undefined
  const off = nodes.length > 0 && nodes.every(({ disabled }) => disabled)
  return (
    <Panel position="top-right" className="tools chosen">
      {selected.size > 1 && <span className="quiet">{selected.size} chosen</span>}
      {only && (
        <Button small look="plain" icon="settings" onClick={() => onOpen(only.id)}>
          Open
        </Button>
      )}
      {only && (
        <Button small look="plain" icon="link" onClick={() => onConnect(only.id)}>
          Connect
        </Button>
      )}
      {note && selected.size === 1 && (
        <Select
          aria-label="Colour of the note"
          value={note.colour}
          onChange={(colour) => {
            const notes = draft.notes.map((one) =>
              one === note ? { ...one, colour: colour as NoteColour } : one,
            )
            store.edit({ ...draft, notes })
          }}
          choices={NOTE_COLOURS.map((value) => ({ value, label: nameConstant(value) }))}
        />
      )}
      <Button small look="plain" icon="trash" aria-label="Remove (Delete)" onClick={() => acts.remove()} />
      <Menu
        trigger={<Button small look="plain" icon="more" aria-label="More for what is chosen" />}
        items={[
          ...(only && isExecutable(only)
            ? [
                {
                  label: only.parentId ? 'Execute to its loop' : 'Execute to here',
                  icon: 'play' as const,
                  onClick: () => onExecuteTo(only.id),
                  end: <kbd>e</kbd>,
                },
              ]
            : []),
          { label: 'Duplicate', icon: 'copy', onClick: () => acts.duplicate(), end: <kbd>Ctrl D</kbd> },
          ...(nodes.length > 0
            ? [
                {
                  label: off ? 'Enable' : 'Disable',
                  icon: off ? ('play' as const) : ('pause' as const),
                  onClick: () => acts.disable(),
                  end: <kbd>d</kbd>,
                },
              ]
            : []),
          { label: 'Choose all', icon: 'check', onClick: () => acts.selectAll(), end: <kbd>Ctrl A</kbd> },
        ]}
      />
    </Panel>
  )
}
