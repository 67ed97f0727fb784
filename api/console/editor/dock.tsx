import { lazy, Suspense, useMemo } from 'react'
import { Loading } from '../kit/states.tsx'
import type { NodeEdit } from '../nodeform/contract.ts'
import { replaceNode } from './graph/edits.ts'
import { faultsOf } from './graph/faults.ts'
import { isExecutable } from './graph/kinds.ts'
import type { EditorNode } from './graph/model.ts'
import { type EditorStore, findOpen, useEditor } from './graph/store.ts'

const NodePanel = lazy(async () => ({ default: (await import('../nodeform/panel.tsx')).NodePanel }))
const SettingsPanel = lazy(async () => ({
  default: (await import('../nodeform/settings.tsx')).SettingsPanel,
}))

type DockProps = {
  store: EditorStore
  teamId: string
  workflowId: string | undefined
  readOnly: boolean
  onClosed: (id: string) => void
  onExecuteTo: (id: string) => void
}

const DOCK = 'node-dock'

/** Takes the keyboard to the panel, once it is drawn. A node that is only selected keeps the keyboard itself. */
export function focusDock(): void {
  requestAnimationFrame(() => document.getElementById(DOCK)?.focus({ preventScroll: true }))
}

/** Beside the canvas: the settings of the node that is open, or of the workflow. */
export function Dock(props: DockProps) {
  const { store } = props
  const panel = useEditor(store, (state) => state.panel)
  const open = useEditor(store, findOpen)
  const node = useEditor(store, ({ draft }) => draft.nodes.find(({ id }) => id === open))
  if (!panel) return null
  return (
    <div className="node-dock" id={DOCK} tabIndex={-1}>
      <Suspense fallback={<Loading />}>
        {node ? <OfNode {...props} node={node} /> : <OfWorkflow {...props} />}
      </Suspense>
    </div>
  )
}

function OfNode({ store, onClosed, onExecuteTo, node, ...given }: DockProps & { node: EditorNode }) {
  const draft = useEditor(store, (state) => state.draft)
  const faults = useEditor(store, (state) => state.faults)
  const own = useMemo(() => faultsOf(faults, node.id), [faults, node.id])
  /** Several edits may come before the next drawing: each is made of what the one before has left. */
  const edit = (make: NodeEdit) => {
    const { draft: now } = store.get()
    const before = now.nodes.find(({ id }) => id === node.id)
    return before ? replaceNode(now, node.id, make(before) as EditorNode) : now
  }
  return (
    <NodePanel
      {...given}
      node={node}
      graph={draft}
      faults={own}
      {...(!given.readOnly && isExecutable(node) ? { onExecuteTo: () => onExecuteTo(node.id) } : {})}
      onEdit={(make) => store.edit(edit(make), { key: `node ${node.id}` })}
      onRename={(id) => {
        const edited = edit((now) => ({ ...now, id }))
        const renamed = edited.nodes.some((one) => one.id === id)
        store.edit(edited, {
          key: `node ${node.id}`,
          ...(renamed ? { selected: new Set([id]) } : {}),
        })
      }}
      onClose={() => {
        store.set({ panel: undefined })
        onClosed(node.id)
      }}
    />
  )
}

function OfWorkflow({ store, onClosed: _, onExecuteTo: __, ...given }: DockProps) {
  const settings = useEditor(store, ({ draft }) => draft.settings)
  const faults = useEditor(store, (state) => state.faults)
  return (
    <SettingsPanel
      {...given}
      settings={settings}
      faults={faults.filter(({ path }) => path.startsWith('settings.'))}
      onEdit={(make) => {
        const { draft } = store.get()
        store.edit({ ...draft, settings: make(draft.settings) }, { key: 'settings' })
      }}
      onClose={() => store.set({ panel: undefined })}
    />
  )
}
