import { useRef, useState } from 'react'
import { executeWorkflow, makeKey } from '../data/launch.ts'
import { Refusal } from '../data/refusal.ts'
import { go } from '../kit/address.ts'
import { Code } from '../kit/code.tsx'
import { FormDialog } from '../kit/dialog.tsx'
import { Field } from '../kit/field.tsx'

/** What was sent last to each workflow, as long as the page is open. */
const sent = new Map<string, string>()

type ExecuteProps = {
  open: boolean
  onClose: () => void
  workflow: { id: string; teamId: string; name: string }
}

/** Asks for the trigger's data, starts an execution and goes to it. */
export function ExecuteDialog({ open, onClose, workflow: { id, teamId, name } }: ExecuteProps) {
  const [text, setText] = useState(() => sent.get(id) ?? '{}')
  const tried = useRef({ text: '', key: '' })
  const form = useRef<HTMLDivElement>(null)
  const start = async () => {
    const data = readObject(text)
    // A second try of the same after a broken connection must not start a second execution.
    if (tried.current.text !== text) tried.current = { text, key: makeKey() }
    const { executionId } = await executeWorkflow({ id, teamId, data, key: tried.current.key })
    tried.current = { text: '', key: '' }
    sent.set(id, text)
    go(`/executions/${executionId}`)
  }
  return (
    <FormDialog open={open} onClose={onClose} title={`Execute ${name}`} label="Execute" wide onSubmit={start}>
      <div ref={form}>
        <Field label="Data" help="A JSON object: the output of the trigger, $trigger in expressions.">
          <Code
            value={text}
            onChange={setText}
            language="json"
            lines={14}
            onSubmit={() => form.current?.closest('form')?.requestSubmit()}
          />
        </Field>
      </div>
    </FormDialog>
  )
}

function readObject(text: string): Record<string, unknown> {
  if (text.trim() === '') return {}
  try {
    return JSON.parse(text) as Record<string, unknown>
  } catch (error) {
    throw new Refusal(400, `This is not JSON: ${(error as Error).message}`)
  }
}
