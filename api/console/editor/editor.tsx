import { useReactFlow } from '@xyflow/react'
import { useCallback, useMemo, useRef, useState } from 'react'
import { flushSync } from 'react-dom'
import { isRefused, problemsOf } from '../data/refusal.ts'
import { ExecuteDialog } from '../executions/starting/execute.tsx'
import { go, useQueryState } from '../kit/address.ts'
import { notify, notifyError } from '../kit/notices.tsx'
import { useConfirm } from '../kit/overlays/confirm.tsx'
import { Dialog } from '../kit/overlays/dialog.tsx'
import { Canvas, useFocus } from './canvas/canvas.tsx'
import { Palette } from './canvas/palette.tsx'
import { Tools } from './canvas/tools.tsx'
import { Connections } from './connections.tsx'
import { Dock } from './dock.tsx'
import { createActs } from './graph/acts.ts'
import type { Target } from './graph/edits.ts'
import { pasteAny } from './graph/foreign.ts'
import { isLoop, type NodeTypes, nameNode } from './graph/kinds.ts'
import type { EditorNode } from './graph/model.ts'
import { moveStore, send } from './graph/save.ts'
import { type EditorStore, isDirty, useEditor } from './graph/store.ts'
import { useLeaveGuard } from './guard.ts'
import { Header } from './header.tsx'
import { JsonView } from './jsonview.tsx'
import { KEYS, useKeys } from './keys.ts'
import { Listen } from './listen.tsx'
import { Problems } from './problems.tsx'

export type EditorProps = {
  store: EditorStore
  types: NodeTypes
  id: string | undefined
  teamId: string
  active: boolean
  readOnly: boolean
  storeKey: string
}

