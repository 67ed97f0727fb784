import { useRef } from 'react'
import { Button } from '../../kit/controls/button.tsx'
import { isRecord, kindOfSchema, type Schema, startValue } from '../schema.ts'
import { faultsAt, tellFaults, useForm } from '../scope.ts'
import type { Edit, NestedProps } from './field.ts'

let made = 0

/** A list whose entries are added, removed and moved. */
export function ListField({ schema, path, label, value, edit, required, hideLabel, Value }: NestedProps) {
  const { faults, readOnly } = useForm()
  const items: unknown[] = Array.isArray(value) ? value : []
  // An entry keeps its key when it moves, and with it what is being typed there.
  const keys = useRef<number[]>([])
  while (keys.current.length < items.length) keys.current.push(++made)
  keys.current.length = items.length
  const inner: Schema = schema.items ?? {}
  const wrong = tellFaults(
    faultsAt(
      faults,
      path,
      items.map((_, at) => String(at)),
    ),
  )
  const full = schema.maxItems !== undefined && items.length >= schema.maxItems
  const change = (make: (list: unknown[]) => unknown[]) =>
    edit((now) => {
      const next = make(Array.isArray(now) ? now : [])
      return next.length === 0 && !required ? undefined : next
    })
  const add = () => {
    keys.current.push(++made)
    change((list) => [...list, startValue(inner)])
  }
  const editEntry = (key: number, make: Edit) => {
    const at = keys.current.indexOf(key)
    if (at >= 0) change((list) => list.with(at, make(list[at]) ?? startValue(inner)))
  }
  /** To another place; out of the list without one. */
  const move = (key: number, by: number | null) => {
    const at = keys.current.indexOf(key)
    const shift = <T,>(list: T[]): T[] => {
      const rest = list.toSpliced(at, 1)
      return by === null ? rest : rest.toSpliced(at + by, 0, list[at]!)
    }
    keys.current = shift(keys.current)
    change(shift)
  }
  // An object of its own fields needs more room than a line.
  const isCard = (item: unknown) => ['object', 'variants'].includes(kindOfSchema(inner)) && isRecord(item)
  const one = label.replace(/s$/, '')
  const acts = (key: number, at: number) => (
    <div className="entry-acts">
      <Button
        {...{ small: true, look: 'plain', icon: 'down', className: 'up', disabled: at === 0 }}
        aria-label={`Move ${one} ${at + 1} up`}
        onClick={() => move(key, -1)}
      />
      <Button
        {...{ small: true, look: 'plain', icon: 'down', disabled: at === items.length - 1 }}
        aria-label={`Move ${one} ${at + 1} down`}
        onClick={() => move(key, 1)}
      />
      <Button
        {...{ small: true, look: 'plain', icon: 'trash' }}
        aria-label={`Remove ${one} ${at + 1}`}
        onClick={() => move(key, null)}
      />
    </div>
  )
  return (
    <fieldset className="field form-group">
      <legend className={hideLabel ? 'hidden' : undefined}>
        {label}
        {required && <span className="star"> *</span>}
      </legend>
      {schema.description && !hideLabel && <p className="help">{schema.description}</p>}
      {items.map((item, at) => {
        const key = keys.current[at]!
        return (
          <div key={key} className={isCard(item) ? 'entry card' : 'entry'}>
            <Value
              schema={inner}
              path={`${path}[${at}]`}
              label={`${one} ${at + 1}`}
              hideLabel={!isCard(item)}
              required
              value={item}
              edit={(make) => editEntry(key, make)}
            />
            {!readOnly && acts(key, at)}
          </div>
        )
      })}
      {!readOnly && !full && (
        <Button small icon="plus" onClick={add}>
          {`Add ${one.toLowerCase()}`}
        </Button>
      )}
      {wrong && <p className="wrong">{wrong}</p>}
    </fieldset>
  )
}
