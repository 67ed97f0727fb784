import { useState } from 'react'
import { Field } from '../kit/field.tsx'
import { Checkbox, NumberInput, Select, TextInput } from '../kit/input.tsx'
import { nameConstant } from '../kit/status.tsx'
import { WorkflowChoice } from '../workflows/choice.tsx'
import { CredentialField } from './credential.tsx'
import { ExpressionInput } from './expression/input.tsx'
import { JsonInput } from './json.tsx'
import { ListField } from './list.tsx'
import { MapField } from './map.tsx'
import { ObjectField } from './object.tsx'
import { chooseVariant, fits, kindOf, listVariants, nameVariant, type Schema, startValue } from './schema.ts'
import { faultsAt, tellFaults, useForm } from './scope.ts'
import { helpFor, linesFor, type Special, specialOf } from './words.ts'

export type ValueProps = {
  schema: Schema
  /** From the node: `config.headers.accept`. */
  path: string
  label: string
  value: unknown
  /** undefined takes it out. */
  onChange: (value: unknown) => void
  required?: boolean
  hideLabel?: boolean
}

/** One value of a config, by the control that fits its schema. */
export function ValueField(props: ValueProps) {
  const { node } = useForm()
  const special = specialOf(node.type, props.path, props.schema)
  if (special) return <SpecialField {...props} special={special} />
  switch (kindOf(props.schema)) {
    case 'any':
    case 'variants':
      return <VariantField {...props} />
    case 'list':
      return <ListField {...props} />
    case 'map':
      return <MapField {...props} />
    case 'object':
      return <ObjectField {...props} />
    case 'flag':
      return <FlagField {...props} />
    default:
      return <LeafField {...props} />
  }
}

/** A label and one input, with help and what is wrong. */
function LeafField(props: ValueProps) {
  const { schema, path, label, value, required, hideLabel } = props
  const { node, faults } = useForm()
  return (
    <Field
      label={label}
      help={hideLabel ? undefined : helpFor(node.type, path, schema)}
      error={tellFaults(faultsAt(faults, path))}
      required={required ?? false}
      hideLabel={hideLabel ?? false}
    >
      <Leaf {...props} value={value} />
    </Field>
  )
}

function Leaf({ schema, path, value, onChange, required }: ValueProps) {
  const { readOnly } = useForm()
  const emptied = (text: string) => (text === '' && !required ? undefined : text)
  const text = typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value)
  switch (kindOf(schema)) {
    case 'choice':
    case 'constant':
      return <Choice {...{ schema, value, onChange }} required={required ?? false} disabled={readOnly} />
    case 'number':
      return (
        <NumberInput
          min={schema.minimum}
          max={schema.maximum}
          step={schema.type === 'integer' ? 1 : 'any'}
          placeholder={schema.default === undefined ? '' : String(schema.default)}
          readOnly={readOnly}
          value={typeof value === 'number' ? value : undefined}
          onChange={onChange}
        />
      )
    case 'text':
      return (
        <TextInput
          maxLength={schema.maxLength}
          spellCheck={false}
          readOnly={readOnly}
          value={text}
          onChange={(next) => onChange(emptied(next))}
        />
      )
    case 'expression':
      return (
        <ExpressionInput
          value={text}
          onChange={(next) => onChange(emptied(next))}
          lines={linesFor(path)}
          placeholder={typeof schema.default === 'string' ? schema.default : ''}
        />
      )
    default:
      return <JsonInput value={value} onChange={onChange} />
  }
}

type ChoiceProps = Pick<ValueProps, 'schema' | 'value' | 'onChange'> & {
  required: boolean
  disabled: boolean
}

