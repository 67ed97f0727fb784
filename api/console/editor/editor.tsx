import { useCallback, useMemo, useState } from 'react'
import { flushSync } from 'react-dom'
import { useQueryState } from '../kit/address.ts'
import { tellTarget, useAdding } from './adding.ts'
import { Canvas, useFocus } from './canvas/canvas.tsx'
import { Palette } from './canvas/palette.tsx'
import { Tools } from './canvas/tools.tsx'
import { Connections } from './connections.tsx'
import { Executing, Publishing } from './dialogs.tsx'
import { Dock, focusDock } from './dock.tsx'
import { createActs } from './graph/acts.ts'
import type { Target } from './graph/edits.ts'
import { pasteAny } from './graph/foreign.ts'
import { isTrigger } from './graph/kinds.ts'
import type { EditorNode } from './graph/model.ts'
import { findOpen, isDirty, useEditor } from './graph/store.ts'
import { useLeaveGuard } from './guard.ts'
import { Header } from './header.tsx'
import { HelpDialog } from './help.tsx'
import { JsonView } from './jsonview.tsx'
import { useKeys } from './keys.ts'
import { Listen } from './listen.tsx'
import { Problems } from './problems.tsx'
import { type EditorProps, useSaving } from './saving.ts'
import { useSight } from './sight.ts'
import { News } from './standing.tsx'

/** What one does with the draft on this page: adding, opening, connecting, saving. The keys do it too. */
function useEditing(props: EditorProps) {
  const { store, types, teamId, readOnly } = props
  const focus = useFocus()
  const acts = useMemo(() => createActs(store, types, focus), [store, types, focus])
  const sight = useSight()
  const adding = useAdding(store, types, acts, sight)
  const saving = useSaving(props)
  const [{ view }, setQuery] = useQueryState({ view: 'canvas' })
  const [connecting, setConnecting] = useState<string | null>(null)
  const [until, setUntil] = useState<string>()
  const { ask } = adding
  const { reveal } = sight
  const pick = useCallback(
    (next: Target) => {
      setConnecting(null)
      ask(next)
    },
    [ask],
  )
  const open = useCallback(
    (node: string) => {
      store.set({ selected: new Set([node]), panel: 'node' })
      reveal(node)
      focusDock()
    },
    [store, reveal],
  )
  /** Up to this node, or the outermost loop around it. */
  const executeTo = (node: string) => {
    const byId = new Map(store.get().draft.nodes.map((one) => [one.id, one]))
    let at = byId.get(node)
    while (at?.parentId && byId.has(at.parentId)) at = byId.get(at.parentId)
    if (at && !at.disabled && !isTrigger(at.type, types)) setUntil(at.id)
  }
  const show = (next: string) => setQuery({ view: next }, { replace: true })
  const addNote = () => acts.addNote(sight.centre())
  useKeys(
    store,
    acts,
    {
      onSave: () => void saving.saveHere(),
      onAdd: (node) => {
        if (node) store.set({ selected: new Set([node]) })
        // The next keys belong into its field, however fast they come: the canvas takes letters for commands.
        flushSync(() => ask('free'))
      },
      onNote: addNote,
      onOpen: open,
      onConnect: setConnecting,
      onExecuteTo: executeTo,
      onFit: sight.fit,
      onPaste: (text) => void pasteAny(store, acts, teamId, text),
      onEscape: () => {
        const open = findOpen(store.get())
        if (adding.target) adding.close()
        else if (store.get().panel) {
          store.set({ panel: undefined })
          if (open) focus(open)
        } else store.set({ selected: new Set() })
      },
    },
    readOnly,
    view === 'canvas',
  )
  return {
    ...{ acts, sight, adding, saving, view, show, focus, connecting, setConnecting, pick, open, addNote },
    ...{ until, setUntil, executeTo },
    jump: (node: string) => {
      show('canvas')
      open(node)
      sight.show(node)
    },
  }
}

type Editing = ReturnType<typeof useEditing>

