import { useState } from 'react'
import { Field } from '../../kit/controls/field.tsx'
import { TextInput } from '../../kit/controls/input.tsx'
import type { NodeEdit } from '../contract.ts'
import { faultsAt, tellFaults, useForm } from '../scope.ts'
import { editKey } from './field.ts'

type NamesProps = { onEdit: (edit: NodeEdit) => void; onRename: (id: string) => void }

/** The id is what expressions name it by, so it changes when it is whole. */
export function NameFields({ onEdit, onRename }: NamesProps) {
  const { node, graph, faults, readOnly } = useForm()
  const [id, setId] = useState(node.id)
  const taken = id !== node.id && graph.nodes.some((one) => one.id === id)
  const broken = !/^[A-Za-z0-9_-]{1,100}$/.test(id)
  const wrong = taken
    ? 'Another node has this id'
    : broken
      ? 'An id has 1 to 100 letters, digits, _ or -'
      : tellFaults(faultsAt(faults, 'id'))
  const settle = () => {
    if (id !== node.id && !taken && !broken) onRename(id)
  }
  return (
    <div className="pairs">
      <Field label="Name" error={tellFaults(faultsAt(faults, 'name'))}>
        <TextInput
          maxLength={200}
          readOnly={readOnly}
          value={node.name ?? ''}
          onChange={(name) => onEdit((now) => editKey(now, 'name', () => (name === '' ? undefined : name)))}
        />
      </Field>
      <Field label="Id" error={wrong}>
        <TextInput
          maxLength={100}
          spellCheck={false}
          readOnly={readOnly}
          value={id}
          onChange={setId}
          onBlur={settle}
          onKeyDown={(event) => event.key === 'Enter' && settle()}
        />
      </Field>
    </div>
  )
}
