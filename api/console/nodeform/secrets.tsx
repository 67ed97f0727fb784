import { Field } from '../kit/field.tsx'
import { Select, TextArea, TextInput } from '../kit/input.tsx'
import type { CredentialKey } from './credentials.ts'
import { nameKey } from './schema.ts'

type KeysProps = {
  keys: readonly CredentialKey[]
  values: Record<string, string>
  onChange: (values: Record<string, string>) => void
}

/** The fields of a credential's data, as texts. */
export function CredentialKeys({ keys, values, onChange }: KeysProps) {
  return keys.map((key) => (
    <Field key={key.name} label={nameKey(key.name)} required={key.required} help={helpFor(key)}>
      <KeyInput
        credentialKey={key}
        value={values[key.name] ?? startKey(key)}
        onChange={(value) => onChange({ ...values, [key.name]: value })}
      />
    </Field>
  ))
}

function helpFor({ kind, requiredUnless }: CredentialKey): string | undefined {
  const said = [
    requiredUnless ? `Required unless ${requiredUnless.map(nameKey).join(' and ')} are given` : '',
    kind === 'list' ? 'One a line' : '',
  ].filter(Boolean)
  return said.length > 0 ? said.join('. ') : undefined
}

/** What is usual is there at first, but for secrets. */
function startKey(key: CredentialKey): string {
  return key.default === undefined || key.secret ? '' : String(key.default)
}

type InputProps = { credentialKey: CredentialKey; value: string; onChange: (value: string) => void }

function KeyInput({ credentialKey: { kind, secret, options = [] }, value, onChange }: InputProps) {
  if (kind === 'choice' || kind === 'boolean') {
    const choices = kind === 'boolean' ? ['true', 'false'] : options
    const name = (one: string) => (kind === 'boolean' ? (one === 'true' ? 'Yes' : 'No') : one)
    return (
      <Select
        empty=""
        value={value}
        onChange={onChange}
        choices={choices.map((one) => ({ value: one, label: name(one) }))}
      />
    )
  }
  if (kind === 'lines' || kind === 'list') return <TextArea rows={4} code value={value} onChange={onChange} />
  const type = secret ? 'password' : kind === 'number' ? 'number' : kind === 'url' ? 'url' : 'text'
  // Not the password of this service: browsers are not to fill it in.
  const autoComplete = secret ? 'new-password' : 'off'
  return <TextInput {...{ type, autoComplete, value, onChange }} spellCheck={false} />
}

/** What was filled in, as the API takes it. */
export function readKeys(
  keys: readonly CredentialKey[],
  values: Record<string, string>,
): Record<string, unknown> {
  const read = keys.flatMap((key): [string, unknown][] => {
    const text = values[key.name] ?? startKey(key)
    if (text.trim() === '') return []
    if (key.kind === 'number') return [[key.name, Number(text)]]
    if (key.kind === 'boolean') return [[key.name, text === 'true']]
    if (key.kind !== 'list') return [[key.name, text]]
    return [
      [
        key.name,
        text
          .split('\n')
          .map((one) => one.trim())
          .filter(Boolean),
      ],
    ]
  })
  return Object.fromEntries(read)
}
