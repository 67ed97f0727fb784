import { useState } from 'react'
import {
  chooseVariant,
  fits,
  kindOfSchema,
  listVariants,
  nameVariant,
  type Schema,
  startValue,
} from '../schema.ts'
import { useForm } from '../scope.ts'
import type { Edit, NestedProps } from './field.ts'

/** A value of several kinds: which one is chosen beside the label. */
export function VariantField({ Value, ...props }: NestedProps) {
  const { schema, label, value, edit, hideLabel } = props
  const { readOnly } = useForm()
  const variants = listVariants(schema)
  const [picked, setPicked] = useState<number | null>(null)
  // An entry of a list or a table that is emptied is an empty text, whatever its kind.
  const isEmpty = value === undefined || value === ''
  const holds = picked !== null && (isEmpty || fits(variants[picked]!, value))
  const chosen = holds ? picked : chooseVariant(variants, value)
  const pick = (text: string) => {
    setPicked(Number(text))
    edit((now) => convert(variants[Number(text)]!, now ?? undefined))
  }
  // The default and the description of the whole hold for its variant.
  const inner = {
    ...variants[chosen]!,
    ...(schema.default === undefined || schema.default === null ? {} : { default: schema.default }),
    ...(schema.description ? { description: schema.description } : {}),
  }
  // Who empties a field goes on with the same kind.
  const change = (make: Edit) => {
    if (variants.length > 1) setPicked(chosen)
    edit(make)
  }
  const field = <Value {...props} schema={inner} edit={change} />
  if (variants.length < 2) return field
  return (
    <div className={hideLabel ? 'with-kind bare' : 'with-kind'}>
      {field}
      <select
        className="kind-choice"
        aria-label={`Kind of ${label}`}
        disabled={readOnly}
        value={String(chosen)}
        onChange={(event) => pick(event.target.value)}
      >
        {variants.map((one, at) => (
          <option key={`${nameVariant(one, variants)} ${String(one.const ?? '')}`} value={String(at)}>
            {nameVariant(one, variants)}
          </option>
        ))}
      </select>
    </div>
  )
}

/** Keeps of a value what the other kind can hold. */
function convert(schema: Schema, value: unknown): unknown {
  const kind = kindOfSchema(schema)
  if (value === undefined)
    return ['number', 'choice', 'expression'].includes(kind) ? undefined : startValue(schema)
  if (kind === 'json' || fits(schema, value)) return value
  if (kind === 'expression' || kind === 'text')
    return typeof value === 'object' ? JSON.stringify(value) : String(value)
  if (kind === 'number') return value !== '' && !Number.isNaN(Number(value)) ? Number(value) : undefined
  if (kind === 'list' && fits(schema, [value])) return [value]
  return kind === 'choice' ? undefined : startValue(schema)
}
