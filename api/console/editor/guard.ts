import { useEffect } from 'react'
import { go, guardLeaving } from '../kit/address.ts'
import { useConfirm } from '../kit/overlays/confirm.tsx'
import { findStore } from './graph/save.ts'
import { type EditorStore, isDirty } from './graph/store.ts'

function pathIn(hash: string): string {
  return hash.replace(/^#/, '').split('?')[0] ?? ''
}

/** Asks before the page is left with unsaved changes, whether by a link, the browser's back, or a closed tab. */
export function useLeaveGuard(store: EditorStore): void {
  const confirm = useConfirm()
  useEffect(() => {
    const here = location.hash
    const isUnsaved = () => isDirty(store.get())
    const stay = (event: BeforeUnloadEvent) => {
      if (isUnsaved()) event.preventDefault()
    }
    const ask = (wanted: string) =>
      confirm({
        title: 'Leave without saving?',
        text: 'What you have changed in this workflow since it was saved will be lost.',
        label: 'Discard the changes',
        danger: true,
        work: async () => {
          store.set({ saved: store.get().draft })
          setTimeout(() => go(wanted))
        },
      })
    // A new workflow that was saved is edited on at its own address.
    const stops = (wanted: string) =>
      isUnsaved() &&
      pathIn(wanted) !== pathIn(here) &&
      findStore(pathIn(wanted).split('/').at(-2) ?? '') !== store
    const release = guardLeaving((wanted) => {
      if (!stops(wanted)) return true
      ask(wanted)
      return false
    })
    // The browser's back and what is typed into its address bar: the router is not told of it.
    const turn = (event: HashChangeEvent) => {
      const wanted = location.hash.slice(1)
      if (!stops(wanted)) return
      event.stopImmediatePropagation()
      history.replaceState(history.state, '', here)
      ask(wanted)
    }
    addEventListener('beforeunload', stay)
    addEventListener('hashchange', turn, { capture: true })
    return () => {
      release()
      removeEventListener('beforeunload', stay)
      removeEventListener('hashchange', turn, { capture: true })
    }
  }, [store, confirm])
}
