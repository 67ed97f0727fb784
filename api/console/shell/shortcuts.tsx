import { useEffect, useRef } from 'react'
import { go } from '../kit/address.ts'
import { KeysDialog } from '../kit/overlays/keys.tsx'
import { NAV } from '../pages.tsx'

const CHORD_MS = 1_000

/** Whether what is typed goes somewhere else. */
function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false
  return (
    target.isContentEditable || target.closest('input, textarea, select, [role=dialog], [role=menu]') !== null
  )
}

/** The keys that work everywhere: Ctrl+K, ?, and g with the key of a page. */
export function useShortcuts({ onPalette, onHelp }: { onPalette: () => void; onHelp: () => void }): void {
  const latest = useRef({ onPalette, onHelp })
  useEffect(() => {
    latest.current = { onPalette, onHelp }
  })
  useEffect(() => {
    let chordAt = 0
    const press = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k') {
        event.preventDefault()
        latest.current.onPalette()
        return
      }
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return
      if (performance.now() - chordAt < CHORD_MS) {
        const page = NAV.find(({ nav }) => nav.key === event.key)
        chordAt = 0
        if (!page) return
        event.preventDefault()
        go(page.path)
      } else if (event.key === 'g') chordAt = performance.now()
      else if (event.key === '?') latest.current.onHelp()
      else if (event.key === '/') {
        const field = document.querySelector<HTMLElement>('main input[type=search]')
        if (!field) return
        event.preventDefault()
        field.focus()
      }
    }
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  }, [])
}

export function ShortcutHelp({ open, onClose }: { open: boolean; onClose: () => void }) {
  const keys: [string, string][] = [
    ['Ctrl K', 'Search pages, workflows, executions and commands'],
    ...NAV.flatMap(({ nav }): [string, string][] =>
      nav.key ? [[`g ${nav.key}`, `Go to ${nav.label}`]] : [],
    ),
    ['/', 'Go to the search field of a list'],
    ['↑ ↓', 'Go from row to row of a list (also j, k)'],
    ['Enter', 'Open a row'],
    ['Esc', 'Close a dialog or menu'],
    ['?', 'Show these keys'],
  ]
  return <KeysDialog open={open} onClose={onClose} title="Keyboard" keys={keys} />
}