/** The page around the canvas: what is added, what is open, what was refused. */
export function Editor({ store, types, id, teamId, active, readOnly, storeKey }: EditorProps) {
  const flow = useReactFlow()
  const confirm = useConfirm()
  const focus = useFocus()
  const acts = useMemo(() => createActs(store, types, focus), [store, types, focus])
  const [{ view }, setQuery] = useQueryState({ view: 'canvas' })
  const [target, setTarget] = useState<Target | 'free' | null>(null)
  const [shown, setShown] = useState<'execute' | 'help' | 'listen' | null>(null)
  const [connecting, setConnecting] = useState<string | null>(null)
  const [busy, setBusy] = useState(false)
  const canvas = useRef<HTMLDivElement>(null)
  useLeaveGuard(store)

  const pick = useCallback((next: Target) => {
    setConnecting(null)
    setTarget(next)
  }, [])
  const centre = () => {
    const { left, top, width, height } = canvas.current!.getBoundingClientRect()
    return flow.screenToFlowPosition({ x: left + width / 2 - 100, y: top + height / 2 - 30 })
  }
  /** Behind the chosen node, into the chosen empty loop, else into the middle of what one sees. */
  const resolve = (wanted: Target | 'free', type: string): Target => {
    if (wanted !== 'free') return wanted
    const anchor = acts.anchor()
    if (!anchor || types.get(type)?.kind === 'trigger') return { at: centre(), free: true }
    const { nodes } = store.get().draft
    const empty = isLoop(anchor.type) && !nodes.some(({ parentId }) => parentId === anchor.id)
    return empty ? { inside: anchor.id } : { after: acts.freeEnd(anchor) }
  }
  // What is new, and what the panel would cover, is brought into sight.
  const reveal = useCallback(
    (node: string) => {
      const look = () => {
        const shown = flow.getInternalNode(node)
        if (!shown || !canvas.current) return
        const { x, y } = shown.internals.positionAbsolute
        const at = flow.flowToScreenPosition({ x: x + (shown.width ?? 0), y })
        const { left, right, top, bottom } = canvas.current.getBoundingClientRect()
        if (at.x > left + 100 && at.x < right && at.y > top && at.y < bottom - 60) return
        void flow.setCenter(x + 100, y + 30, { zoom: flow.getZoom(), duration: 200 })
      }
      requestAnimationFrame(() => requestAnimationFrame(look))
    },
    [flow],
  )
  const add = (type: string) => {
    reveal(acts.add(type, resolve(target ?? 'free', type)))
    setTarget(null)
  }
  const open = useCallback(
    (node: string) => {
      store.set({ open: node, selected: new Set([node]) })
      reveal(node)
    },
    [store, reveal],
  )
  const jump = (node: string) => {
    setQuery({ view: 'canvas' }, { replace: true })
    open(node)
    void flow.fitView({ nodes: [{ id: node }], maxZoom: 1, duration: 200 })
  }

  const save = async (over = false): Promise<string> => {
    setBusy(true)
    try {
      const saved = await send(store, types, { teamId, id, over })
      notify(saved.warnings > 0 ? `Saved, with ${saved.warnings} warnings` : 'Saved')
      return saved.id
    } finally {
      setBusy(false)
    }
  }
  const follow = (made: string) => {
    if (id !== undefined) return
    moveStore(storeKey, made)
    go(`/workflows/${made}/edit`, { replace: true })
  }
  const saveHere = async () => {
    if (busy) return
    try {
      follow(await save())
    } catch (error) {
      if (isRefused(error, 412)) {
        confirm({
          title: 'Somebody else has saved this workflow',
          text: 'You can look at what they did under Versions. Saving yours makes a newer version of it.',
          label: 'Save mine over it',
          danger: true,
          work: () => save(true),
        })
      } else if (problemsOf(error).length === 0) notifyError(error)
      else notify('Not saved: see what is wrong', 'bad')
    }
  }
  const fit = () => void flow.fitView({ padding: 0.16, maxZoom: 1, duration: 200 })
  const addNote = () => acts.addNote(centre())
  useKeys(
    store,
    acts,
    {
      onSave: () => void saveHere(),
      onAdd: (node) => {
        if (node) store.set({ selected: new Set([node]) })
        // What is typed next belongs into its field, however fast it comes: a canvas takes letters for commands.
        flushSync(() => setTarget('free'))
      },
      onNote: addNote,
      onOpen: open,
      onConnect: setConnecting,
      onFit: fit,
      onPaste: (text) => void pasteAny(store, acts, teamId, text),
      onEscape: () => {
        if (target) setTarget(null)
        else store.set({ selected: new Set(), open: undefined, settings: false })
      },
    },
    readOnly,
    view === 'canvas',
  )
  const dirty = useEditor(store, isDirty)
  const called = useEditor(store, ({ saved }) => saved?.nodes.some(isCalled) ?? false)
  const stopListening = useCallback(() => setShown(null), [])
  return (
    <div className="full editor">
      <Header
        store={store}
        id={id}
        active={active}
        readOnly={readOnly}
        busy={busy}
        view={view}
        onView={(next) => setQuery({ view: next }, { replace: true })}
        onSave={() => void saveHere()}
        onExecute={() => setShown('execute')}
        onListen={id && called ? () => setShown('listen') : undefined}
        onHelp={() => setShown('help')}
        onSettings={() => store.set({ open: undefined, settings: true })}
      />
      <div className="editor-body">
        <div className="editor-canvas" ref={canvas}>
          {view === 'json' ? (
            <JsonView store={store} types={types} readOnly={readOnly} />
          ) : (
            <Canvas store={store} types={types} acts={acts} readOnly={readOnly} onPick={pick} onOpen={open}>
              <Tools
                store={store}
                acts={acts}
                readOnly={readOnly}
                onAdd={() => setTarget('free')}
                onNote={addNote}
                onOpen={open}
                onConnect={setConnecting}
              />
            </Canvas>
          )}
          {target && view === 'canvas' && !readOnly && (
            <Palette
              types={types}
              where={tellTarget(target, acts.anchor(), acts.nodeOf)}
              triggers={target === 'free' || 'at' in target}
              onPick={add}
              onClose={() => setTarget(null)}
            />
          )}
          <Problems store={store} onJump={jump} />
          {shown === 'listen' && id && (
            <Listen store={store} id={id} teamId={teamId} onClose={stopListening} />
          )}
        </div>
        <Dock store={store} teamId={teamId} workflowId={id} readOnly={readOnly} onClosed={focus} />
      </div>
      {connecting && (
        <Connections
          store={store}
          acts={acts}
          types={types}
          id={connecting}
          onPick={pick}
          onClose={() => {
            focus(connecting)
            setConnecting(null)
          }}
        />
      )}
      {shown === 'execute' && (
        <ExecuteDialog
          open
          teamId={teamId}
          id={id}
          name={store.get().draft.name}
          save={dirty && !readOnly ? save : undefined}
          onClose={() => setShown(null)}
        />
      )}
      <Dialog open={shown === 'help'} onClose={() => setShown(null)} title="Keys of the canvas">
        <dl className="keys">
          {KEYS.map(([key, text]) => (
            <div key={key}>
              <dt>
                {key.split(' ').map((one) => (
                  <kbd key={one}>{one}</kbd>
                ))}
              </dt>
              <dd>{text}</dd>
            </div>
          ))}
        </dl>
      </Dialog>
    </div>
  )
}

/** Whether calls from outside start executions at this node. */
function isCalled({ type, disabled }: EditorNode): boolean {
  return !disabled && (type === 'WEBHOOK_TRIGGER' || type === 'CHAT_TRIGGER')
}

function tellTarget(
  target: Target | 'free',
  anchor: EditorNode | undefined,
  nodeOf: (id: string) => EditorNode | undefined,
): string {
  const name = (id: string) => nameNode(nodeOf(id) ?? { id })
  if (target === 'free') return anchor ? `After ${nameNode(anchor)}` : 'Onto the canvas'
  if ('after' in target && target.after) {
    const { id, handle } = target.after
    return `After ${name(id)}${handle ? `, ${handle}` : ''}`
  }
  if ('edge' in target) return `Between ${name(target.edge.source)} and ${name(target.edge.target)}`
  return 'inside' in target ? `Inside ${name(target.inside)}` : 'Onto the canvas'
}
