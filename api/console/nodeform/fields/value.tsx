import { useId } from 'react'
import { ExpressionInput } from '../../expressions/input.tsx'
import { TextInput } from '../../kit/controls/input.tsx'
import { WorkflowChoice } from '../../workflows/choice.tsx'
import { canShow, kindOfSchema } from '../schema.ts'
import { useForm } from '../scope.ts'
import { CredentialField } from './credential.tsx'
import type { ValueProps } from './field.ts'
import { JsonInput } from './json.tsx'
import { FlagField, Labelled, LeafField, MisfitField } from './leaf.tsx'
import { ListField } from './list.tsx'
import { MapField } from './map.tsx'
import { ObjectField } from './object.tsx'
import { type Special, specialOf } from './special.ts'
import { VariantField } from './variant.tsx'

/** One value of a config, by the control that fits its schema. */
export function ValueField({ value: given, ...rest }: ValueProps) {
  // Where null may stand it means the same as nothing.
  const isNothing = given === null && rest.schema.anyOf?.some(({ type }) => type === 'null')
  const props = { ...rest, value: isNothing ? undefined : given }
  const { schema, path, value } = props
  const special = specialOf(path, schema)
  // An entry that was emptied is an empty text, whatever its kind.
  if (value !== undefined && value !== '' && !canShow(schema, value)) return <MisfitField {...props} />
  if (special === 'condition' && typeof value === 'object') return <MisfitField {...props} />
  if (special === 'credential') return <CredentialField {...props} />
  if (special) return <SpecialField {...props} special={special} />
  switch (kindOfSchema(schema)) {
    case 'any':
    case 'variants':
      return <VariantField {...props} Value={ValueField} />
    case 'list':
      return <ListField {...props} Value={ValueField} />
    case 'map':
      return <MapField {...props} Value={ValueField} />
    case 'object':
      return <ObjectField {...props} Value={ValueField} />
    case 'flag':
      return <FlagField {...props} />
    default:
      return <LeafField {...props} />
  }
}

/** Fields that are more than their schema says. */
function SpecialField(props: ValueProps & { special: Exclude<Special, 'credential'> }) {
  const { special, value, edit, required } = props
  const text = value === undefined ? '' : String(value)
  const change = (next: string) => edit(() => (next === '' && !required ? undefined : next))
  const inputs = {
    code: () => (
      <ExpressionInput mode="whole" language="javascript" lines={10} value={text} onChange={change} />
    ),
    json: () => <JsonInput value={value} onChange={(next) => edit(() => next)} />,
    timezone: () => <TimezoneInput value={text} onChange={change} />,
    sql: () => <ExpressionInput language="sql" lines={5} value={text} onChange={change} />,
    whole: () => <ExpressionInput mode="whole" lines={3} value={text} onChange={change} />,
    condition: () => <ExpressionInput mode="whole" as="condition" value={text} onChange={change} />,
    workflow: () =>
      text.includes('{{') ? (
        <ExpressionInput value={text} onChange={change} />
      ) : (
        <WorkflowChoice value={text} placeholder="Choose a workflow" onChange={change} />
      ),
  }
  return <Labelled {...props}>{inputs[special]()}</Labelled>
}

const ZONES = ['UTC', ...Intl.supportedValuesOf('timeZone')]

/** A time zone, found by a part of its name. */
function TimezoneInput({ value, onChange }: { value: string; onChange: (text: string) => void }) {
  const { readOnly } = useForm()
  const id = useId()
  return (
    <>
      <TextInput {...{ value, onChange, readOnly }} list={id} placeholder="UTC" spellCheck={false} />
      <datalist id={id}>
        {ZONES.map((zone) => (
          <option key={zone} value={zone} />
        ))}
      </datalist>
    </>
  )
}
