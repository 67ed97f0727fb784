import { useState } from 'react'
import { Code } from '../../kit/code/code.tsx'
import { Button } from '../../kit/controls/button.tsx'
import { copyText } from '../../kit/controls/copy.tsx'
import { Field } from '../../kit/controls/field.tsx'
import { notify } from '../../kit/notices.tsx'
import { FormDialog } from '../../kit/overlays/dialog.tsx'
import { Age, Until } from '../../kit/time.tsx'
import type { RecordState } from '../records.ts'
import { readJson } from '../starts/dialog.tsx'
import { nameRecord } from '../tree.ts'
import type { Approval } from './data.ts'
import { Decide, nameApproval, useDecide } from './decide.tsx'
import { sendEvent, type Wait, writeResumeCurl } from './waits.ts'

type WaitingProps = {
  executionId: string
  approvals: readonly Approval[]
  more: number
  waits: readonly Wait[]
  records: readonly RecordState[]
  now: number
  onShow: (wait: Shown) => void
}

type Shown = { nodeId: string; iteration: string | null; step?: number | null }

/** How many nodes that wait for a time, or for their next attempt, have a line. */
const MOST_TIMED = 5

/** What the execution waits for, with what brings it on: one line each. */
export function Waiting({ executionId, approvals, more, waits, records, now, onShow }: WaitingProps) {
  const { onDecide, dialog } = useDecide()
  const events = waits.filter(({ kind }) => kind !== 'APPROVAL')
  const timed = records.filter(isTimed)
  return (
    <>
      {dialog}
      {approvals.length + events.length + timed.length > 0 && (
        <section className="waiting" aria-label="Waits for">
          <ul>
            {approvals.map((approval) => (
              <li key={approval.id} className="asked">
                <button type="button" className="waiting-what" onClick={() => onShow(approval)}>
                  <span className="name">{approval.message ?? nameApproval(approval)}</span>
                  <span className="quiet">
                    Approval at {nameApproval(approval)}, asked <Age at={approval.createdAt} />
                    {approval.deadline && (
                      <>
                        , until <Until at={approval.deadline} now={now} />
                      </>
                    )}
                  </span>
                </button>
                <Decide approval={approval} onDecide={onDecide} />
              </li>
            ))}
            {events.map((wait) => (
              <li key={wait.id}>
                <button type="button" className="waiting-what" onClick={() => onShow(wait)}>
                  <span className="name">
                    {wait.kind === 'FORM' ? (
                      'Waits for a form'
                    ) : (
                      <>
                        Waits for the event <code>{wait.name}</code>
                      </>
                    )}
                  </span>
                  <span className="quiet">
                    At {nameWait(wait)}, since <Age at={wait.createdAt} />
                    {wait.deadline && (
                      <>
                        , until <Until at={wait.deadline} now={now} />
                      </>
                    )}
                  </span>
                </button>
                {wait.kind === 'FORM' ? (
                  <FormActs wait={wait} />
                ) : (
                  <EventActs executionId={executionId} wait={wait} />
                )}
              </li>
            ))}
            {timed.slice(0, MOST_TIMED).map((record) => (
              <li key={record.id}>
                <button type="button" className="waiting-what" onClick={() => onShow(record)}>
                  <span className="name">
                    {record.nextAttemptAt
                      ? `Waits for attempt ${record.retryCount + 2} of ${nameRecord(record)}`
                      : `Waits at ${nameRecord(record)}`}
                    {record.iteration !== null && <span className="quiet"> #{record.iteration}</span>}
                  </span>
                  <span className="quiet">
                    {record.nextAttemptAt ? 'Comes ' : 'Until '}
                    <Until at={(record.nextAttemptAt ?? record.waitingUntil)!} now={now} />
                  </span>
                </button>
              </li>
            ))}
          </ul>
          {more > 0 && <p className="quiet">{more} more approvals</p>}
          {timed.length > MOST_TIMED && (
            <p className="quiet">{(timed.length - MOST_TIMED).toLocaleString()} more nodes wait for a time</p>
          )}
        </section>
      )}
    </>
  )
}

/** Whether a node waits for a time or for its next attempt: pauses have a line of their own. */
function isTimed({ status, nodeType, nextAttemptAt, waitingUntil }: RecordState): boolean {
  if (status !== 'RUNNING') return false
  return nextAttemptAt !== null || (nodeType === 'WAIT' && waitingUntil !== null)
}

function nameWait({ nodeName, nodeId, iteration }: Wait): string {
  const name = nodeName && !['WAIT_FOR_EVENT', 'FORM'].includes(nodeName) ? nodeName : nodeId
  return iteration === null ? name : `${name} #${iteration}`
}

/** Leads to the page that a node waits for. */
function FormActs({ wait }: { wait: Wait }) {
  if (!wait.resumeUrl) return null
  return (
    <div className="row">
      <a className="linked" href={wait.resumeUrl} target="_blank" rel="noopener noreferrer">
        Open the page
      </a>
      <Button small icon="link" onClick={() => void copyText(wait.resumeUrl!)}>
        Copy URL
      </Button>
    </div>
  )
}

/** Sends the event that a node waits for, or gives away how others may. */
export function EventActs({ executionId, wait }: { executionId: string; wait: Wait }) {
  const [open, setOpen] = useState(false)
  const [text, setText] = useState('{}')
  const name = wait.name ?? ''
  const send = async () => {
    const { resumed } = await sendEvent(executionId, name, readJson(text))
    notify(resumed === 1 ? 'Sent: one node goes on' : `Sent: ${resumed} nodes go on`)
  }
  return (
    <div className="row">
      <Button small look="primary" aria-label={`Send event ${name}`} onClick={() => setOpen(true)}>
        Send event
      </Button>
      {wait.resumeUrl && (
        <>
          <Button small icon="link" onClick={() => void copyText(wait.resumeUrl!)}>
            Copy URL
          </Button>
          <Button small icon="copy" onClick={() => void copyText(writeResumeCurl(wait.resumeUrl!))}>
            Copy curl
          </Button>
        </>
      )}
      <FormDialog
        open={open}
        onClose={() => setOpen(false)}
        title={`Send the event ${name}?`}
        label="Send event"
        wide
        onSubmit={send}
      >
        <p>All nodes of this execution that wait for it go on with this as their output.</p>
        <Field label="Data">
          <Code value={text} onChange={setText} language="json" lines={12} />
        </Field>
      </FormDialog>
    </div>
  )
}
