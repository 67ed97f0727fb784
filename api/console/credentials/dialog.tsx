import { useState } from 'react'
import { problemAt, tellError } from '../data/refusal.ts'
import { Field } from '../kit/controls/field.tsx'
import { Checkbox, Select, TextInput } from '../kit/controls/input.tsx'
import { nameType } from '../kit/names.ts'
import { notify } from '../kit/notices.tsx'
import { Dialog, FormDialog } from '../kit/overlays/dialog.tsx'
import { Loaded } from '../kit/states.tsx'
import { useTeam } from '../shell/role.tsx'
import {
  type Credential,
  createCredential,
  testCredential,
  updateCredential,
  useCredential,
  useCredentialTypes,
} from './data.ts'
import { KeyFields, readKeys, startKeys, type Typed } from './keys.tsx'

type NewProps = {
  onClose: () => void
  /** The types that fit; without it, all. */
  types?: readonly string[]
  /** Called with the new credential, so that what asked for it can choose it. */
  onMade?: (credential: { id: string; name: string; type: string }) => void
}

/**
 * Creates a credential, and tests it if that is wanted: for the page of credentials and for a field of a node. Render it
 * while it is open: `{open && <CredentialDialog onClose={...} types={uses} onMade={({ id }) => choose(id)} />}`.
 */
export function CredentialDialog({ onClose, types, onMade }: NewProps) {
  const { teamId } = useTeam()
  const all = useCredentialTypes()
  const known = all.data ?? []
  // In the order in which they were asked for.
  const fitting = types?.flatMap((wanted) => known.find(({ type }) => type === wanted) ?? []) ?? known
  const [name, setName] = useState('')
  const [chosen, setChosen] = useState('')
  // By type, so that a look at another type loses nothing.
  const [typed, setTyped] = useState<Record<string, Typed>>({})
  const [tries, setTries] = useState(true)
  const kind = fitting.find(({ type }) => type === chosen) ?? fitting[0]
  const keys = kind?.keys ?? []
  const values = (kind && typed[kind.type]) ?? startKeys(keys, true)
  const send = async () => {
    if (!kind) return
    const data = readKeys(keys, values)
    const made = await createCredential({ teamId, name, type: kind.type, data })
    notify('Credential created')
    onMade?.(made)
    if (tries && kind.type !== 'OAUTH2') void tellTest(teamId, made)
  }
  if (!kind) {
    return (
      <Dialog open onClose={onClose} title="New credential">
        <Loaded query={all}>{() => <p>No type of credential fits here.</p>}</Loaded>
      </Dialog>
    )
  }
  return (
    <FormDialog
      open
      onClose={onClose}
      title="New credential"
      label="Create"
      wide
      onSubmit={send}
      fields={['name', 'data', ...keys.map((key) => `data.${key.name}`)]}
    >
      {(error) => (
        <div className="stack">
          <Field label="Name" required error={problemAt(error, 'name')}>
            <TextInput value={name} maxLength={200} required onChange={setName} />
          </Field>
          <Field label="Type" help={kind.summary}>
            <Select
              value={kind.type}
              onChange={setChosen}
              choices={fitting.map(({ type }) => ({ value: type, label: nameType(type) }))}
            />
          </Field>
          <KeyFields
            keys={keys}
            typed={values}
            onChange={(next) => setTyped({ ...typed, [kind.type]: next })}
            problemOf={(key) => problemAt(error, `data.${key}`)}
          />
          {kind.type !== 'OAUTH2' && (
            <Checkbox checked={tries} onChange={setTries}>
              Test it once it is created
            </Checkbox>
          )}
        </div>
      )}
    </FormDialog>
  )
}

/** Tests a credential, and says what came of it. */
async function tellTest(teamId: string, { id, name }: { id: string; name: string }): Promise<void> {
  try {
    const { status, message } = await testCredential(teamId, id)
    notify(`${name}: ${message}`, status === 'SUCCESS' ? 'good' : 'bad')
  } catch (error) {
    notify(`${name}: ${tellError(error)}`, 'bad')
  }
}

/** Changes a credential: what is left empty stays as it is. */
export function EditCredential({ id, name, onClose }: { id: string; name: string; onClose: () => void }) {
  const found = useCredential(id)
  if (found.data) return <EditForm credential={found.data} onClose={onClose} />
  return (
    <Dialog open onClose={onClose} title={`Edit ${name}`}>
      <Loaded query={found}>{() => null}</Loaded>
    </Dialog>
  )
}

function EditForm({ credential, onClose }: { credential: Credential; onClose: () => void }) {
  const { id, type, keys: has, broken, testMessage } = credential
  const [name, setName] = useState(credential.name)
  const [typed, setTyped] = useState(startKeys([], false))
  const { data: types } = useCredentialTypes()
  const keys = types?.find((one) => one.type === type)?.keys ?? []
  const send = async () => {
    await updateCredential(id, { name, data: readKeys(keys, typed) })
    notify('Credential saved')
  }
  return (
    <FormDialog
      open
      onClose={onClose}
      title={`Edit ${credential.name}`}
      label="Save"
      wide
      onSubmit={send}
      fields={['name', ...keys.map((key) => `data.${key.name}`)]}
    >
      {(error) => (
        <div className="stack">
          {broken && (
            <p className="refusal" role="alert">
              {broken}
            </p>
          )}
          {testMessage && <p className="quiet">Last test: {testMessage}</p>}
          <Field label="Name" required error={problemAt(error, 'name')}>
            <TextInput value={name} maxLength={200} required onChange={setName} />
          </Field>
          <p className="quiet">What is left empty stays as it is.</p>
          <KeyFields
            keys={keys}
            typed={typed}
            onChange={setTyped}
            has={has}
            problemOf={(key) => problemAt(error, `data.${key}`)}
          />
        </div>
      )}
    </FormDialog>
  )
}
