import { useEffect, useRef } from 'react'
import { notify } from '../kit/notices.tsx'
import type { Acts } from './graph/acts.ts'
import type { EditorStore } from './graph/store.ts'

export type KeyDeeds = {
  onSave: () => void
  onAdd: (id: string | undefined) => void
  onNote: () => void
  onOpen: (id: string) => void
  onConnect: (id: string) => void
  onExecuteTo: (id: string) => void
  onFit: () => void
  onEscape: () => void
  onPaste: (text: string) => void
}

/** Every key of the canvas, for its help. */
export const KEYS: [string, string][] = [
  ['Tab', 'Go from node to node'],
  ['Enter', 'Open the settings of a node, write in a note'],
  ['Escape', 'Close the settings, choose nothing'],
  ['a', 'Add a node after the chosen one'],
  ['c', 'Connect the chosen node, or put it into a loop'],
  ['e', 'Execute to the chosen node'],
  ['↑ ↓ ← →', 'Move what is chosen'],
  ['d', 'Disable or enable'],
  ['Delete', 'Remove'],
  ['n', 'Add a note'],
  ['l', 'Lay out the graph'],
  ['f', 'Fit the graph into the view'],
  ['Ctrl A', 'Choose all'],
  ['Ctrl C', 'Copy; Ctrl X cuts, Ctrl V pastes, also into another workflow and from n8n'],
  ['Ctrl D', 'Duplicate'],
  ['Ctrl Z', 'Undo; Ctrl Shift Z redoes'],
  ['Ctrl S', 'Save'],
]

/** Whether what is typed or copied goes somewhere else: into a field, a dialog, a menu or the panel. */
function isElsewhere(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false
  const other = 'input, textarea, select, [role=dialog], [role=menu], .cm-editor, .node-dock, nav'
  return target.isContentEditable || target.closest(other) !== null
}

/** Escape closes the panel from within it too, unless something in it, such as a list of completions, has used the key. */
function isPanel(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest('.node-dock') !== null
}

function nodeIdOf(target: EventTarget | null): string | undefined {
  const { id, type } = readNode(target)
  return type ? id : undefined
}

function readNode(target: EventTarget | null) {
  const element = target instanceof Element ? target.closest<HTMLElement>('.react-flow__node') : null
  const type = element?.classList.contains('react-flow__node-note') ? 'note' : element ? 'step' : undefined
  return { id: element?.dataset.id, type, element }
}

/** The keys and the clipboard of the canvas. */
export function useKeys(
  store: EditorStore,
  acts: Acts,
  deeds: KeyDeeds,
  readOnly: boolean,
  on: boolean,
): void {
  const latest = useRef({ deeds, readOnly, on })
  useEffect(() => {
    latest.current = { deeds, readOnly, on }
  })
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const { deeds: now, readOnly: locked, on: shown } = latest.current
      const key = event.key.length === 1 ? event.key.toLowerCase() : event.key
      const mod = event.ctrlKey || event.metaKey
      if (event.defaultPrevented || event.altKey) return
      const done = () => event.preventDefault()
      if (mod && key === 's') {
        done()
        if (!locked && !document.querySelector('[role=dialog]')) now.onSave()
        return
      }
      if (key === 'Escape' && isPanel(event.target)) return now.onEscape()
      if (isElsewhere(event.target)) return
      if (mod) {
        if (locked) return
        if (key === 'z') event.shiftKey ? store.redo() : store.undo()
        else if (key === 'y') store.redo()
        else if (key === 'd' && shown) acts.duplicate()
        else if (key === 'a' && shown) acts.selectAll()
        else return
        return done()
      }
      if (!shown) return
      const id = nodeIdOf(event.target)
      const only = id ?? acts.anchor()?.id
      if (key === 'Enter' && id) {
        const { type, element } = readNode(event.target)
        if (type === 'note') {
          element?.querySelector('.note')?.dispatchEvent(new MouseEvent('dblclick', { bubbles: true }))
        } else now.onOpen(id)
        return done()
      }
      if (key === 'Escape') return now.onEscape()
      // A button has keys of its own.
      if (key === 'f') return now.onFit()
      if (locked) return
      if (key === 'a') now.onAdd(id)
      else if (key === 'c' && only && acts.nodeOf(only)) now.onConnect(only)
      else if (key === 'e' && only && acts.nodeOf(only)) now.onExecuteTo(only)
      else if (key === 'd') acts.disable()
      else if (key === 'n') now.onNote()
      else if (key === 'l') acts.arrange()
      else if (key === 'Delete' || key === 'Backspace') acts.remove()
      else return
      done()
    }
    // A user who comes to a node by Tab works with it.
    const focus = (event: FocusEvent) => {
      const { id } = readNode(event.target)
      if (!id || event.target !== readNode(event.target).element) return
      if (!(event.target as HTMLElement).matches(':focus-visible')) return
      if (!store.get().selected.has(id)) store.set({ selected: new Set([id]) })
    }
    const copy = (event: ClipboardEvent) => {
      if (!latest.current.on || isElsewhere(event.target) || !getSelection()?.isCollapsed) return
      const text = acts.copy()
      if (!text) return
      event.clipboardData?.setData('text/plain', text)
      event.preventDefault()
      if (event.type === 'cut' && !latest.current.readOnly) acts.remove()
      else notify('Copied')
    }
    const paste = (event: ClipboardEvent) => {
      const { on: shown, readOnly: locked } = latest.current
      if (!shown || locked || isElsewhere(event.target)) return
      const text = event.clipboardData?.getData('text/plain') ?? ''
      event.preventDefault()
      latest.current.deeds.onPaste(text)
    }
    addEventListener('keydown', press)
    addEventListener('focusin', focus)
    document.addEventListener('copy', copy)
    document.addEventListener('cut', copy)
    document.addEventListener('paste', paste)
    return () => {
      removeEventListener('keydown', press)
      removeEventListener('focusin', focus)
      document.removeEventListener('copy', copy)
      document.removeEventListener('cut', copy)
      document.removeEventListener('paste', paste)
    }
  }, [store, acts])
}
