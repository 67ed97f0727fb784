import { useId } from 'react'
import { Field, FieldGroup, useControl } from '../../kit/controls/field.tsx'
import { Checkbox, DateInput, NumberInput, Select, TextArea, TextInput } from '../../kit/controls/input.tsx'

/** The part of JSON Schema that a form is asked for by. */
type Schema = {
  type?: string
  title?: string
  description?: string
  default?: unknown
  enum?: (string | number | boolean)[]
  format?: string
  minLength?: number
  maxLength?: number
  minimum?: number
  maximum?: number
  show?: string
  placeholder?: string
  accept?: string[]
  multiple?: boolean
}
type Form = { title?: string; description?: string; properties?: Record<string, Schema>; required?: string[] }
type Values = Record<string, unknown>

const TYPES: Record<string, string> = { email: 'email', date: 'date', uri: 'url', password: 'password' }

function readForm(form: Record<string, unknown>): { form: Form; fields: [string, Schema][] } {
  return { form: form as Form, fields: Object.entries((form as Form).properties ?? {}) }
}

/** What the fields hold at first. */
export function startFields(form: Record<string, unknown> | null): Values {
  if (!form) return {}
  return Object.fromEntries(readForm(form).fields.map(([name, schema]) => [name, schema.default]))
}

/** The values that were filled in, without empty ones. */
export function readFields(form: Record<string, unknown>, values: Values): Values {
  const read = readForm(form).fields.flatMap(([name, schema]): [string, unknown][] => {
    const value = values[name]
    if (schema.show === 'note') return []
    if (schema.type === 'boolean' && !schema.enum) return [[name, value === true]]
    if (schema.type === 'array' && schema.enum) return [[name, Array.isArray(value) ? value : []]]
    if (value === undefined || value === '' || (Array.isArray(value) && value.length === 0)) return []
    return [[name, Array.isArray(value) ? value.filter(Boolean) : value]]
  })
  return Object.fromEntries(read)
}

type FieldsProps = { form: Record<string, unknown>; values: Values; onChange: (values: Values) => void }

/** The fields of a form. */
export function FormFields({ form: given, values, onChange }: FieldsProps) {
  const { form, fields } = readForm(given)
  return (
    <FieldGroup label={form.title ?? ''} help={form.description}>
      {fields.filter(isShown).map(([name, schema]) => (
        <OneField
          key={name}
          name={schema.title ?? name}
          schema={schema}
          required={form.required?.includes(name) ?? false}
          value={values[name]}
          onChange={(value) => onChange({ ...values, [name]: value })}
        />
      ))}
    </FieldGroup>
  )
}

/** A hidden field goes along with what it has. */
function isShown([, { show }]: [string, Schema]): boolean {
  return show !== 'hidden'
}

type FieldProps = {
  name: string
  schema: Schema
  required: boolean
  value: unknown
  onChange: (value: unknown) => void
}

function OneField({ name, schema, required, value, onChange }: FieldProps) {
  if (schema.show === 'note') {
    return (
      <div className="stack">
        {schema.title && <strong>{schema.title}</strong>}
        {schema.description && <p>{schema.description}</p>}
      </div>
    )
  }
  if (schema.show === 'radio') return <Radios {...{ name, schema, required, value, onChange }} />
  if (schema.type === 'boolean' && !schema.enum) {
    return (
      <div>
        <Checkbox checked={value === true} onChange={onChange}>
          {name}
        </Checkbox>
        {schema.description && <p className="help quiet">{schema.description}</p>}
      </div>
    )
  }
  if (schema.type === 'array' && schema.enum) {
    const chosen: unknown[] = Array.isArray(value) ? value : []
    return (
      <FieldGroup label={name} help={schema.description}>
        {schema.enum.map((one) => (
          <Checkbox
            key={String(one)}
            checked={chosen.includes(one)}
            onChange={(on) =>
              onChange(schema.enum!.filter((other) => (other === one ? on : chosen.includes(other))))
            }
          >
            {String(one)}
          </Checkbox>
        ))}
      </FieldGroup>
    )
  }
  return (
    <Field label={name} help={schema.description} required={required}>
      <Input schema={schema} value={value} onChange={onChange} />
    </Field>
  )
}

function Radios({ name, schema, required, value, onChange }: FieldProps) {
  const group = useId()
  return (
    <FieldGroup label={name} help={schema.description}>
      {(schema.enum ?? []).map((one) => (
        <label key={String(one)} className="check">
          <input
            type="radio"
            name={group}
            required={required}
            checked={value === one}
            onChange={() => onChange(one)}
          />
          {String(one)}
        </label>
      ))}
    </FieldGroup>
  )
}

function FileInput({ schema, onChange }: Pick<FieldProps, 'schema' | 'onChange'>) {
  const control = useControl()
  return (
    <input
      {...control}
      type="file"
      className="input"
      multiple={schema.multiple}
      accept={schema.accept?.join(',')}
      onChange={(event) => {
        const chosen = [...(event.target.files ?? [])]
        onChange(schema.multiple ? chosen : chosen[0])
      }}
    />
  )
}

function Input({ schema, value, onChange }: Omit<FieldProps, 'name' | 'required'>) {
  const { type, format, minLength, maxLength, minimum, maximum, placeholder } = schema
  const text = String(value ?? '')
  if (type === 'file') return <FileInput schema={schema} onChange={onChange} />
  if (schema.enum) {
    const choices = schema.enum
    const at = choices.indexOf(value as string)
    return (
      <Select
        empty=""
        value={at < 0 ? '' : String(at)}
        onChange={(next) => onChange(next === '' ? undefined : choices[Number(next)])}
        choices={choices.map((one, index) => ({ value: String(index), label: String(one) }))}
      />
    )
  }
  if (type === 'number' || type === 'integer') {
    return (
      <NumberInput
        step={type === 'integer' ? 1 : 'any'}
        min={minimum}
        max={maximum}
        value={typeof value === 'number' ? value : undefined}
        onChange={onChange}
      />
    )
  }
  if (type === 'array') {
    const lines = Array.isArray(value) ? value.join('\n') : ''
    return (
      <TextArea
        placeholder="One a line"
        value={lines}
        onChange={(next) => onChange(next === '' ? undefined : next.split('\n'))}
      />
    )
  }
  if (format === 'multiline')
    return <TextArea {...{ minLength, maxLength, placeholder }} value={text} onChange={onChange} />
  if (format === 'date-time') return <DateInput value={text} onChange={onChange} />
  return (
    <TextInput
      {...{ minLength, maxLength, placeholder }}
      type={TYPES[format ?? ''] ?? 'text'}
      value={text}
      onChange={onChange}
    />
  )
}
