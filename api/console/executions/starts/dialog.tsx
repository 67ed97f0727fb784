import { type ReactNode, useRef, useState } from 'react'
import { go } from '../../kit/address.ts'
import { Code } from '../../kit/code/code.tsx'
import { Field } from '../../kit/controls/field.tsx'
import { FormDialog } from '../../kit/overlays/dialog.tsx'
import { makeKey } from './data.ts'

/** Reads what a user typed; throws with what is wrong. */
export function readJson(text: string): unknown {
  if (text.trim() === '') return {}
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new Error(`This is not JSON: ${error instanceof Error ? error.message : String(error)}`)
  }
}

/** Values that are no objects are shown as {value}. */
export function unwrap(shown: unknown): unknown {
  const entries = Object.entries(Object(shown))
  const [first] = entries
  return entries.length === 1 && first?.[0] === 'value' && Object(first[1]) !== first[1] ? first[1] : shown
}

type Asked = {
  name: string
  label: string
  help?: string
  json: string
  folded?: boolean
  /** What helps to fill it. */
  before?: (fill: Fill) => ReactNode
}

type ValuesProps = {
  open?: boolean
  title: string
  label: string
  text?: ReactNode
  /** The fields of the dialog, each with the JSON that it begins with; a folded one is opened first. */
  fields: Asked[]
  /** Gets the values by name, and the texts they were read from. */
  start: (
    values: Record<string, unknown>,
    key: string,
    texts: Record<string, string>,
  ) => Promise<{ executionId: string }>
  onClose: () => void
  /** Further questions of the dialog; `fill` sets the JSON of a field, made of its current one. */
  children?: ReactNode | ((fill: Fill) => ReactNode)
  /** The choice made there: with another choice it is another start. */
  chosen?: string
}

/** Returns the text of a field as it was; with `make` it becomes what that makes of it. */
export type Fill = (name: string, make?: (now: string) => string) => string

/** Asks for JSON values, starts an execution with them and goes to it. Ctrl+Enter in a field does it too. */
export function ValuesDialog({
  open = true,
  text,
  fields,
  start,
  children,
  chosen = '',
  ...props
}: ValuesProps) {
  const [typed, setTyped] = useState<Record<string, string>>({})
  const tried = useRef({ text: '', key: '' })
  const form = useRef<HTMLDivElement>(null)
  const textOf = ({ name, json }: { name: string; json: string }) => typed[name] ?? json
  const fill: Fill = (name, make) => {
    const field = fields.find((one) => one.name === name)
    const text = field ? textOf(field) : ''
    if (field && make) setTyped((now) => ({ ...now, [name]: make(text) }))
    return text
  }
  const send = async () => {
    const texts = Object.fromEntries(fields.map((field) => [field.name, textOf(field)]))
    const values = Object.fromEntries(Object.entries(texts).map(([name, one]) => [name, readJson(one)]))
    // A second try of the same after a broken connection must not start a second execution.
    const now = JSON.stringify([texts, chosen])
    if (tried.current.text !== now) tried.current = { text: now, key: makeKey() }
    const { executionId } = await start(values, tried.current.key, texts)
    tried.current = { text: '', key: '' }
    go(`/executions/${executionId}`)
  }
  const draw = ({ label, help, folded, before, ...field }: Asked) => (
    <div key={field.name} className="stack">
      {before?.(fill)}
      <Field label={label} help={help} hideLabel={folded ?? false}>
        <Code
          value={textOf(field)}
          onChange={(next) => setTyped((now) => ({ ...now, [field.name]: next }))}
          language="json"
          lines={fields.length > 1 ? 8 : 14}
          onSubmit={() => form.current?.closest('form')?.requestSubmit()}
        />
      </Field>
    </div>
  )
  return (
    <FormDialog {...props} open={open} wide onSubmit={send}>
      {text && <p>{text}</p>}
      {typeof children === 'function' ? children(fill) : children}
      <div className="stack" ref={form}>
        {fields.map((field) =>
          field.folded ? (
            <details key={field.name}>
              <summary>{field.label}</summary>
              {draw(field)}
            </details>
          ) : (
            draw(field)
          ),
        )}
      </div>
    </FormDialog>
  )
}
