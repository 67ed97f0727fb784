import { Field } from '../../kit/controls/field.tsx'
import { Select } from '../../kit/controls/input.tsx'

export type Version = 'current' | 'same'

type VersionProps = {
  value: Version
  onChange: (version: Version) => void
  /** The version of the execution that is repeated; undefined of several. */
  same: number | undefined
  /** The workflow's version now; undefined of several. */
  current: number | undefined
}

/** Asks which graph a new execution follows. The current one comes first: it is the one that was repaired. */
export function VersionChoice({ value, onChange, same, current }: VersionProps) {
  const name = (version: number | undefined, words: string) =>
    version === undefined ? `The ${words}` : `Version ${version}, the ${words}`
  return (
    <Field label="Graph">
      <Select
        value={value}
        onChange={(chosen) => onChange(chosen as Version)}
        choices={[
          {
            value: 'current',
            label: name(current, current === undefined ? 'current versions' : 'current one'),
          },
          {
            value: 'same',
            label: name(same, same === undefined ? 'versions that they had' : 'one that it had'),
          },
        ]}
      />
    </Field>
  )
}
