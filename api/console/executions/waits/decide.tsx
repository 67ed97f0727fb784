import { useState } from 'react'
import { Button } from '../../kit/controls/button.tsx'
import { Field } from '../../kit/controls/field.tsx'
import { TextArea } from '../../kit/controls/input.tsx'
import { Facts } from '../../kit/header.tsx'
import { notify } from '../../kit/notices.tsx'
import { FormDialog } from '../../kit/overlays/dialog.tsx'
import { Age, Time } from '../../kit/time.tsx'
import { type Approval, decideApproval, sendChosen } from './data.ts'
import './asked.css'
import { FormFields, readFields, startFields } from './fields.tsx'

type Shown = Pick<
  Approval,
  'id' | 'message' | 'nodeId' | 'nodeName' | 'iteration' | 'mayDecide' | 'form' | 'createdAt' | 'deadline'
> &
  Pick<Approval, 'approvers' | 'hidden' | 'required' | 'decisions'>

type Choice = { approval: Shown; decision: 'approved' | 'rejected' }

/**
 * The dialog that decides an approval, for the page around its buttons: it stays when its row goes, because another
 * user was faster.
 */
export function useDecide() {
  const [choice, setChoice] = useState<Choice | null>(null)
  const dialog = choice && <DecideDialog {...choice} onClose={() => setChoice(null)} />
  return { onDecide: setChoice, dialog }
}

type DecideProps = { approval: Shown; onDecide: (choice: Choice) => void }

/** The buttons that decide an approval, where the caller may; else why there are none. */
export function Decide({ approval, onDecide }: DecideProps) {
  if (!approval.mayDecide) return <span className="quiet">Others decide</span>
  const name = approval.message ?? nameApproval(approval)
  return (
    <div className="row">
      <Button
        small
        look="primary"
        aria-label={`Approve: ${name}`}
        onClick={() => onDecide({ approval, decision: 'approved' })}
      >
        Approve
      </Button>
      <Button
        small
        look="danger"
        aria-label={`Reject: ${name}`}
        onClick={() => onDecide({ approval, decision: 'rejected' })}
      >
        Reject
      </Button>
    </div>
  )
}

type DialogProps = Choice & { onClose: () => void }

function DecideDialog({ approval, decision, onClose }: DialogProps) {
  const approves = decision === 'approved'
  // A rejection needs no form.
  const form = approves ? approval.form : null
  const [values, setValues] = useState(() => startFields(form))
  const [comment, setComment] = useState('')
  const send = async () => {
    const filled = form ? { form: await sendChosen(approval.id, readFields(form, values)) } : {}
    const json = { decision, comment: comment || null, ...filled }
    const settled = await decideApproval(approval.id, json)
    const more = settled.status === 'OPEN' ? settled.required - settled.decisions.length : 0
    notify(approves ? (more > 0 ? `Approved; ${more} more must` : 'Approved') : 'Rejected')
  }
  return (
    <FormDialog
      open
      onClose={onClose}
      title={approves ? 'Approve?' : 'Reject?'}
      label={approves ? 'Approve' : 'Reject'}
      danger={!approves}
      wide={form !== null}
      onSubmit={send}
    >
      <p className="said">{approval.message ?? nameApproval(approval)}</p>
      {form && <FormFields form={form} values={values} onChange={setValues} />}
      <Field label="Comment">
        <TextArea value={comment} maxLength={2_000} onChange={setComment} />
      </Field>
    </FormDialog>
  )
}

/** An open approval as the page of its execution shows it. */
export function Asked({ approval, onDecide }: DecideProps) {
  const { required, decisions, deadline, approvers, hidden, message, createdAt } = approval
  return (
    <section className="asked" aria-label={`Approval ${nameApproval(approval)}`}>
      <h2>Waits for an approval</h2>
      {message && <p className="said">{message}</p>}
      <Facts
        facts={[
          ['Node', nameApproval(approval)],
          ['Since', <Age key="since" at={createdAt} />],
          ['Deadline', <Time key="deadline" at={deadline} />],
          hidden
            ? ['Asked', 'Part of a private chat']
            : ['Approvers', approvers.length > 0 ? approvers.join(', ') : 'OPERATOR'],
          ['Approved', hidden ? '-' : `${decisions.length} of ${required}`],
        ]}
      />
      <Decide approval={approval} onDecide={onDecide} />
    </section>
  )
}

/** The node that asks, with its iteration. */
export function nameApproval({
  nodeId,
  nodeName,
  iteration,
}: Pick<Shown, 'nodeId' | 'nodeName' | 'iteration'>): string {
  const name = nodeName && nodeName !== 'APPROVAL' ? nodeName : nodeId
  return iteration === null ? name : `${name} #${iteration}`
}
