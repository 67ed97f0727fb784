import { Switch as BaseSwitch } from '@base-ui/react/switch'
import { type ComponentProps, type ReactNode, useEffect, useState } from 'react'
import './controls.css'
import { fromLocal, toLocal } from '../time.tsx'
import { useControl } from './field.tsx'

type Props<Tag extends 'input' | 'textarea' | 'select'> = Omit<ComponentProps<Tag>, 'value' | 'onChange'>
type Changing<T> = { value: T; onChange: (value: T) => void }

export function TextInput({ value, onChange, ...props }: Props<'input'> & Changing<string>) {
  const control = useControl()
  return (
    <input
      autoComplete="off"
      {...control}
      {...props}
      className={`input ${props.className ?? ''}`}
      value={value}
      onChange={(event) => onChange(event.target.value)}
    />
  )
}

/** `code` is for texts in a fixed width; Ctrl+Enter sends the form around it. */
export function TextArea({
  value,
  onChange,
  code,
  ...props
}: Props<'textarea'> & Changing<string> & { code?: boolean }) {
  const control = useControl()
  return (
    <textarea
      rows={3}
      spellCheck={!code}
      {...control}
      {...props}
      className={code ? 'input code' : 'input'}
      value={value}
      onChange={(event) => onChange(event.target.value)}
      onKeyDown={(event) => {
        props.onKeyDown?.(event)
        if (event.key === 'Enter' && (event.ctrlKey || event.metaKey))
          event.currentTarget.form?.requestSubmit()
      }}
    />
  )
}

/** A number, or undefined while the field is empty. */
export function NumberInput({ value, onChange, ...props }: Props<'input'> & Changing<number | undefined>) {
  const control = useControl()
  // The typed text stays as it is: "1." and "1e" are on the way to a number.
  const [text, setText] = useState(value === undefined ? '' : String(value))
  useEffect(() => {
    setText((before) => (readNumber(before) === value ? before : value === undefined ? '' : String(value)))
  }, [value])
  return (
    <input
      autoComplete="off"
      step="any"
      {...control}
      {...props}
      type="number"
      className="input"
      value={text}
      onChange={(event) => {
        setText(event.target.value)
        onChange(readNumber(event.target.value))
      }}
    />
  )
}

function readNumber(text: string): number | undefined {
  return text.trim() === '' || Number.isNaN(Number(text)) ? undefined : Number(text)
}

export type Choice = { value: string; label: string; disabled?: boolean }

/** One of a few choices; `empty` names the choice of none, whose value is ''. */
export function Select({
  value,
  onChange,
  choices,
  empty,
  ...props
}: Props<'select'> & Changing<string> & { choices: readonly Choice[]; empty?: string }) {
  const control = useControl()
  return (
    <select
      {...control}
      {...props}
      className="input"
      value={value}
      onChange={(event) => onChange(event.target.value)}
    >
      {empty !== undefined && <option value="">{empty}</option>}
      {choices.map(({ value: one, label, disabled }) => (
        <option key={one} value={one} disabled={disabled}>
          {label}
        </option>
      ))}
    </select>
  )
}

type CheckProps = { checked: boolean; onChange: (checked: boolean) => void; disabled?: boolean }

/** A box with its own label; it needs no Field. */
export function Checkbox({ checked, onChange, disabled, children }: CheckProps & { children: ReactNode }) {
  return (
    <label className="check">
      <input
        type="checkbox"
        checked={checked}
        disabled={disabled}
        onChange={(event) => onChange(event.target.checked)}
      />
      {children}
    </label>
  )
}

/** Something that is on or off at once; in a form that is saved later, use a Checkbox. */
export function Switch({ checked, onChange, disabled, label }: CheckProps & { label: string }) {
  return (
    <BaseSwitch.Root
      className="switch"
      checked={checked}
      onCheckedChange={onChange}
      {...(disabled === undefined ? {} : { disabled })}
      aria-label={label}
    >
      <BaseSwitch.Thumb />
    </BaseSwitch.Root>
  )
}

/** An instant (ISO 8601, or ''), shown in the browser's zone; `onChange` comes on Enter or when the field is left. */
export function DateInput({ value, onChange, ...props }: Props<'input'> & Changing<string>) {
  const control = useControl()
  const [text, setText] = useState(toLocal(value))
  useEffect(() => setText(toLocal(value)), [value])
  const apply = () => {
    if (text !== toLocal(value)) onChange(fromLocal(text) ?? '')
  }
  return (
    <input
      {...control}
      {...props}
      type="datetime-local"
      className="input"
      value={text}
      onChange={(event) => setText(event.target.value)}
      onBlur={apply}
      onKeyDown={(event) => event.key === 'Enter' && apply()}
    />
  )
}