function Choice({ schema, value, onChange, required, disabled }: ChoiceProps) {
  const values = schema.enum ?? [schema.const as string]
  const usual = schema.default === undefined ? 'Not set' : `${nameChoice(schema.default)} (default)`
  return (
    <Select
      disabled={disabled}
      {...(required && value !== undefined ? {} : { empty: usual })}
      value={value === undefined ? '' : String(values.indexOf(value as string))}
      onChange={(next) => onChange(next === '' ? undefined : values[Number(next)])}
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
function FlagField({ schema, path, label, value, onChange, required }: ValueProps) {
  const { node, faults, readOnly } = useForm()
  const usual = schema.default === true
  const help = helpFor(node.type, path, schema)
  const wrong = tellFaults(faultsAt(faults, path))
  return (
    <div className="field">
      <Checkbox
        checked={value === undefined ? usual : value === true}
        disabled={readOnly}
        onChange={(on) => onChange(on === usual && !required ? undefined : on)}
      >
        {label}
      </Checkbox>
      {help && <p className="help">{help}</p>}
      {wrong && <p className="wrong">{wrong}</p>}
    </div>
  )
}

/** A value of several kinds: which one is chosen beside the label. */
function VariantField(props: ValueProps) {
  const { schema, label, value, onChange, hideLabel } = props
  const { readOnly } = useForm()
  const variants = listVariants(schema)
  const [picked, setPicked] = useState<number | null>(null)
  // An entry of a list or a table that is emptied is an empty text, whatever its kind.
  const isEmpty = value === undefined || value === ''
  const holds = picked !== null && (isEmpty || fits(variants[picked]!, value))
  const chosen = holds ? picked : chooseVariant(variants, value)
  const pick = (text: string) => {
    const next = variants[Number(text)]!
    setPicked(Number(text))
    onChange(convert(next, value))
  }
  const inner = { ...variants[chosen]!, ...(schema.default === undefined ? {} : { default: schema.default }) }
  // What is known of the whole is known of its variant.
  const given = { ...inner, ...(schema.description ? { description: schema.description } : {}) }
  const change = (next: unknown) => {
    if (next === undefined) setPicked(chosen)
    onChange(next)
  }
  const field = <ValueField {...props} schema={given} onChange={change} />
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
  const kind = kindOf(schema)
  if (value === undefined)
    return ['number', 'choice', 'expression'].includes(kind) ? undefined : startValue(schema)
  if (kind === 'json' || fits(schema, value)) return value
  if (kind === 'expression' || kind === 'text')
    return typeof value === 'object' ? JSON.stringify(value) : String(value)
  if (kind === 'number') return value !== '' && !Number.isNaN(Number(value)) ? Number(value) : undefined
  if (kind === 'list' && fits(schema, [value])) return [value]
  return kind === 'choice' ? undefined : startValue(schema)
}

/** Fields that are more than their schema says. */
function SpecialField(props: ValueProps & { special: Special }) {
  const { special, schema, path, label, value, onChange, required, hideLabel } = props
  const { node, faults } = useForm()
  if (special === 'credential') return <CredentialField {...props} />
  const text = value === undefined ? '' : typeof value === 'string' ? value : String(value)
  const change = (next: string) => onChange(next === '' && !required ? undefined : next)
  const inputs = {
    code: <ExpressionInput mode="whole" language="javascript" lines={10} value={text} onChange={change} />,
    json: <JsonInput value={value} onChange={onChange} />,
    sql: <ExpressionInput language="sql" lines={5} value={text} onChange={change} />,
    whole: <ExpressionInput mode="whole" lines={3} value={text} onChange={change} />,
    condition: <ExpressionInput mode="whole" as="condition" value={text} onChange={change} />,
    workflow: text.includes('{{') ? (
      <ExpressionInput value={text} onChange={change} />
    ) : (
      <WorkflowChoice value={text} placeholder="Choose a workflow" onChange={change} />
    ),
  }
  return (
    <Field
      label={label}
      help={hideLabel ? undefined : helpFor(node.type, path, schema)}
      error={tellFaults(faultsAt(faults, path))}
      required={required ?? false}
      hideLabel={hideLabel ?? false}
    >
      {inputs[special]}
    </Field>
  )
}
