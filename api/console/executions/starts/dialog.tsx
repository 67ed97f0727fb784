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

type ValuesProps = {
  open?: boolean
  title: string
  label: string
  text?: ReactNode
  /** What is asked for, each with the JSON that its field begins with. */
  fields: { name: string; label: string; help?: string; json: string }[]
  /** Gets the values by name, and the texts they were read from. */
  start: (
    values: Record<string, unknown>,
    key: string,
    texts: Record<string, string>,
  ) => Promise<{ executionId: string }>
  onClose: () => void
  /** What is asked besides the values. */
  children?: ReactNode
}

/** Asks for JSON values, starts an execution with them and goes to it. Ctrl+Enter in a field does it too. */
export function ValuesDialog({ open = true, text, fields, start, children, ...props }: ValuesProps) {
  const [texts, setTexts] = useState(() => Object.fromEntries(fields.map(({ name, json }) => [name, json])))
  const tried = useRef({ text: '', key: '' })
  const form = useRef<HTMLDivElement>(null)
  const send = async () => {
    const values = Object.fromEntries(Object.entries(texts).map(([name, one]) => [name, readJson(one)]))
    // A second try of the same after a broken connection must not start a second execution.
    const now = JSON.stringify(texts)
    if (tried.current.text !== now) tried.current = { text: now, key: makeKey() }
    const { executionId } = await start(values, tried.current.key, texts)
    tried.current = { text: '', key: '' }
    go(`/executions/${executionId}`)
  }
  return (
    <FormDialog {...props} open={open} wide onSubmit={send}>
      {text && <p>{text}</p>}
      {children}
      <div className="stack" ref={form}>
        {fields.map(({ name, label, help }) => (
          <Field key={name} label={label} help={help}>
            <Code
              value={texts[name] ?? ''}
              onChange={(next) => setTexts({ ...texts, [name]: next })}
              language="json"
              lines={fields.length > 1 ? 8 : 14}
              onSubmit={() => form.current?.closest('form')?.requestSubmit()}
            />
          </Field>
        ))}
      </div>
    </FormDialog>
  )
}
