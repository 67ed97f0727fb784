import { Link } from 'wouter'
import { Button } from '../kit/controls/button.tsx'
import { Switch } from '../kit/controls/input.tsx'
import { notify, notifyError } from '../kit/notices.tsx'
import { useWorkflow } from '../workflows/data.ts'
import { hasMovedOn } from '../workflows/versions/data.ts'
import { saveWorkflow } from './data.ts'
import { keepProblems, liveOf } from './graph/save.ts'
import { type EditorStore, isDirty, type Live, useEditor } from './graph/store.ts'

type StandingProps = { store: EditorStore; id: string | undefined; readOnly: boolean }

/** Beside the name: whether what one sees is live, and what is. */
export function Standing({ store, id, readOnly }: StandingProps) {
  const dirty = useEditor(store, isDirty)
  const { live, known } = useNewest(store, id)
  const drafted = known !== null && known.version !== known.publishedVersion
  const [own, rest] = live ? tellStanding(live, dirty, drafted) : [dirty ? 'Not saved yet' : 'Saved', '']
  return (
    <span className="editor-state" role="status">
      <span className={dirty || drafted ? 'editor-own' : undefined}>{own}</span>
      <span className="quiet">{[readOnly ? 'Read-only' : '', rest].filter(Boolean).join('. ')}</span>
    </span>
  )
}

function tellStanding(
  { active, publishedVersion: version }: Live,
  dirty: boolean,
  drafted: boolean,
): [string, string] {
  const published = active ? `Live is version ${version}` : `Published is version ${version}, inactive`
  if (dirty) return ['Unsaved changes', published]
  if (drafted) return ['Draft, not live', published]
  return active ? [`Live: version ${version}`, ''] : [`Version ${version}`, 'inactive']
}

/**
 * Which versions there are, as the service said last. `known` is what the page has been made of: it differs if the
 * workflow was changed elsewhere, in another tab or by another user.
 */
function useNewest(store: EditorStore, id: string | undefined): { live: Live | null; known: Live | null } {
  const known = useEditor(store, ({ live }) => live)
  const { data, dataUpdatedAt } = useWorkflow(id ?? '', { watched: true })
  if (!known || !data || dataUpdatedAt <= known.at) return { live: known, known }
  return { live: liveOf(data), known }
}

type NewsProps = { store: EditorStore; id: string; onLoad: () => void }

/** Says that the draft or what is live has been changed elsewhere. */
export function News({ store, id, onLoad }: NewsProps) {
  const { live, known } = useNewest(store, id)
  if (!live || !known) return null
  const changed = tellChanged(live, known)
  const { draftVersion: draft, publishedVersion: published } = live
  const moved = hasMovedOn(live)
  if (!changed && !moved) return null
  return (
    <p className="editor-news" role="status">
      {changed ||
        `Version ${published} was published after this draft began. Publishing the draft replaces it.`}
      {changed ? (
        <Button small onClick={onLoad} title="Ctrl Z brings yours back">
          Load it
        </Button>
      ) : (
        <Link className="linked" href={`/workflows/${id}/versions?version=${draft}&from=${published}`}>
          See the difference
        </Link>
      )}
    </p>
  )
}

function tellChanged(live: Live, known: Live): string {
  const sameDraft = live.draftVersion === known.draftVersion
  if (sameDraft && (live.draftVersion !== null || live.publishedVersion === known.publishedVersion)) return ''
  if (live.draftVersion !== null)
    return `The draft was saved elsewhere meanwhile: it is version ${live.draftVersion} now.`
  if (live.publishedVersion === known.publishedVersion) return 'The draft was discarded elsewhere meanwhile.'
  return `Version ${live.publishedVersion} was published elsewhere meanwhile.`
}

type ActiveProps = { store: EditorStore; id: string; readOnly: boolean; onAsk: () => void }

/** Whether triggers start the workflow: at once, of the graph that is published. Beside a draft one is asked which. */
export function ActiveTurn({ store, id, readOnly, onAsk }: ActiveProps) {
  const on = useEditor(store, ({ live }) => live?.active ?? false)
  const turn = async (next: boolean) => {
    const { live, saved, tag } = store.get()
    if (next && (isDirty(store.get()) || live?.draftVersion !== null)) return onAsk()
    try {
      const { body, tag: newer } = await saveWorkflow(id, { active: next }, tag)
      store.set({ tag: newer, live: liveOf(body) })
      notify(body.active ? 'Active: its triggers start executions' : 'Inactive')
    } catch (error) {
      if (saved) keepProblems(store, saved, error, 'switched on')
      notifyError(error)
    }
  }
  return (
    <span className="row editor-active">
      <Switch label="Active" checked={on} disabled={readOnly} onChange={(next) => void turn(next)} />
      <span aria-hidden="true">{on ? 'Active' : 'Inactive'}</span>
    </span>
  )
}
