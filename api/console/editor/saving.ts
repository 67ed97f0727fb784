import { useRef, useState } from 'react'
import { isRefused, problemsOf } from '../data/refusal.ts'
import { go } from '../kit/address.ts'
import { notify, notifyError } from '../kit/notices.tsx'
import { useConfirm } from '../kit/overlays/confirm.tsx'
import { discardDraft, readShown } from './data.ts'
import type { NodeTypes } from './graph/kinds.ts'
import { moveStore, type SaveOutcome, send, takeShown } from './graph/save.ts'
import { type EditorStore, isDirty } from './graph/store.ts'

export type EditorProps = {
  store: EditorStore
  types: NodeTypes
  id: string | undefined
  teamId: string
  readOnly: boolean
  storeKey: string
}

/** Saves what is edited. `save` throws what was refused; `saveHere` says it, and stays on the page. */
export function useSaving({ store, types, teamId, id, storeKey }: EditorProps) {
  const confirm = useConfirm()
  const [busy, setBusy] = useState(false)
  /** What a new workflow has become, before the page has gone to its address. */
  const made = useRef(id)
  const save = async (over = false): Promise<string> => {
    setBusy(true)
    try {
      const sent = await send(store, types, { teamId, id: made.current, over })
      made.current = sent.id
      notify(tellSaved(sent))
      return sent.id
    } finally {
      setBusy(false)
    }
  }
  /** Edits a new workflow that was saved on at its own address. */
  const follow = () => {
    if (id !== undefined || made.current === undefined) return
    if (!location.hash.startsWith('#/workflows/new')) return
    moveStore(storeKey, made.current)
    go(`/workflows/${made.current}/edit`, { replace: true })
  }
  /** Whether all is saved by now. */
  const saveHere = async (): Promise<boolean> => {
    if (busy) return false
    try {
      await save()
      follow()
      return true
    } catch (error) {
      if (isRefused(error, 412)) {
        confirm({
          title: 'Somebody else has saved this workflow',
          text: 'Its draft or its settings are not those that you began with. You can look at what they did under Versions. Saving yours makes a newer draft, and its name and settings count at once.',
          label: 'Save mine over it',
          danger: true,
          work: () => save(true),
        })
      } else if (problemsOf(error).length === 0) notifyError(error)
      else notify('Not saved: see what is wrong', 'bad')
      return false
    }
  }
  /** Shows what the service has; an undo brings back what was there before. */
  const load = async () => {
    try {
      takeShown(store, types, await readShown(id!))
    } catch (error) {
      notifyError(error)
    }
  }
  const discard = () => {
    const { live, tag } = store.get()
    confirm({
      title: 'Discard the draft?',
      text: `Version ${live?.publishedVersion} takes its place here, and stays published. The draft, version ${live?.draftVersion}, is found under Versions for a while.`,
      label: 'Discard the draft',
      danger: true,
      work: async () => {
        await discardDraft(id!, tag)
        await load()
        notify('The draft is discarded')
      },
    })
  }
  return {
    busy,
    save,
    follow,
    saveHere,
    load,
    discard,
    /** What cannot be saved cannot be published: it is said, and stays as it is. */
    saveFirst: async () => !isDirty(store.get()) || (await saveHere()),
  }
}

/** Says what came of a save, and what of it counts at once. */
function tellSaved({ warnings, before, live, atOnce }: SaveOutcome): string {
  const drafted = live.draftVersion !== null && live.draftVersion !== before?.draftVersion
  const said = [
    before && drafted ? 'Saved as a draft' : 'Saved',
    ...(atOnce ? [drafted ? 'the name and settings count at once' : 'it counts at once'] : []),
  ].join('; ')
  return warnings > 0 ? `${said}, with ${warnings} warnings` : said
}
