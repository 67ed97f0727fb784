import { useEffect, useId, useRef, useState } from 'react'
import { useControl } from '../kit/controls/field.tsx'
import { useTeam } from '../shell/role.tsx'
import { useWorkflow, useWorkflows } from './data.ts'

const SHOWN = 50

type ChoiceProps = {
  value: string
  onChange: (id: string) => void
  placeholder?: string
  /** The workflows that are offered: without it, every workflow of the team. */
  only?: { agent?: 'true'; active?: 'true' }
}

/**
 * A field that finds a workflow by its name among any number of them. Names are unique in a team; `onChange` gets the
 * id, or '' where the field was emptied.
 */
export function WorkflowChoice({ value, onChange, placeholder = 'Any workflow', only }: ChoiceProps) {
  const { teamId } = useTeam()
  const control = useControl()
  const listId = useId()
  const field = useRef<HTMLInputElement>(null)
  const known = useWorkflow(value)
  const name = value === '' ? '' : (known.data?.name ?? '')
  const [text, setText] = useState(name)
  useEffect(() => setText(name), [name])
  const { data, isFetching } = useWorkflows(teamId, {
    ...only,
    search: text === name ? '' : text,
    size: SHOWN,
  })
  const found = data?.content ?? []
  const idOf = (wanted: string) => found.find((one) => one.name === wanted)?.id
  const follow = (next: string) => {
    setText(next)
    field.current?.setCustomValidity('')
    const id = idOf(next)
    // A pick from the list comes as one input.
    if (id !== undefined && id !== value) onChange(id)
  }
  const settle = () => {
    if (text === '' && value !== '') return onChange('')
    const id = text === name ? value : idOf(text)
    const unknown = id === undefined && text !== '' && !isFetching
    field.current?.setCustomValidity(unknown ? nameUnknown(only) : '')
    field.current?.reportValidity()
    if (id !== undefined && id !== value) onChange(id)
  }
  // Text that is typed before the list is there is found when the list comes.
  // biome-ignore lint/correctness/useExhaustiveDependencies: when the list comes
  useEffect(() => {
    const id = text === '' || text === name ? undefined : idOf(text)
    if (id === undefined) return
    field.current?.setCustomValidity('')
    if (id !== value) onChange(id)
  }, [data])
  return (
    <>
      <input
        {...control}
        ref={field}
        className="input"
        list={listId}
        placeholder={placeholder}
        autoComplete="off"
        maxLength={200}
        value={text}
        onChange={(event) => follow(event.target.value)}
        onBlur={settle}
        onKeyDown={(event) => event.key === 'Enter' && settle()}
      />
      <datalist id={listId}>
        {found.map((one) => (
          <option key={one.id} value={one.name} />
        ))}
      </datalist>
    </>
  )
}

function nameUnknown(only: ChoiceProps['only']): string {
  return only?.agent ? 'No workflow to chat with has this name' : 'No workflow has this name'
}
