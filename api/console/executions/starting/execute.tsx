import { useRef, useState } from 'react'
import { go } from '../../kit/address.ts'
import { Code } from '../../kit/code/code.tsx'
import { Field } from '../../kit/controls/field.tsx'
import { FormDialog } from '../../kit/overlays/dialog.tsx'
import { executeWorkflow, makeKey } from './data.ts'
import { readJson } from './starting.tsx'

/** The text that was sent last to each workflow, as long as the console is open. */
const sent = new Map<string, string>()

type Props = {
  open: boolean
  teamId: string
  /** Missing of a workflow that is not saved yet. */
  id: string | undefined
  name: string
  /** Saves what is not saved yet, and says which workflow it is then. */
  save?: (() => Promise<string>) | undefined
  onClose: () => void
}

/** Asks for the trigger's data, starts an execution and goes to it. */
export function ExecuteDialog({ open, teamId, id, name, save, onClose }: Props) {
  const [text, setText] = useState(() => sent.get(id ?? '') ?? '{\n  \n}')
  const tried = useRef({ text: '', key: '' })
  const form = useRef<HTMLDivElement>(null)
  const start = async () => {
    const data = readJson(text) as Record<string, unknown>
    const workflowId = save ? await save() : id!
    // A second try of the same after a broken connection must not start a second execution.
    if (tried.current.text !== text || tried.current.key === '') tried.current = { text, key: makeKey() }
    const { executionId } = await executeWorkflow(workflowId, { teamId, data }, tried.current.key)
    tried.current = { text: '', key: '' }
    sent.set(workflowId, text)
    go(`/executions/${executionId}`)
  }
  return (
    <FormDialog
      open={open}
      wide
      onClose={onClose}
      title={`Execute ${name}`}
      label={save ? 'Save and execute' : 'Execute'}
      onSubmit={start}
    >
      <div ref={form}>
        <Field
          label="Data"
          help="A JSON object: the output of the trigger, $trigger in expressions. Ctrl+Enter executes."
        >
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
