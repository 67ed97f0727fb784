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
  nodes: { id: string; type: string; disabled?: boolean | undefined; config?: unknown }[]
  /** Saves what is not saved yet, and says which workflow it is then. */
  save?: (() => Promise<string>) | undefined
  onClose: () => void
}

/** Where an execution starts: at a MANUAL_TRIGGER, else at the first trigger. */
function findTrigger(nodes: Props['nodes']) {
  const triggers = nodes.filter(({ type, disabled }) => !disabled && type.endsWith('_TRIGGER'))
  return triggers.find(({ type }) => type === 'MANUAL_TRIGGER') ?? triggers[0]
}

/** The request to begin with. A GET has no body. */
function writeRequestFor(config: unknown): string {
  const { method } = Object(config) as { method?: string }
  const body = method === 'GET' || method === 'HEAD' ? {} : { body: {} }
  return JSON.stringify({ headers: {}, query: {}, ...body }, null, 2)
}

/** Asks for the trigger's data, or for a request to its webhook, and executes the workflow with it. */
export function ExecuteDialog({ open, teamId, id, name, nodes, save, onClose }: Props) {
  const start = findTrigger(nodes)
  const asksRequest = start?.type === 'WEBHOOK_TRIGGER'
  const field = asksRequest
    ? {
        name: 'request',
        label: 'Request',
        help: 'A call of the webhook: {method, headers, query, body}. It is read as a real call is. Ctrl+Enter executes.',
        json: sent.get(`request ${id ?? ''}`) ?? writeRequestFor(start?.config),
      }
    : {
        name: 'data',
        label: 'Data',
        help: 'A JSON object: the output of the trigger, $trigger in expressions. Ctrl+Enter executes.',
        json: sent.get(`data ${id ?? ''}`) ?? '{\n  \n}',
      }
  return (
    <ValuesDialog
      open={open}
      title={`Execute ${name}`}
      label={save ? 'Save and execute' : 'Execute'}
      onClose={onClose}
      key={field.name}
      fields={[field]}
      start={async (values, key, texts) => {
        const workflowId = save ? await save() : id!
        const given = values[field.name] as Record<string, unknown>
        const asked = asksRequest ? { request: given } : { data: given }
        const started = await executeWorkflow(workflowId, { teamId, ...asked }, key)
        sent.set(`${field.name} ${workflowId}`, texts[field.name]!)
        return started
      }}
    />
  )
}
