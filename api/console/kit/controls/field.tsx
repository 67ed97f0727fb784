import { createContext, type ReactNode, useContext, useId } from 'react'
import './controls.css'

type Control = { id: string; 'aria-describedby'?: string; 'aria-invalid'?: true; required?: boolean }

const FieldContext = createContext<Control | null>(null)

/** What an input takes over from the Field around it; inputs of the kit do this themselves. */
export function useControl(): Partial<Control> {
  return useContext(FieldContext) ?? {}
}

type FieldProps = {
  label: ReactNode
  help?: ReactNode
  /** The field's problem: `problemAt(error, 'name')`. */
  error?: string | undefined
  required?: boolean
  hideLabel?: boolean
  children: ReactNode
}

/** A label, one input of the kit, help and what is wrong. */
export function Field({ label, help, error, required, hideLabel, children }: FieldProps) {
  const id = useId()
  const described = [help && `${id}-help`, error && `${id}-wrong`].filter(Boolean).join(' ')
  const control: Control = {
    id,
    ...(described ? { 'aria-describedby': described } : {}),
    ...(error ? { 'aria-invalid': true } : {}),
    ...(required ? { required } : {}),
  }
  return (
    <div className="field">
      <label htmlFor={id} id={`${id}-label`} className={hideLabel ? 'hidden' : undefined}>
        {label}
        {required && (
          <span className="star" aria-hidden="true">
            {' '}
            *
          </span>
        )}
      </label>
      <FieldContext value={control}>{children}</FieldContext>
      {help && (
        <p className="help" id={`${id}-help`}>
          {help}
        </p>
      )}
      {error && (
        <p className="wrong" id={`${id}-wrong`}>
          {error}
        </p>
      )}
    </div>
  )
}

/** Fields that belong together. */
export function FieldGroup({
  label,
  help,
  children,
}: {
  label: ReactNode
  help?: ReactNode
  children: ReactNode
}) {
  return (
    <fieldset className="field stack">
      <legend>{label}</legend>
      {help && <p className="help">{help}</p>}
      {children}
    </fieldset>
  )
}
