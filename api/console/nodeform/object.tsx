import { Button } from '../kit/button.tsx'
import { isRecord, startValue } from './schema.ts'
import { faultsAt, tellFaults, useForm } from './scope.ts'
import { ValueField, type ValueProps } from './value.tsx'
import { helpFor, labelFor } from './words.ts'

/** An object with fields of its own; one that may be missing is added and removed as a whole. */
export function ObjectField({ schema, path, label, value, onChange, required, hideLabel }: ValueProps) {
  const { node, faults, readOnly } = useForm()
  const properties = Object.entries(schema.properties ?? {})
  const due = schema.required ?? []
  const wrong = tellFaults(
    faultsAt(
      faults,
      path,
      properties.map(([key]) => key),
    ),
  )
  const help = helpFor(node.type, path, schema)
  const isThere = isRecord(value)
  if (!isThere && !required) {
    if (readOnly) return null
    return (
      <div className="field">
        <Button small icon="plus" onClick={() => onChange(startValue(schema))}>
          {`Add ${label.charAt(0).toLowerCase()}${label.slice(1)}`}
        </Button>
        {help && <p className="help">{help}</p>}
        {wrong && <p className="wrong">{wrong}</p>}
      </div>
    )
  }
  const held: Record<string, unknown> = isThere ? value : {}
  const ordered = properties.toSorted(([a], [b]) => Number(due.includes(b)) - Number(due.includes(a)))
  return (
    <fieldset className="field form-group inset">
      <legend className={hideLabel ? 'hidden' : undefined}>{label}</legend>
      {help && <p className="help">{help}</p>}
      {ordered.map(([key, inner]) =>
        inner.const !== undefined && due.includes(key) ? null : (
          <ValueField
            key={key}
            schema={inner}
            path={`${path}.${key}`}
            label={labelFor(key)}
            required={due.includes(key)}
            value={held[key]}
            onChange={(next) => onChange(setKey(held, key, next))}
          />
        ),
      )}
      {!required && !readOnly && (
        <Button small look="danger" icon="trash" onClick={() => onChange(undefined)}>
          {`Remove ${label.charAt(0).toLowerCase()}${label.slice(1)}`}
        </Button>
      )}
      {wrong && <p className="wrong">{wrong}</p>}
    </fieldset>
  )
}

/** The object with another value of a key; undefined takes the key out. */
export function setKey(held: Record<string, unknown>, key: string, value: unknown): Record<string, unknown> {
  if (value !== undefined) return { ...held, [key]: value }
  const { [key]: _, ...rest } = held
  return rest
}
