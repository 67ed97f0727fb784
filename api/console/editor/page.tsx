import { ReactFlowProvider } from '@xyflow/react'
import { useEffect, useMemo, useState } from 'react'
import { useParams } from 'wouter'
import { Loading, Refused } from '../kit/states.tsx'
import { useNodeTypes } from '../nodeform/data.ts'
import { useRole, useTeam } from '../shell/role.tsx'
import { type EditedWorkflow, useEditedWorkflow } from './data.ts'
import { Editor } from './editor.tsx'
import './editor.css'
import type { NodeTypes } from './graph/kinds.ts'
import { draftOf, forgetStore, liveOf, newDraft, openStore } from './graph/save.ts'
import { createStore, isDirty } from './graph/store.ts'

/** `/workflows/new`: a workflow that is not saved yet. */
export function NewWorkflowPage() {
  const { teamId } = useTeam()
  const types = useTypes()
  if (types.error) return <Refused error={types.error} />
  if (!types.map) return <Loading />
  return <Opened id={undefined} teamId={teamId} types={types.map} workflow={undefined} />
}

/** `/workflows/:id/edit` */
export function EditWorkflowPage() {
  const { id = '' } = useParams<{ id: string }>()
  const workflow = useEditedWorkflow(id)
  const types = useTypes()
  const error = workflow.error ?? types.error
  if (error) return <Refused error={error} />
  if (!workflow.data || !types.map) return <Loading />
  const { teamId } = workflow.data.published.body
  return <Opened key={id} id={id} teamId={teamId} types={types.map} workflow={workflow.data} />
}

function useTypes(): { map: NodeTypes | undefined; error: unknown } {
  const { data, error } = useNodeTypes()
  const map = useMemo(() => data && new Map(data.map((one) => [one.type, one])), [data])
  return { map, error }
}

type OpenedProps = {
  id: string | undefined
  teamId: string
  types: NodeTypes
  workflow: { published: EditedWorkflow; draft: EditedWorkflow | null } | undefined
}

function Opened({ id, teamId, types, workflow }: OpenedProps) {
  const key = id ?? `new ${teamId}`
  const builder = useRole(teamId)('BUILDER')
  const [store] = useState(() => {
    const shown = (builder && workflow?.draft) || workflow?.published
    const opened = openStore(key, () => {
      if (!shown) return createStore(newDraft(), undefined)
      const draft = draftOf(shown.body, types)
      return createStore(draft, draft, { tag: shown.tag, live: liveOf(shown.body) })
    })
    // A workflow that was just made has not been read yet.
    if (shown && opened.get().tag === null) opened.set({ tag: shown.tag })
    return opened
  })
  // A saved draft is read anew the next time; an unsaved one is kept, should the page be left by accident.
  useEffect(
    () => () => {
      if (!isDirty(store.get())) forgetStore(key, store)
    },
    [store, key],
  )
  const small = useSmall()
  return (
    <ReactFlowProvider>
      <Editor
        store={store}
        types={types}
        id={id}
        teamId={teamId}
        readOnly={!builder || small}
        storeKey={key}
      />
    </ReactFlowProvider>
  )
}

/** On a phone one looks at a graph; drawing needs room. */
function useSmall(): boolean {
  const [query] = useState(() => matchMedia('(max-width: 760px)'))
  const [small, setSmall] = useState(query.matches)
  useEffect(() => {
    const listen = () => setSmall(query.matches)
    query.addEventListener('change', listen)
    return () => query.removeEventListener('change', listen)
  }, [query])
  return small
}
