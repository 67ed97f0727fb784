import { useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { Link } from 'wouter'
import { listExecutions } from '../executions/data.ts'
import { go } from '../kit/address.ts'
import { Button } from '../kit/controls/button.tsx'
import { CopyButton } from '../kit/controls/copy.tsx'
import { Pill } from '../kit/status.tsx'
import { useWorkflow } from '../workflows/data.ts'
import { findHooks, writeHookCurl } from '../workflows/hooks.ts'
import { type EditorStore, isDirty, useEditor } from './graph/store.ts'

const POLL_MS = 1_000
/** Who forgets it does not ask the service for ever. */
const LISTEN_MS = 600_000

type ListenProps = { store: EditorStore; id: string; teamId: string; onClose: () => void }

/** Waits for a call from outside, with what to send it with, and opens the execution that it starts. */
export function Listen({ store, id, teamId, onClose }: ListenProps) {
  const { data: workflow } = useWorkflow(id)
  const dirty = useEditor(store, isDirty)
  const { ready, arrived } = useArrival(id, teamId)
  useEffect(() => {
    const timer = setTimeout(onClose, LISTEN_MS)
    return () => clearTimeout(timer)
  }, [onClose])
  useEffect(() => {
    // An unsaved draft is not left for it.
    if (arrived && !isDirty(store.get())) go(`/executions/${arrived.id}`)
  }, [arrived, store])
  const hooks = workflow ? findHooks(workflow) : []
  return (
    <section className="listen-dock" aria-label="Listening for a call">
      <div className="row">
        <span className="listen-sign" aria-hidden="true" />
        <strong role="status">
          {arrived ? 'A call has arrived' : ready ? 'Listening for a call' : 'Getting ready'}
        </strong>
        {workflow && !workflow.active && <Pill tone="warn">Switch the workflow to active first</Pill>}
        <Button small look="plain" icon="close" aria-label="Stop listening" onClick={onClose} />
      </div>
      {arrived ? (
        <Link className="linked" href={`/executions/${arrived.id}`}>
          Open the execution
        </Link>
      ) : (
        hooks.map((hook) => (
          <div key={hook.node.id} className="listen-line">
            <code className="listen-curl">{writeHookCurl(hook)}</code>
            <CopyButton text={hook.url} label="Copy the address" />
            <CopyButton text={writeHookCurl(hook)} label="Copy the curl command" />
          </div>
        ))
      )}
      {workflow && (dirty || workflow.draftVersion !== null) && (
        <p className="quiet">
          Calls start version {workflow.version}, which is published, and not the draft.
        </p>
      )}
    </section>
  )
}

/** The first execution that was not there when one began to listen. */
function useArrival(workflowId: string, teamId: string) {
  const [before, setBefore] = useState<ReadonlySet<string>>()
  const found = useQuery({
    queryKey: ['executions', 'arrival', workflowId],
    queryFn: ({ signal }) => listExecutions(teamId, { workflowId, size: 20 }, signal),
    refetchInterval: POLL_MS,
    gcTime: 0,
    staleTime: 0,
  })
  const content = found.data?.content
  useEffect(() => {
    if (content) setBefore((known) => known ?? new Set(content.map((one) => one.id)))
  }, [content])
  const arrived = before && content?.findLast((one) => !before.has(one.id))
  return { ready: before !== undefined, arrived }
}
