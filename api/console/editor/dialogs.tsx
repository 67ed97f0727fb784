import { ExecuteDialog } from '../executions/starts/execute.tsx'
import { notify, notifyError } from '../kit/notices.tsx'
import { useRole } from '../shell/role.tsx'
import { PublishDialog } from '../workflows/versions/publishing.tsx'
import { readShown } from './data.ts'
import { nameNode } from './graph/kinds.ts'
import { keepProblems, liveOf, settleSaved } from './graph/save.ts'
import type { EditorProps } from './saving.ts'

type ExecutingProps = EditorProps & {
  until: string | undefined
  save: (() => Promise<string>) | undefined
  onClose: () => void
}

/** Executes what one sees: what is not saved becomes the draft first. Those who may not build execute what is published. */
export function Executing({ store, id, teamId, until, save, onClose }: ExecutingProps) {
  const builder = useRole(teamId)('BUILDER')
  const { draft, live } = store.get()
  const node = draft.nodes.find((one) => one.id === until)
  const rest = `${live?.active ? 'Live' : 'Published'} is version ${live?.publishedVersion}.`
  const about =
    save && live
      ? `What you see is saved as a draft, and the draft is tried. ${rest}`
      : live && live.version !== live.publishedVersion
        ? `This tries the draft, version ${live.version}. ${rest}`
        : undefined
  return (
    <ExecuteDialog
      teamId={teamId}
      id={id}
      name={draft.name}
      nodes={draft.nodes}
      about={about}
      findVersion={() => (builder ? store.get().live?.version : undefined)}
      until={node && { id: node.id, name: nameNode(node) }}
      save={save}
      onClose={onClose}
    />
  )
}

type PublishingProps = EditorProps & { id: string; switchOn: boolean; onClose: () => void }

/** Publishes what is saved; what is wrong with it is marked on its nodes. */
export function Publishing({ store, types, id, switchOn, onClose }: PublishingProps) {
  const { draft, live } = store.get()
  /** Another version went live: the draft stays what one edits. */
  const keepDraft = async () => {
    const { body, tag } = await readShown(id)
    store.set({ tag, live: liveOf(body) })
  }
  return (
    <PublishDialog
      id={id}
      name={draft.name}
      known={live?.draftVersion ?? null}
      switchOn={switchOn}
      onClose={onClose}
      onPublished={(now) => {
        if (now.body.draftVersion !== null) return keepDraft().catch(notifyError)
        return settleSaved(store, types, draft, now)
      }}
      onProblems={(error) => {
        keepProblems(store, draft, error, 'published')
        notify('Not published: see what is wrong', 'bad')
      }}
    />
  )
}
