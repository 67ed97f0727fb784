import { useState } from 'react'
import { Button } from '../../kit/controls/button.tsx'
import { Field } from '../../kit/controls/field.tsx'
import { Select, TextInput } from '../../kit/controls/input.tsx'
import { useConfirm } from '../../kit/overlays/confirm.tsx'
import { Refused } from '../../kit/states.tsx'
import { useWork } from '../../kit/work.ts'
import { deleteExample, readExample, saveExample, useExamples } from './data.ts'
import { type Fill, readJson } from './dialog.tsx'

type ExamplesProps = {
  workflowId: string
  /** The id of the trigger that they are for. */
  trigger: string
  /** The field that they fill. */
  field: 'request' | 'data'
  fill: Fill
  /** Whether the user may keep and delete them. */
  builds: boolean
}

/** Offers what was kept to try the workflow with, and keeps what is typed under a name. */
export function Examples({ workflowId, trigger, field, fill, builds }: ExamplesProps) {
  const { data } = useExamples(workflowId)
  const [chosen, choose] = useState('')
  const [name, setName] = useState('')
  const { busy, error, run } = useWork()
  const confirm = useConfirm()
  const kind = field === 'request' ? 'REQUEST' : 'DATA'
  const examples = (data ?? []).filter((one) => one.trigger === trigger && one.kind === kind)
  const known = examples.find((one) => one.name === name.trim())
  const open = (id: string) => {
    choose(id)
    setName(examples.find((one) => one.id === id)?.name ?? '')
    if (id === '') return
    void run(async () => {
      const example = await readExample(workflowId, id)
      fill(field, () => JSON.stringify(example[field], null, 2))
    })
  }
  const save = () =>
    run(async () => {
      const { id } = await saveExample(workflowId, {
        ...{ id: known?.id, name: name.trim(), trigger },
        [field]: readJson(fill(field)),
      })
      choose(id)
    })
  const remove = () =>
    confirm({
      title: `Delete the example "${examples.find((one) => one.id === chosen)?.name}"?`,
      label: 'Delete',
      danger: true,
      async work() {
        await deleteExample(workflowId, chosen)
        choose('')
        setName('')
      },
    })
  if (examples.length === 0 && !builds) return null
  return (
    <>
      {examples.length > 0 && (
        <Field label="Saved examples">
          <Select
            value={chosen}
            onChange={open}
            empty="None"
            choices={examples.map((one) => ({ value: one.id, label: one.name }))}
          />
        </Field>
      )}
      {builds && (
        <div className="row">
          <TextInput
            aria-label="Name of the example"
            placeholder="Name, to keep this as an example"
            value={name}
            maxLength={100}
            onChange={setName}
            onKeyDown={(event) => {
              // The dialog around it would execute.
              if (event.key === 'Enter') event.preventDefault()
            }}
          />
          <Button small disabled={name.trim() === ''} busy={busy} onClick={save}>
            {known ? 'Save over it' : 'Save as example'}
          </Button>
          {chosen !== '' && (
            <Button small look="plain" disabled={busy} onClick={remove}>
              Delete it
            </Button>
          )}
        </div>
      )}
      <Refused error={error} />
    </>
  )
}
