import { Button } from '../kit/button.tsx'
import { isRecord, kindOf, type Schema, startValue } from './schema.ts'
import { faultsAt, tellFaults, useForm } from './scope.ts'
import { ValueField, type ValueProps } from './value.tsx'
import { helpFor } from './words.ts'

/** A list whose entries are added, removed and moved. */
export function ListField({ schema, path, label, value, onChange, required, hideLabel }: ValueProps) {
  const { node, faults, readOnly } = useForm()
  const items: unknown[] = Array.isArray(value) ? value : []
  const inner: Schema = schema.items ?? {}
  const help = hideLabel ? undefined : helpFor(node.type, path, schema)
  const within = items.map((_, at) => String(at))
  const wrong = tellFaults(faultsAt(faults, path, within))
  const full = schema.maxItems !== undefined && items.length >= schema.maxItems
  const set = (next: unknown[]) => onChange(next.length === 0 && !required ? undefined : next)
  const move = (at: number, to: number) => {
    const next = [...items]
    next.splice(to, 0, ...next.splice(at, 1))
    set(next)
  }
  // An object of its own fields needs more room than a line.
  const isCard = (item: unknown) => ['object', 'variants'].includes(kindOf(inner)) && isRecord(item)
  const one = label.replace(/s$/, '')
  return (
    <fieldset className="field form-group">
      <legend className={hideLabel ? 'hidden' : undefined}>
        {label}
        {required && <span className="star"> *</span>}
      </legend>
      {help && <p className="help">{help}</p>}
      {items.map((item, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: entries have nothing else that names them
        <div key={at} className={isCard(item) ? 'entry card' : 'entry'}>
          <ValueField
            schema={inner}
            path={`${path}[${at}]`}
            label={`${one} ${at + 1}`}
            hideLabel={!isCard(item)}
            required
            value={item}
            onChange={(next) => set(items.with(at, next ?? startValue(inner)))}
          />
          {!readOnly && (
            <div className="entry-acts">
              <Button
                small
                look="plain"
                icon="down"
                className="up"
                aria-label={`Move ${one} ${at + 1} up`}
                disabled={at === 0}
                onClick={() => move(at, at - 1)}
              />
              <Button
                small
                look="plain"
                icon="down"
                aria-label={`Move ${one} ${at + 1} down`}
                disabled={at === items.length - 1}
                onClick={() => move(at, at + 1)}
              />
              <Button
                small
                look="plain"
                icon="trash"
                aria-label={`Remove ${one} ${at + 1}`}
                onClick={() => set(items.toSpliced(at, 1))}
              />
            </div>
          )}
        </div>
      ))}
      {!readOnly && !full && (
        <Button small icon="plus" onClick={() => set([...items, startValue(inner)])}>
          {`Add ${one.toLowerCase()}`}
        </Button>
      )}
      {wrong && <p className="wrong">{wrong}</p>}
    </fieldset>
  )
}
