import { Field } from '../kit/controls/field.tsx'
import { Checkbox, Select, TextArea, TextInput } from '../kit/controls/input.tsx'
import { nameKey } from '../kit/names.ts'
import type { CredentialKey } from './data.ts'

/** The typed text for each key; a key in `dropped` is to be removed. */
export type Typed = { texts: Record<string, string>; dropped: Record<string, boolean> }

/** The fields as they are at first: a new credential has the defaults, an old one keeps what is left empty. */
export function startKeys(keys: readonly CredentialKey[], isNew: boolean): Typed {
  const given = keys.flatMap((key) =>
    isNew && key.default !== undefined && !key.secret ? [[key.name, String(key.default)]] : [],
  )
  return { texts: Object.fromEntries(given), dropped: {} }
}

/** The data that was typed: keys without a text are left out, and null is a key that is to be removed. */
export function readKeys(keys: readonly CredentialKey[], { texts, dropped }: Typed): Record<string, unknown> {
  const read = keys.map(({ name, kind }) => [name, dropped[name] ? null : readKey(kind, texts[name] ?? '')])
  return Object.fromEntries(read.filter(([, value]) => value !== undefined))
}

function readKey(kind: CredentialKey['kind'], text: string): unknown {
  if (text.trim() === '') return undefined
  if (kind === 'number') return Number(text)
  if (kind === 'boolean') return text === 'true'
  if (kind !== 'list') return text
  return text
    .split('\n')
    .map((one) => one.trim())
    .filter(Boolean)
}

type KeyFieldsProps = {
  keys: readonly CredentialKey[]
  typed: Typed
  onChange: (typed: Typed) => void
  /** The names of the keys that the credential has already; without it, it is a new one. */
  has?: readonly string[] | undefined
  problemOf: (name: string) => string | undefined
}

/** The fields of a credential's data, made of what GET /api/credential-types says of its type. */
export function KeyFields({ keys, typed, onChange, has, problemOf }: KeyFieldsProps) {
  return keys.map((key) => {
    const { name, kind, required, requiredUnless, requiredUnlessIs: is } = key
    const known = has?.includes(name) ?? false
    const help = [
      known ? (key.secret ? 'set, and never shown' : 'set') : '',
      requiredUnless
        ? `required unless ${requiredUnless.map(nameKey).join(' and ')} ${is === undefined ? (requiredUnless.length === 1 ? 'is given' : 'are given') : `is ${is}`}`
        : '',
      kind === 'list' ? 'one a line' : '',
      has && key.directs ? 'decides where secrets go: a change needs all of them again' : '',
    ].filter(Boolean)
    const dropped = typed.dropped[name] ?? false
    const text = typed.texts[name] ?? ''
    const change = (next: string) => onChange({ ...typed, texts: { ...typed.texts, [name]: next } })
    return (
      <div key={name}>
        <Field
          label={nameKey(name)}
          required={required && !has}
          help={help.length > 0 ? help.join(', ') : undefined}
          error={problemOf(name)}
        >
          <KeyInput credentialKey={key} value={text} onChange={change} disabled={dropped} />
        </Field>
        {known && !required && (
          <Checkbox
            checked={dropped}
            onChange={(drop) => onChange({ ...typed, dropped: { ...typed.dropped, [name]: drop } })}
          >
            Remove {nameKey(name)}
          </Checkbox>
        )}
      </div>
    )
  })
}

type KeyInputProps = {
  credentialKey: CredentialKey
  value: string
  onChange: (value: string) => void
  disabled: boolean
}

function KeyInput({ credentialKey: { kind, secret, options }, ...props }: KeyInputProps) {
  if (kind === 'choice' || kind === 'boolean') {
    const values = kind === 'boolean' ? ['true', 'false'] : (options ?? [])
    const choices = values.map((value) => ({
      value,
      label: kind === 'boolean' ? (value === 'true' ? 'Yes' : 'No') : value,
    }))
    return <Select {...props} empty="" choices={choices} />
  }
  if (kind === 'lines' || kind === 'list') return <TextArea {...props} code rows={kind === 'list' ? 2 : 4} />
  const type = secret ? 'password' : kind === 'number' ? 'number' : kind === 'url' ? 'url' : 'text'
  // Not the password of this service: browsers are not to fill it in.
  const autoComplete = secret ? 'new-password' : 'off'
  return <TextInput {...props} type={type} step="any" autoComplete={autoComplete} spellCheck={false} />
}
