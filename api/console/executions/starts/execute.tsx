import { executeWorkflow } from './data.ts'
import { ValuesDialog } from './dialog.tsx'

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

/** Asks for the trigger's data, and executes the workflow with it. */
export function ExecuteDialog({ open, teamId, id, name, save, onClose }: Props) {
  return (
    <ValuesDialog
      open={open}
      title={`Execute ${name}`}
      label={save ? 'Save and execute' : 'Execute'}
      onClose={onClose}
      fields={[
        {
          name: 'data',
          label: 'Data',
          help: 'A JSON object: the output of the trigger, $trigger in expressions. Ctrl+Enter executes.',
          json: sent.get(id ?? '') ?? '{\n  \n}',
        },
      ]}
      start={async ({ data }, key, texts) => {
        const workflowId = save ? await save() : id!
        const started = await executeWorkflow(
          workflowId,
          { teamId, data: data as Record<string, unknown> },
          key,
        )
        sent.set(workflowId, texts.data!)
        return started
      }}
    />
  )
}
