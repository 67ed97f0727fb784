import { ExpressionInput } from '../../expressions/input.tsx'
import { Field } from '../../kit/controls/field.tsx'
import { Checkbox, NumberInput, Select, TextInput } from '../../kit/controls/input.tsx'
import { nameConstant } from '../../kit/status.tsx'
import { kindOfSchema } from '../schema.ts'
import { faultsAt, tellFaults, useForm } from '../scope.ts'
import type { ValueProps } from './field.ts'
import { JsonInput } from './json.tsx'
import { linesFor } from './special.ts'

/** A label and one input, with help and what is wrong. */
export function Labelled({
  schema,
  path,
  label,
  required = false,
  hideLabel = false,
  children,
}: ValueProps & { children: React.ReactNode }) {
  const { faults } = useForm()
  const error = tellFaults(faultsAt(faults, path))
  const help = hideLabel ? undefined : schema.description
  return <Field {...{ label, help, error, required, hideLabel }}>{children}</Field>
}

/** A value that one input is enough for. */
export function LeafField(props: ValueProps) {
  return (
    <Labelled {...props}>
      <Leaf {...props} />
    </Labelled>
  )
}

function Leaf({ schema, path, value, edit, required = false }: ValueProps) {
  const { readOnly } = useForm()
  const set = (next: unknown) => edit(() => next)
  const setText = (text: string) => set(text === '' && !required ? undefined : text)
  const text = typeof value === 'string' ? value : ''
  const usual = schema.default ?? undefined
  switch (kindOfSchema(schema)) {
    case 'choice':
    case 'constant':
      return <Choice {...{ schema, value, set, required }} disabled={readOnly} />
    case 'number':
      return (
        <NumberInput
          min={schema.minimum}
          max={schema.maximum}
          step={schema.type === 'integer' ? 1 : 'any'}
          placeholder={usual === undefined ? '' : String(usual)}
          readOnly={readOnly}
          value={typeof value === 'number' ? value : undefined}
          onChange={set}
        />
      )
    case 'text':
      return (
        <TextInput
          maxLength={schema.maxLength}
          spellCheck={false}
          readOnly={readOnly}
          value={text}
          onChange={setText}
        />
      )
    case 'expression':
      return (
        <ExpressionInput
          value={text}
          onChange={setText}
          lines={linesFor(path)}
          placeholder={typeof usual === 'string' ? usual : ''}
        />
      )
    default:
      return <JsonInput value={value} onChange={set} />
  }
}

type ChoiceProps = Pick<ValueProps, 'schema' | 'value'> & {
  set: (next: unknown) => void
  required: boolean
  disabled: boolean
}

function Choice({ schema, value, set, required, disabled }: ChoiceProps) {
  const values = schema.enum ?? [schema.const as string]
  const usual = schema.default === undefined ? 'Not set' : `${nameChoice(schema.default)} (default)`
  return (
    <Select
      disabled={disabled}
      {...(required && value !== undefined ? {} : { empty: usual })}
      value={value === undefined ? '' : String(values.indexOf(value as string))}
      onChange={(next) => set(next === '' ? undefined : values[Number(next)])}
      choices={values.map((one, at) => ({ value: String(at), label: nameChoice(one) }))}
    />
  )
}

/** GET and json stay as they are; cancelOther reads as words. */
function nameChoice(value: unknown): string {
  const text = String(value)
  if (/^[A-Z]+_[A-Z_]+$/.test(text)) return nameConstant(text)
  return /[a-z][A-Z]/.test(text) ? text.replace(/([a-z])([A-Z])/g, '$1 $2').toLowerCase() : text
}

/** On, off, or as it is by default, which is not written into the config. */
export function FlagField({ schema, path, label, value, edit, required }: ValueProps) {
  const { faults, readOnly } = useForm()
  const usual = schema.default === true
  const wrong = tellFaults(faultsAt(faults, path))
  return (
    <div className="field">
      <Checkbox
        checked={value === undefined ? usual : value === true}
        disabled={readOnly}
        onChange={(on) => edit(() => (on === usual && !required ? undefined : on))}
      >
        {label}
      </Checkbox>
      {schema.description && <p className="help">{schema.description}</p>}
      {wrong && <p className="wrong">{wrong}</p>}
    </div>
  )
}

/** A value that the setting does not take: it is kept, and shown as what it is. */
export function MisfitField(props: ValueProps) {
  const { value, edit } = props
  return (
    <Labelled {...props}>
      <JsonInput value={value} onChange={(next) => edit(() => next)} lines={3} />
      <p className="wrong">The setting does not take this value. It stays as it is until you change it.</p>
    </Labelled>
  )
}
