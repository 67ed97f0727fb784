import { type ReactNode, useState } from 'react'
import { problemAt } from '../../data/refusal.ts'
import { Field } from '../controls/field.tsx'
import { TextInput } from '../controls/input.tsx'
import { notify } from '../notices.tsx'
import { FormDialog } from '../overlays/dialog.tsx'

type ManagedFormProps = {
  /** What one of the list is called: `widget`. */
  noun: string
  /** The one that is changed; null while a new one is made. */
  thing: { name: string } | null
  wide?: boolean
  nameHelp?: string
  maxName?: number
  /** Paths of the problems that the fields after the name show themselves. */
  fields?: string[]
  /** May resolve to what a notice says instead of "Saved". */
  save: (name: string) => Promise<unknown>
  onClose: () => void
  /** The fields after the name. */
  children: ReactNode | ((error: unknown) => ReactNode)
}

/** Makes or changes one of a `Managed` list: a dialog that begins with its name. */
export function ManagedForm(props: ManagedFormProps) {
  const { noun, thing, wide = false, nameHelp, maxName = 100, fields = [], save, onClose, children } = props
  const [name, setName] = useState(thing?.name ?? '')
  const send = async () => {
    const said = await save(name)
    notify(typeof said === 'string' ? said : 'Saved')
  }
  return (
    <FormDialog
      open
      wide={wide}
      onClose={onClose}
      title={thing ? `Edit ${thing.name}` : `New ${noun}`}
      label={`Save the ${noun}`}
      onSubmit={send}
      fields={['name', ...fields]}
    >
      {(error) => (
        <>
          <Field label="Name" required help={nameHelp} error={problemAt(error, 'name')}>
            <TextInput value={name} onChange={setName} required maxLength={maxName} />
          </Field>
          {typeof children === 'function' ? children(error) : children}
        </>
      )}
    </FormDialog>
  )
}
