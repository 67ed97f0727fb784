import { useEffect } from 'react'
import { go } from '../kit/address.ts'
import { useConfirm } from '../kit/confirm.tsx'
import { type EditorStore, isDirty } from './graph/store.ts'

function pathIn(hash: string): string {
  return hash.replace(/^#/, '').split('?')[0] ?? ''
}

/** Asks before the page is left with unsaved changes, whether by a link, the browser's back, or a closed tab. */
export function useLeaveGuard(store: EditorStore, onDiscard: () => void): void {
  const confirm = useConfirm()
  useEffect(() => {
    const here = location.hash
    let leaving = false
    const isUnsaved = () => !leaving && isDirty(store.get())
    const stay = (event: BeforeUnloadEvent) => {
      if (isUnsaved()) event.preventDefault()
    }
    // Before the router hears of it: for all others the page has never been left.
    const turn = (event: HashChangeEvent) => {
      const wanted = location.hash
      if (!isUnsaved() || pathIn(wanted) === pathIn(here)) return
      event.stopImmediatePropagation()
      history.replaceState(history.state, '', here)
      confirm({
        title: 'Leave without saving?',
        text: 'What you have changed in this workflow since it was saved will be lost.',
        label: 'Discard the changes',
        danger: true,
        work: async () => {
          leaving = true
          onDiscard()
          setTimeout(() => go(wanted.slice(1)))
        },
      })
    }
    addEventListener('beforeunload', stay)
    addEventListener('hashchange', turn, { capture: true })
    return () => {
      removeEventListener('beforeunload', stay)
      removeEventListener('hashchange', turn, { capture: true })
    }
  }, [store, onDiscard, confirm])
}
