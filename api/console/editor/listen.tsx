import { useEffect } from 'react'
import { Link } from 'wouter'
import { go } from '../kit/address.ts'
import { Button } from '../kit/controls/button.tsx'
import { CopyButton } from '../kit/controls/copy.tsx'
import { Refused } from '../kit/states.tsx'
import { Pill } from '../kit/status.tsx'
import { useWorkflow } from '../workflows/data.ts'
import { findHooks, type Hook, writeHookCurl } from '../workflows/hooks.ts'
import { type EditorStore, isDirty, useEditor } from './graph/store.ts'
import { useArrival, useListening } from './listening.ts'

/** The test addresses of an editor that was left open do not stay open for ever. */
const LISTEN_MS = 600_000

type ListenProps = { store: EditorStore; id: string; teamId: string; onClose: () => void }

/** Waits for a call from outside, with what to send it with, and opens the execution that it starts. */
export function Listen({ store, id, teamId, onClose }: ListenProps) {
  const { data: workflow } = useWorkflow(id)
  const dirty = useEditor(store, isDirty)
  const saved = useEditor(store, (state) => state.saved)
  const listening = useListening(id)
  const { ready, arrived } = useArrival(id, teamId)
  useEffect(() => {
    const timer = setTimeout(onClose, LISTEN_MS)
    return () => clearTimeout(timer)
  }, [onClose])
  useEffect(() => {
    // It does not leave a page with unsaved changes.
    if (arrived && !isDirty(store.get())) go(`/executions/${arrived.id}`)
  }, [arrived, store])
  const tested = saved ? findHooks({ id, teamId, nodes: saved.nodes }, 'hooks-test') : []
  const live = workflow?.active ? findHooks(workflow) : []
  const isReady = ready && listening.data !== undefined
  return (
    <section className="listen-dock" aria-label="Listening for a call">
      <div className="row">
        <span className="listen-sign" aria-hidden="true" />
        <strong role="status">
          {arrived ? 'A call has arrived' : isReady ? 'Listening for a call' : 'Getting ready'}
        </strong>
        <Button small look="plain" icon="close" aria-label="Stop listening" onClick={onClose} />
      </div>
      {listening.error && <Refused error={listening.error} />}
      {arrived ? (
        <Link className="linked" href={`/executions/${arrived.id}`}>
          Open the execution
        </Link>
      ) : (
        <>
          {tested.map((hook) => (
            <Line key={hook.node.id} hook={hook} name="Test" />
          ))}
          {live.map((hook) => (
            <Line key={hook.node.id} hook={hook} name="Live" />
          ))}
        </>
      )}
      <p className="quiet">
        {dirty ? 'Test calls execute what was saved last' : 'Test calls execute what is shown here'}
        {workflow?.active ? `; live ones version ${workflow.version}, which is published.` : '.'}
      </p>
    </section>
  )
}

function Line({ hook, name }: { hook: Hook; name: 'Test' | 'Live' }) {
  const curl = writeHookCurl(hook)
  const address = `the ${name.toLowerCase()} address`
  return (
    <div className="listen-line">
      <Pill tone={name === 'Live' ? 'warn' : undefined}>{name}</Pill>
      <code className="listen-curl">{curl}</code>
      <CopyButton text={hook.url} label={`Copy ${address}`} />
      <CopyButton text={curl} label={`Copy the curl command of ${address}`} />
    </div>
  )
}
