import { Button } from '../../kit/controls/button.tsx'
import { Icon } from '../../kit/controls/icon.tsx'
import { faultsAt, tellFaults, useForm } from '../scope.ts'
import type { Edit } from './field.ts'

type UnknownProps = {
  held: Record<string, unknown>
  known: readonly string[]
  path: string
  /** Edits the object that has the keys. */
  edit: (edit: Edit) => void
}

const SHOWN = 200

/** Keys of an object that no setting has: they are shown and kept, renamed or removed. */
export function UnknownKeys({ held, known, path, edit }: UnknownProps) {
  const { faults, readOnly } = useForm()
  const unknown = Object.keys(held).filter((key) => !known.includes(key))
  if (unknown.length === 0) return null
  const rebuild = (change: (entry: [string, unknown]) => [string, unknown][]) =>
    edit((now) => Object.fromEntries(Object.entries(Object(now)).flatMap(change)))
  const rename = (from: string, to: string) => rebuild(([key, value]) => [[key === from ? to : key, value]])
  const remove = (from: string) => rebuild((entry) => (entry[0] === from ? [] : [entry]))
  return (
    <div className="others">
      {unknown.map((key) => {
        const said = tellFaults(faultsAt(faults, `${path}.${key}`))
        const similar = suggestKey(said ?? '', key, known)
        const shown = JSON.stringify(held[key]) ?? ''
        return (
          <div key={key} className="other" role="status">
            <p>
              <Icon name="warning" size={13} /> {said ?? `The key “${key}” is unknown here, and left out.`}
            </p>
            <p>
              <code>{key}</code>{' '}
              <code className="quiet">{shown.length > SHOWN ? `${shown.slice(0, SHOWN)}…` : shown}</code>
            </p>
            {!readOnly && (
              <div className="row">
                {similar && !(similar in held) && (
                  <Button small onClick={() => rename(key, similar)}>{`Rename it to ${similar}`}</Button>
                )}
                <Button small onClick={() => remove(key)}>{`Remove ${key}`}</Button>
              </div>
            )}
          </div>
        )
      })}
    </div>
  )
}

/** What the API suggests; before it was asked, a key with the same letters. */
function suggestKey(said: string, key: string, known: readonly string[]): string | undefined {
  const named = /did you mean "([^"]+)"/.exec(said)?.[1]
  if (named && known.includes(named)) return named
  const letters = (text: string) => [...text.toLowerCase()].sort().join('')
  return known.find((one) => letters(one) === letters(key))
}
