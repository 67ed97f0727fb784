import { useEffect, useRef, useState } from 'react'
import { Button } from '../../kit/controls/button.tsx'
import { isRecord, type Schema } from '../schema.ts'
import { faultsAt, tellFaults, useForm } from '../scope.ts'
import type { NestedProps } from './field.ts'

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
export function MapField({ schema, path, label, value, edit, required, hideLabel, Value }: NestedProps) {
  const { faults, readOnly } = useForm()
  const [rows, setRows] = useState(() => asRows(value))
  const latest = useRef(rows)
  const told = useRef(JSON.stringify(value ?? {}))
  useEffect(() => {
    const now = JSON.stringify(value ?? {})
    if (now === told.current) return
    told.current = now
    latest.current = asRows(value)
    setRows(latest.current)
  }, [value])
  const change = (make: (rows: Row[]) => Row[]) => {
    const next = make(latest.current)
    const written = asValue(next)
    const before = told.current
    latest.current = next
    told.current = JSON.stringify(written)
    setRows(next)
    // A row without a key does not count yet.
    if (told.current === before && next.length > 0) return
    edit(() => (next.length === 0 && !required && path !== 'config.values' ? undefined : written))
  }
  const set = (id: number, make: (row: Row) => Partial<Row>) =>
    change((all) => all.map((row) => (row.id === id ? { ...row, ...make(row) } : row)))
  const inner: Schema = typeof schema.additionalProperties === 'object' ? schema.additionalProperties : {}
  const keys = rows.map(({ key }) => key)
  const wrong = tellFaults(faultsAt(faults, path, keys))
  return (
    <fieldset className="field form-group">
      <legend className={hideLabel ? 'hidden' : undefined}>
        {label}
        {required && <span className="star"> *</span>}
      </legend>
      {schema.description && !hideLabel && <p className="help">{schema.description}</p>}
      {rows.map(({ id, key, value: one }, at) => (
        <div key={id} className="pair">
          <input
            className="input"
            aria-label={`Key ${at + 1} of ${label}`}
            placeholder="Key"
            autoComplete="off"
            spellCheck={false}
            readOnly={readOnly}
            aria-invalid={(key !== '' && keys.indexOf(key) !== keys.lastIndexOf(key)) || undefined}
            value={key}
            onChange={(event) => {
              const { value: typed } = event.target
              set(id, () => ({ key: typed }))
            }}
          />
          <Value
            schema={inner}
            path={`${path}.${key}`}
            label={key === '' ? `Value ${at + 1}` : `Value of ${key}`}
            hideLabel
            required
            value={one}
            edit={(make) => set(id, (row) => ({ value: make(row.value) ?? '' }))}
          />
          {!readOnly && (
            <Button
              small
              look="plain"
              icon="trash"
              aria-label={`Remove ${key || `key ${at + 1}`}`}
              onClick={() => change((all) => all.filter((row) => row.id !== id))}
            />
          )}
        </div>
      ))}
      {!readOnly && (
        <Button
          small
          icon="plus"
          onClick={() => change((all) => [...all, { id: ++made, key: '', value: '' }])}
        >
          {`Add ${label === 'Headers' ? 'header' : 'key'}`}
        </Button>
      )}
      {wrong && <p className="wrong">{wrong}</p>}
    </fieldset>
  )
}
