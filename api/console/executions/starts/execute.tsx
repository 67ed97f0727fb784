import { useState } from 'react'
import { Button } from '../../kit/controls/button.tsx'
import { Field } from '../../kit/controls/field.tsx'
import { Checkbox, Select } from '../../kit/controls/input.tsx'
import { Age } from '../../kit/time.tsx'
import { useRole } from '../../shell/role.tsx'
import { executeWorkflow } from './data.ts'
import { type Fill, ValuesDialog } from './dialog.tsx'
import { Examples } from './examples.tsx'
import { findReuse, isStart, type StartNode, useLastRun, useRealCall } from './last.ts'
import { PinChoice } from './pins.tsx'

/** The text that was sent last to each workflow, as long as the console is open. */
const sent = new Map<string, string>()

type Props = {
  teamId: string
  /** Missing of a workflow that is not saved yet. */
  id: string | undefined
  name: string
  nodes: readonly StartNode[]
  /** The version that is executed, if it is not the published one. */
  about?: string | undefined
  /** Its version, once all is saved; undefined for what is published. */
  findVersion?: () => number | undefined
  /** The node outside of loops that is executed with what leads to it; missing for all. */
  until?: { id: string; name: string } | undefined
  /** Saves what is not saved yet, and says which workflow it is then. */
  save?: (() => Promise<string>) | undefined
  onClose: () => void
}

/** The request to begin with. A GET has no body. */
function writeRequestFor(config: unknown): string {
  const { method } = Object(config) as { method?: string }
  const body = method === 'GET' || method === 'HEAD' ? {} : { body: {} }
  return JSON.stringify({ headers: {}, query: {}, ...body }, null, 2)
}

/** What the trigger puts out: its data, or a request to its webhook. */
function fieldOf(start: StartNode | undefined, id = '') {
  return start?.type === 'WEBHOOK_TRIGGER'
    ? {
        name: 'request' as const,
        label: 'Request',
        help: 'A call of the webhook: {method, headers, query, body}. It is read as a real call is. Ctrl+Enter executes.',
        json: sent.get(`request ${id} ${start.id}`) ?? writeRequestFor(start.config),
      }
    : {
        name: 'data' as const,
        label: 'Data',
        help: 'A JSON object: the output of the trigger, $trigger in expressions. Ctrl+Enter executes.',
        json: sent.get(`data ${id} ${start?.id}`) ?? '{\n  \n}',
      }
}

const PINNED = {
  name: 'pinned',
  label: 'Pinned outputs',
  help: 'A node with an output here is not executed, but has it: {"node": {"output": {}, "handle": null}}.',
  json: '{}',
  folded: true,
}

/** Asks for what the trigger puts out, and executes the workflow with it, or a part of it. */
export function ExecuteDialog(props: Props) {
  const { teamId, id, name, nodes, about, findVersion, until, save, onClose } = props
  const builds = useRole(teamId)('BUILDER')
  const starts = nodes.filter(isStart)
  const usual = starts.find(({ type }) => type === 'MANUAL_TRIGGER') ?? starts[0]
  const [picked, pick] = useState<string>()
  const [wanted, want] = useState(true)
  const last = useLastRun(teamId, id, builds)
  const reusable = until && findReuse(last.data, nodes)
  const reuses = reusable !== undefined && wanted
  const start = starts.find((one) => one.id === (reuses ? reusable : picked)) ?? usual
  const field = fieldOf(start, id)
  const pinned = {
    ...PINNED,
    before: (fill: Fill) => <PinChoice nodes={nodes} run={last.data ?? undefined} fill={fill} />,
  }
  const execute = async (
    values: Record<string, unknown>,
    key: string,
    texts: Record<string, string>,
  ): Promise<{ executionId: string }> => {
    const workflowId = save ? await save() : id!
    const version = findVersion?.()
    const pins = (values.pinned ?? {}) as NonNullable<Parameters<typeof executeWorkflow>[1]['pinned']>
    const json = {
      teamId,
      ...(reuses
        ? { reuseFrom: last.data!.id }
        : { [field.name]: values[field.name] as Record<string, unknown> }),
      ...(start === usual ? {} : { trigger: start?.id }),
      ...(until ? { until: until.id } : {}),
      ...(version === undefined ? {} : { version }),
      ...(Object.keys(pins).length > 0 ? { pinned: pins } : {}),
    }
    const started = await executeWorkflow(workflowId, json, key)
    if (!reuses) sent.set(`${field.name} ${workflowId} ${start?.id}`, texts[field.name]!)
    return started
  }
  const act = until ? `Execute to ${until.name}` : 'Execute'
  return (
    <ValuesDialog
      open
      title={until ? act : `Execute ${name}`}
      label={save ? 'Save and execute' : 'Execute'}
      {...(about ? { text: about } : {})}
      onClose={onClose}
      fields={[...(reuses ? [] : [field]), ...(builds ? [pinned] : [])]}
      chosen={JSON.stringify([start?.id, reuses])}
      start={execute}
    >
      {(fill) => (
        <>
          {reusable !== undefined && last.data && (
            <Checkbox checked={wanted} onChange={want}>
              <span>
                Go on from the last execution (<Age at={last.data.createdAt} />
                ): its input, and the outputs of nodes that have not changed since
              </span>
            </Checkbox>
          )}
          {starts.length > 1 && !reuses && (
            <Field label="Start at">
              <Select
                value={start?.id ?? ''}
                onChange={pick}
                choices={starts.map((one) => ({ value: one.id, label: one.name || one.id }))}
              />
            </Field>
          )}
          {!reuses && start?.type === 'WEBHOOK_TRIGGER' && (
            <RealCall teamId={teamId} id={id} start={start} fill={fill} />
          )}
          {!reuses && id && start && (
            <Examples
              key={start.id}
              workflowId={id}
              trigger={start.id}
              field={field.name}
              fill={fill}
              builds={builds}
            />
          )}
        </>
      )}
    </ValuesDialog>
  )
}

type RealCallProps = { teamId: string; id: string | undefined; start: StartNode; fill: Fill }

/** Offers the last call that came from outside. */
function RealCall({ teamId, id, start, fill }: RealCallProps) {
  const { data } = useRealCall(teamId, id, start.id)
  if (!data) return null
  return (
    <div className="row">
      <Button small icon="link" onClick={() => fill('request', () => JSON.stringify(data.request, null, 2))}>
        Fill in the last real call
      </Button>
      <span className="quiet">
        It came <Age at={data.at} />.
      </span>
    </div>
  )
}
