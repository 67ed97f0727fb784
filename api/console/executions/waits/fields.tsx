import { Field, FieldGroup } from '../../kit/controls/field.tsx'
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
}
type Form = { title?: string; description?: string; properties?: Record<string, Schema>; required?: string[] }
type Values = Record<string, unknown>

const TYPES: Record<string, string> = { email: 'email', date: 'date', uri: 'url' }

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
      {fields.map(([name, schema]) => (
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

type FieldProps = {
  name: string
  schema: Schema
  required: boolean
  value: unknown
  onChange: (value: unknown) => void
}

function OneField({ name, schema, required, value, onChange }: FieldProps) {
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

function Input({ schema, value, onChange }: Omit<FieldProps, 'name' | 'required'>) {
  const { type, format, minLength, maxLength, minimum, maximum } = schema
  const text = String(value ?? '')
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
    return <TextArea {...{ minLength, maxLength }} value={text} onChange={onChange} />
  if (format === 'date-time') return <DateInput value={text} onChange={onChange} />
  return (
    <TextInput
      {...{ minLength, maxLength }}
      type={TYPES[format ?? ''] ?? 'text'}
      value={text}
      onChange={onChange}
    />
  )
}
