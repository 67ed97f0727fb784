import { useState } from 'react'
import { Link } from 'wouter'
import { Button } from '../kit/controls/button.tsx'
import { Checkbox } from '../kit/controls/input.tsx'
import { notify } from '../kit/notices.tsx'
import { Dialog, FormDialog } from '../kit/overlays/dialog.tsx'
import { Loaded } from '../kit/states.tsx'
import { useRole } from '../shell/role.tsx'
import { deleteCredential, useCredentialUsage } from './data.ts'

type Of = { id: string; name: string; onClose: () => void }

/** Which workflows name a credential. */
export function CredentialUsage({ id, name, onClose }: Of) {
  return (
    <Dialog open onClose={onClose} title={`Usage of ${name}`}>
      <UsedBy id={id} />
      <div className="actions">
        <Button onClick={onClose}>Close</Button>
      </div>
    </Dialog>
  )
}

/** Asks before a credential is deleted, and says what uses it. Only an ADMIN may delete one that is in use. */
export function DeleteCredential({ id, name, onClose }: Of) {
  const may = useRole()
  const used = useCredentialUsage(id).data?.content.some(({ active }) => active) ?? false
  const [force, setForce] = useState(false)
  const remove = async () => {
    await deleteCredential(id, force && used)
    notify('Credential deleted')
  }
  return (
    <FormDialog
      open
      onClose={onClose}
      title="Delete this credential?"
      label="Delete"
      danger
      onSubmit={remove}
    >
      <div className="stack">
        <p>
          Nodes that need <strong>{name}</strong> fail from now on. What it holds cannot be brought back.
        </p>
        <UsedBy id={id} />
        {used && may('ADMIN') && (
          <Checkbox checked={force} onChange={setForce}>
            Although active workflows use it
          </Checkbox>
        )}
      </div>
    </FormDialog>
  )
}

function UsedBy({ id }: { id: string }) {
  const usage = useCredentialUsage(id)
  return (
    <Loaded query={usage} rows={2}>
      {({ content, totalElements }) =>
        totalElements === 0 ? (
          <p>No workflow uses it.</p>
        ) : (
          <ul>
            {content.map(({ workflowId, workflowName, active, versions, nodes }) => (
              <li key={workflowId}>
                <Link className="name" href={`/workflows/${workflowId}`}>
                  {workflowName}
                </Link>
                {active ? ', active' : ''}
                <span className="quiet">
                  {nodes.length > 0
                    ? `: ${nodes.map((node) => node.name || node.id).join(', ')}`
                    : `: only in ${versions} older ${versions === 1 ? 'version' : 'versions'}`}
                </span>
              </li>
            ))}
            {totalElements > content.length && (
              <li className="quiet">{totalElements - content.length} more</li>
            )}
          </ul>
        )
      }
    </Loaded>
  )
}
