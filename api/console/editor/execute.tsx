import { useRef, useState } from 'react'
import { startExecution } from '../data/editing.ts'
import { go } from '../kit/address.ts'
import { Code } from '../kit/code.tsx'
import { FormDialog } from '../kit/dialog.tsx'
import { Field } from '../kit/field.tsx'

/** What was sent last to each workflow, as long as the console is open. */
const sent = new Map<string, string>()

type Props = {
  teamId: string
  id: string | undefined
  name: string
  /** Saves what is not saved yet, and says which workflow it is then. */
  save: (() => Promise<string>) | undefined
  onClose: () => void
}

/** Asks for the trigger's data, starts an execution and goes to it. */
export function ExecuteDialog({ teamId, id, name, save, onClose }: Props) {
  const [text, setText] = useState(sent.get(id ?? '') ?? '{\n  \n}')
  const tried = useRef({ text: '', key: '' })
  const start = async () => {
    const data = readData(text)
    const workflowId = save ? await save() : id!
    // A second try of the same after a broken connection must not start a second execution.
    if (tried.current.text !== text || tried.current.key === '') tried.current = { text, key: makeKey() }
    const { executionId } = await startExecution(workflowId, teamId, data, tried.current.key)
    sent.set(workflowId, text)
    go(`/executions/${executionId}`)
  }
  return (
    <FormDialog
      open
      wide
      onClose={onClose}
      title={`Execute ${name}`}
      label={save ? 'Save and execute' : 'Execute'}
      onSubmit={start}
    >
      <Field
        label="Data"
        help="A JSON object: the output of the trigger, $trigger in expressions. Ctrl+Enter executes."
      >
        <Code
          value={text}
          onChange={setText}
          lines={14}
          onSubmit={() => document.querySelector<HTMLFormElement>('[role=dialog] form')?.requestSubmit()}
        />
      </Field>
    </FormDialog>
  )
}

function readData(text: string): unknown {
  if (text.trim() === '') return {}
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new Error(`The data is no JSON: ${(error as Error).message}`)
  }
}

/** crypto.randomUUID is for secure origins; an installation in a private network may have none. */
function makeKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, '0'))
    .join('')
}
