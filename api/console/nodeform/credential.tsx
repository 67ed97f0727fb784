import { useState } from 'react'
import { useCredentials } from '../data/credentials.ts'
import { tellError } from '../data/refusal.ts'
import { Button } from '../kit/button.tsx'
import { FormDialog } from '../kit/dialog.tsx'
import { Field } from '../kit/field.tsx'
import { Icon } from '../kit/icon.tsx'
import { Select, TextInput } from '../kit/input.tsx'
import { notify, notifyError } from '../kit/notices.tsx'
import { useRole } from '../shell/role.tsx'
import {
  type CredentialType,
  connectCredential,
  createCredential,
  testCredential,
  useCredentialTypes,
} from './credentials.ts'
import { faultsAt, tellFaults, useForm } from './scope.ts'
import { CredentialKeys, readKeys } from './secrets.tsx'
import type { ValueProps } from './value.tsx'
import { nameType } from './words.ts'

export type { CredentialUse } from './credentials.ts'

type Tested = { id: string; good: boolean; message: string }

/** Chooses a credential of a type that the node takes; one is made and tested in place. */
export function CredentialField({ path, label, value, onChange, required }: ValueProps) {
  const { teamId, uses, faults, readOnly } = useForm()
  const mayRead = useRole()('BUILDER')
  const { data: all } = useCredentials(mayRead ? teamId : '')
  const { data: types = [] } = useCredentialTypes(mayRead)
  const [isOpen, setOpen] = useState(false)
  const [busy, setBusy] = useState(false)
  const [tested, setTested] = useState<Tested | null>(null)
  // A tool of an agent signs in elsewhere than its model.
  const wanted = path.includes('.tools[') ? (['HTTP'] as const) : uses
  const fitting = types.filter(
    (one) => wanted.length === 0 || one.uses.some((use) => wanted.includes(use as never)),
  )
  const names = new Set(fitting.map(({ type }) => type))
  const id = typeof value === 'string' ? value : ''
  const listed = (all ?? []).filter((one) => names.has(one.type) || one.id === id)
  const chosen = all?.find((one) => one.id === id)
  const choices = listed.map((one) => ({ value: one.id, label: `${one.name} (${nameType(one.type)})` }))
  if (id !== '' && !chosen) choices.push({ value: id, label: mayRead && all ? 'One that is not there' : id })

  const test = async () => {
    setBusy(true)
    try {
      const { status, message } = await testCredential(id, teamId)
      setTested({ id, good: status === 'SUCCESS', message })
    } catch (error) {
      setTested({ id, good: false, message: tellError(error) })
    } finally {
      setBusy(false)
    }
  }
  const connect = async () => {
    try {
      // What is being edited here stays open.
      window.open(await connectCredential(id), '_blank', 'noopener')
    } catch (error) {
      notifyError(error)
    }
  }
  return (
    <div className="credential">
      <Field label={label} error={tellFaults(faultsAt(faults, path))} required={required ?? false}>
        <Select
          value={id}
          disabled={readOnly || !mayRead}
          empty={required ? 'Choose a credential' : 'None'}
          choices={choices}
          onChange={(next) => onChange(next === '' ? undefined : next)}
        />
      </Field>
      {mayRead && !readOnly && (
        <div className="row">
          <Button small icon="plus" onClick={() => setOpen(true)}>
            New credential
          </Button>
          {chosen && (
            <Button small busy={busy} onClick={() => void test()}>
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
        <NewCredential
          types={fitting}
          teamId={teamId}
          onClose={() => setOpen(false)}
          onMade={(made) => onChange(made)}
        />
      )}
    </div>
  )
}

type NewProps = { types: CredentialType[]; teamId: string; onClose: () => void; onMade: (id: string) => void }

function NewCredential({ types, teamId, onClose, onMade }: NewProps) {
  const [name, setName] = useState('')
  const [type, setType] = useState<string>(types[0]?.type ?? '')
  const [values, setValues] = useState<Record<string, string>>({})
  const kind = types.find((one) => one.type === type)
  const create = async () => {
    const made = await createCredential({
      teamId,
      name,
      type: kind!.type,
      data: readKeys(kind!.keys, values),
    })
    notify('Credential created')
    onMade(made.id)
  }
  return (
    <FormDialog open wide onClose={onClose} title="New credential" label="Create" onSubmit={create}>
      <Field label="Name" required>
        <TextInput value={name} maxLength={200} onChange={setName} />
      </Field>
      <Field label="Type" help={kind?.summary}>
        <Select
          value={type}
          choices={types.map((one) => ({ value: one.type, label: nameType(one.type) }))}
          onChange={(next) => {
            setType(next)
            setValues({})
          }}
        />
      </Field>
      <CredentialKeys keys={kind?.keys ?? []} values={values} onChange={setValues} />
      <p className="quiet">What is secret is stored sealed, and never shown again.</p>
    </FormDialog>
  )
}