/** The page around the canvas: what is added, what is open, what was refused. */
export function Editor(props: EditorProps) {
  const { store, types, id, teamId, readOnly } = props
  const editing = useEditing(props)
  const { acts, saving, view, focus, connecting, setConnecting } = editing
  const [shown, setShown] = useState<'execute' | 'help' | 'listen' | 'publish' | 'switch on' | null>(null)
  useLeaveGuard(store)
  const dirty = useEditor(store, isDirty)
  const called = useEditor(store, ({ saved }) => saved?.nodes.some(isCalled) ?? false)
  const close = useCallback(() => setShown(null), [])
  // Only versions are published: unsaved changes become one first.
  const publish = async (switchOn: boolean) => {
    if (await saving.saveFirst()) setShown(switchOn ? 'switch on' : 'publish')
  }
  return (
    <div className="full editor">
      <Header
        store={store}
        id={id}
        readOnly={readOnly}
        busy={saving.busy}
        view={view}
        onView={editing.show}
        onSave={() => void saving.saveHere()}
        onPublish={(switchOn) => void publish(switchOn)}
        onDiscard={saving.discard}
        onExecute={() => setShown('execute')}
        onListen={id && called ? () => setShown('listen') : undefined}
        onHelp={() => setShown('help')}
        onSettings={() => {
          store.set({ selected: new Set(), panel: 'workflow' })
          focusDock()
        }}
      />
      {id && !readOnly && <News store={store} id={id} onLoad={() => void saving.load()} />}
      <div className="editor-body">
        <div className="editor-canvas" ref={editing.sight.canvas}>
          <View {...props} editing={editing} />
          <Problems store={store} onJump={editing.jump} />
          {shown === 'listen' && id && <Listen store={store} id={id} teamId={teamId} onClose={close} />}
        </div>
        <Dock
          store={store}
          teamId={teamId}
          workflowId={id}
          readOnly={readOnly}
          onClosed={focus}
          onExecuteTo={editing.executeTo}
        />
      </div>
      {connecting && (
        <Connections
          store={store}
          acts={acts}
          types={types}
          id={connecting}
          onPick={editing.pick}
          onClose={() => {
            focus(connecting)
            setConnecting(null)
          }}
        />
      )}
      {(shown === 'execute' || editing.until) && (
        <Executing
          {...props}
          until={editing.until}
          save={(dirty || !id) && !readOnly ? saving.save : undefined}
          onClose={() => {
            editing.setUntil(undefined)
            close()
            saving.follow()
          }}
        />
      )}
      {(shown === 'publish' || shown === 'switch on') && id && (
        <Publishing {...props} id={id} switchOn={shown === 'switch on'} onClose={close} />
      )}
      <HelpDialog open={shown === 'help'} onClose={close} />
    </div>
  )
}

/** The draft as a canvas, with the palette over it, or as JSON. */
function View({ store, types, readOnly, editing }: EditorProps & { editing: Editing }) {
  const { acts, adding, open, view } = editing
  const { target } = adding
  if (view === 'json') return <JsonView store={store} types={types} readOnly={readOnly} />
  return (
    <>
      <Canvas store={store} types={types} acts={acts} readOnly={readOnly} onPick={editing.pick} onOpen={open}>
        <Tools
          store={store}
          acts={acts}
          readOnly={readOnly}
          onAdd={() => adding.ask('free')}
          onNote={editing.addNote}
          onOpen={open}
          onConnect={editing.setConnecting}
          onExecuteTo={editing.executeTo}
        />
      </Canvas>
      {target && view === 'canvas' && !readOnly && (
        <Palette
          types={types}
          where={tellTarget(target, acts)}
          triggers={target === 'free' || 'at' in target}
          onPick={adding.add}
          onClose={adding.close}
        />
      )}
    </>
  )
}

/** Whether calls from outside start executions at this node. */
function isCalled({ type, disabled }: EditorNode): boolean {
  return !disabled && (type === 'WEBHOOK_TRIGGER' || type === 'CHAT_TRIGGER')
}
