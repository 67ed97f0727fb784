import { useCredentials } from '../credentials/data.ts'
import { problemAt } from '../data/refusal.ts'
import { Field, FieldGroup } from '../kit/controls/field.tsx'
import { Checkbox, Select, TextInput } from '../kit/controls/input.tsx'
import { nameConstant } from '../kit/status.tsx'
import { MODEL_PROVIDERS } from '../monitoring/usage/data.ts'
import { useTeam } from '../shell/role.tsx'
import { PROVIDERS, type Provider, useDimensions } from './data.ts'

/** Who judges; '' where nothing is said. */
export type Judge = { provider: string; model: string; credentialId: string }

type JudgeProps = {
  value: Judge
  onChange: (judge: Judge) => void
  /** What the choice of nothing is called. */
  empty: string
  disabled?: boolean
  error: unknown
  /** The API's names of provider, model and credential. */
  names: readonly [string, string, string]
}

/** The provider, model and credential of a judge. A credential that does not fit the provider is not offered. */
export function JudgeFields({ value, onChange, empty, disabled = false, error, names }: JudgeProps) {
  const { teamId } = useTeam()
  const { data: credentials = [] } = useCredentials(teamId)
  const type = value.provider === '' ? null : PROVIDERS[value.provider as Provider].credential
  const fitting = credentials.filter((one) => one.type === type)
  return (
    <div className="filters">
      <Field label="Judge" error={problemAt(error, names[0])}>
        <Select
          value={value.provider}
          disabled={disabled}
          onChange={(provider) => onChange({ ...value, provider, credentialId: '' })}
          empty={empty}
          choices={Object.entries(PROVIDERS).map(([id, { label }]) => ({ value: id, label }))}
        />
      </Field>
      <Field label="Model" error={problemAt(error, names[1])}>
        <TextInput
          value={value.model}
          disabled={disabled}
          onChange={(model) => onChange({ ...value, model })}
          placeholder={empty}
          maxLength={200}
        />
      </Field>
      <Field label="Credential" error={problemAt(error, names[2])}>
        <Select
          value={value.credentialId}
          disabled={disabled || type === null}
          onChange={(credentialId) => onChange({ ...value, credentialId })}
          empty={type !== null && fitting.length === 0 ? `None of the type ${MODEL_PROVIDERS[type]}` : empty}
          choices={fitting.map(({ id, name }) => ({ value: id, label: name }))}
        />
      </Field>
    </div>
  )
}

type DimensionProps = {
  value: readonly string[]
  onChange: (names: string[]) => void
  disabled?: boolean
  help?: string
}

/** The dimensions that are judged: those that every team has, and the team's own. */
export function DimensionFields({ value, onChange, disabled = false, help }: DimensionProps) {
  const { teamId } = useTeam()
  const known = useDimensions(teamId) ?? []
  const all = [...new Set([...known, ...value])]
  return (
    <FieldGroup label="Dimensions" help={help}>
      {all.map((name) => (
        <Checkbox
          key={name}
          checked={value.includes(name)}
          disabled={disabled}
          onChange={(on) => onChange(on ? [...value, name] : value.filter((other) => other !== name))}
        >
          {nameConstant(name)}
        </Checkbox>
      ))}
    </FieldGroup>
  )
}
