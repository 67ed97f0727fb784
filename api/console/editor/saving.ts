import { useState } from 'react'
import { isRefused, problemsOf } from '../data/refusal.ts'
import { go } from '../kit/address.ts'
import { notify, notifyError } from '../kit/notices.tsx'
import { useConfirm } from '../kit/overlays/confirm.tsx'
import type { NodeTypes } from './graph/kinds.ts'
import { moveStore, send } from './graph/save.ts'
import type { EditorStore } from './graph/store.ts'

export type EditorProps = {
  store: EditorStore
  types: NodeTypes
  id: string | undefined
  teamId: string
  active: boolean
  readOnly: boolean
  storeKey: string
}

/** Saves the draft. `save` throws what was refused; `saveHere` says it, and stays on the page. */
export function useSaving({ store, types, teamId, id, storeKey }: EditorProps) {
  const confirm = useConfirm()
  const [busy, setBusy] = useState(false)
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
  return { busy, save, saveHere: () => void saveHere() }
}
