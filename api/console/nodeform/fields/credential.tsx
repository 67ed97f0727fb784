import { useState } from 'react'
import {
  connectCredential,
  testCredential,
  useCredentials,
  useCredentialTypes,
} from '../../credentials/data.ts'
import { CredentialDialog } from '../../credentials/dialog.tsx'
import { tellError } from '../../data/refusal.ts'
import { Button } from '../../kit/controls/button.tsx'
import { Icon } from '../../kit/controls/icon.tsx'
import { Select } from '../../kit/controls/input.tsx'
import { nameType } from '../../kit/names.ts'
import { notifyError } from '../../kit/notices.tsx'
import { useWork } from '../../kit/work.ts'
import { useRole } from '../../shell/role.tsx'
import { useForm } from '../scope.ts'
import type { ValueProps } from './field.ts'
import { Labelled } from './leaf.tsx'

type Tested = { id: string; good: boolean; message: string }

/** Chooses a credential of a type that the node takes; one is made and tested in place. */
export function CredentialField(props: ValueProps) {
  const { path, value, edit, required } = props
  const { teamId, uses, readOnly } = useForm()
  const mayRead = useRole()('BUILDER')
  const { data: all } = useCredentials(mayRead ? teamId : '')
  const { data: types = [] } = useCredentialTypes()
  const [isOpen, setOpen] = useState(false)
  const { busy, result: tested, run } = useWork<Tested>({ keep: true })
  // A tool of an agent signs in elsewhere than its model.
  const wanted = path.includes('.tools[') ? (['HTTP'] as const) : uses
  // A key of a vendor of models signs in requests too, but few want that: types for requests alone come first.
  const rank = ({ uses: all }: (typeof types)[number]) => (wanted.includes('HTTP') ? all.length : 0)
  const fitting = types
    .filter((one) => wanted.length === 0 || one.uses.some((use) => wanted.includes(use as never)))
    .toSorted((a, b) => rank(a) - rank(b))
  const names = new Set(fitting.map(({ type }) => type))
  const id = typeof value === 'string' ? value : ''
  const listed = (all ?? []).filter((one) => names.has(one.type) || one.id === id)
  const chosen = all?.find((one) => one.id === id)
  const choices = listed.map((one) => ({ value: one.id, label: `${one.name} (${nameType(one.type)})` }))
  if (id !== '' && !chosen) choices.push({ value: id, label: mayRead && all ? 'One that is not there' : id })

  const test = async () => {
    try {
      const { status, message } = await testCredential(teamId, id)
      return { id, good: status === 'SUCCESS', message }
    } catch (error) {
      return { id, good: false, message: tellError(error) }
    }
  }
  const connect = async () => {
    try {
      // The page with the editor stays open.
      window.open(await connectCredential(id), '_blank', 'noopener')
    } catch (error) {
      notifyError(error)
    }
  }
  return (
    <div className="credential">
      <Labelled {...props}>
        <Select
          value={id}
          disabled={readOnly || !mayRead}
          empty={required ? 'Choose a credential' : 'None'}
          choices={choices}
          onChange={(next) => edit(() => (next === '' ? undefined : next))}
        />
      </Labelled>
      {mayRead && !readOnly && (
        <div className="row">
          <Button small icon="plus" onClick={() => setOpen(true)}>
            New credential
          </Button>
          {chosen && (
            <Button small busy={busy} onClick={() => run(test)}>
              Test it
            </Button>
          )}
          {chosen?.type === 'OAUTH2' && (
            <Button small icon="link" onClick={() => void connect()}>
              Connect
            </Button>
          )}
        </div>
      )}
      {tested?.id === id && id !== '' && (
        <p className={tested.good ? 'tested good' : 'tested bad'} role="status">
          <Icon name={tested.good ? 'check' : 'warning'} size={13} />{' '}
          {tested.good ? 'Works' : 'Does not work'}: {tested.message}
        </p>
      )}
      {isOpen && (
        <CredentialDialog
          types={[...names]}
          onClose={() => setOpen(false)}
          onMade={(made) => edit(() => made.id)}
        />
      )}
    </div>
  )
}
