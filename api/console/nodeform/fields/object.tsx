import { Button } from '../../kit/controls/button.tsx'
import { nameKey } from '../../kit/names.ts'
import { isRecord, startValue } from '../schema.ts'
import { faultsAt, tellFaults, useForm } from '../scope.ts'
import { editKey, type NestedProps } from './field.ts'
import { UnknownKeys } from './unknown.tsx'

/** An object with fields of its own; one that may be missing is added and removed as a whole. */
export function ObjectField({ schema, path, label, value, edit, required, hideLabel, Value }: NestedProps) {
  const { faults, readOnly } = useForm()
  const properties = Object.entries(schema.properties ?? {})
  const keys = properties.map(([key]) => key)
  const due = schema.required ?? []
  const help = schema.description && <p className="help">{schema.description}</p>
  const said = tellFaults(faultsAt(faults, path, keys))
  const wrong = said && <p className="wrong">{said}</p>
  const name = `${label.charAt(0).toLowerCase()}${label.slice(1)}`
  if (!isRecord(value) && !required) {
    if (readOnly) return null
    return (
      <div className="field">
        <Button small icon="plus" onClick={() => edit(() => startValue(schema))}>
          {`Add ${name}`}
        </Button>
        {help}
        {wrong}
      </div>
    )
  }
  const held = isRecord(value) ? value : {}
  const ordered = properties.toSorted(([a], [b]) => Number(due.includes(b)) - Number(due.includes(a)))
  return (
    <fieldset className="field form-group inset">
      <legend className={hideLabel ? 'hidden' : undefined}>{label}</legend>
      {help}
      {ordered.map(([key, inner]) =>
        inner.const !== undefined && due.includes(key) ? null : (
          <Value
            key={key}
            schema={inner}
            path={`${path}.${key}`}
            label={nameKey(key)}
            required={due.includes(key)}
            value={held[key]}
            edit={(make) => edit((now) => editKey(isRecord(now) ? now : {}, key, make))}
          />
        ),
      )}
      <UnknownKeys {...{ held, path, edit }} known={keys} />
      {!required && !readOnly && (
        <Button small look="danger" icon="trash" onClick={() => edit(() => undefined)}>
          {`Remove ${name}`}
        </Button>
      )}
      {wrong}
    </fieldset>
  )
}
