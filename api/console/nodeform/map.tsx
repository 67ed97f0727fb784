import { useEffect, useRef, useState } from 'react'
import { Button } from '../kit/button.tsx'
import { isRecord, type Schema } from './schema.ts'
import { faultsAt, tellFaults, useForm } from './scope.ts'
import { ValueField, type ValueProps } from './value.tsx'
import { helpFor } from './words.ts'

type Row = { id: number; key: string; value: unknown }

let made = 0
const asRow = ([key, value]: [string, unknown]): Row => ({ id: ++made, key, value })

function asRows(value: unknown): Row[] {
  return isRecord(value) ? Object.entries(value).map(asRow) : []
}

function asValue(rows: Row[]): Record<string, unknown> {
  return Object.fromEntries(rows.filter(({ key }) => key !== '').map(({ key, value }) => [key, value]))
}

/** Keys and their values, such as headers; a key may be half written, so the rows are more than the value. */
export function MapField({ schema, path, label, value, onChange, required, hideLabel }: ValueProps) {
  const { node, faults, readOnly } = useForm()
  const [rows, setRows] = useState(() => asRows(value))
  const told = useRef(JSON.stringify(value ?? {}))
  useEffect(() => {
    const now = JSON.stringify(value ?? {})
    if (now === told.current) return
    told.current = now
    setRows(asRows(value))
  }, [value])
  const set = (next: Row[]) => {
    const written = asValue(next)
    told.current = JSON.stringify(written)
    setRows(next)
    onChange(next.length === 0 && !required && path !== 'config.values' ? undefined : written)
  }
  const change = (at: number, part: Partial<Row>) => set(rows.with(at, { ...rows[at]!, ...part }))
  const inner: Schema = typeof schema.additionalProperties === 'object' ? schema.additionalProperties : {}
  const help = hideLabel ? undefined : helpFor(node.type, path, schema)
  const wrong = tellFaults(
    faultsAt(
      faults,
      path,
      rows.map(({ key }) => key),
    ),
  )
  return (
    <fieldset className="field form-group">
      <legend className={hideLabel ? 'hidden' : undefined}>
        {label}
        {required && <span className="star"> *</span>}
      </legend>
      {help && <p className="help">{help}</p>}
      {rows.map(({ id, key, value: one }, at) => (
        <div key={id} className="pair">
          <input
            className="input"
            aria-label={`Key ${at + 1} of ${label}`}
            placeholder="Key"
            autoComplete="off"
            spellCheck={false}
            readOnly={readOnly}
            aria-invalid={
              rows.some((other) => other.id !== id && other.key === key && key !== '') || undefined
            }
            value={key}
            onChange={(event) => change(at, { key: event.target.value })}
          />
          <ValueField
            schema={inner}
            path={`${path}.${key}`}
            label={key === '' ? `Value ${at + 1}` : `Value of ${key}`}
            hideLabel
            required
            value={one}
            onChange={(next) => change(at, { value: next ?? '' })}
          />
          {!readOnly && (
            <Button
              small
              look="plain"
              icon="trash"
              aria-label={`Remove ${key || `key ${at + 1}`}`}
              onClick={() => set(rows.toSpliced(at, 1))}
            />
          )}
        </div>
      ))}
      {!readOnly && (
        <Button small icon="plus" onClick={() => setRows([...rows, { id: ++made, key: '', value: '' }])}>
          {`Add ${label === 'Headers' ? 'header' : 'key'}`}
        </Button>
      )}
      {wrong && <p className="wrong">{wrong}</p>}
    </fieldset>
  )
}
