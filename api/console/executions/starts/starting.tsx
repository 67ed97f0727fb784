import { useState } from 'react'
import { go } from '../../kit/address.ts'
import { FormDialog } from '../../kit/overlays/dialog.tsx'
import type { Run } from '../live.ts'
import { executeWorkflow, makeKey, recoverExecution, runNode } from './data.ts'
import { ValuesDialog } from './dialog.tsx'
import { type Version, VersionChoice } from './version.tsx'

function writeJson(value: unknown): string {
  return JSON.stringify(value ?? {}, null, 2)
}

type RecoverProps = {
  run: Run
  how: 'retry' | 'rerun'
  /** The workflow's newest version. */
  newest: number | undefined
  onClose: () => void
}

/** Asks how to take up an execution that has ended, and goes to the new one. */
export function RecoverDialog({ run, how, newest, onClose }: RecoverProps) {
  const differs = newest !== undefined && newest !== run.workflowVersion
  const [picked, setVersion] = useState<Version>('current')
  // A second try after a broken connection must not start a second execution.
  const [keys] = useState(() => ({ same: makeKey(), current: makeKey() }))
  const retries = how === 'retry'
  const start = async () => {
    const version = differs ? picked : 'same'
    const { executionId } = await recoverExecution(run.id, { how, version, key: keys[version] })
    go(`/executions/${executionId}`)
  }
  return (
    <FormDialog
      open
      onClose={onClose}
      title={retries ? 'Retry from the failed nodes?' : 'Execute again?'}
      label={retries ? 'Retry' : 'Execute again'}
      onSubmit={start}
    >
      <p>
        {retries
          ? 'A new execution with the same input takes over what succeeded, and goes on from what did not.'
          : 'A new execution with the same input does everything again.'}
      </p>
      {differs && (
        <VersionChoice value={picked} onChange={setVersion} same={run.workflowVersion} current={newest} />
      )}
    </FormDialog>
  )
}

type WorkflowProps = { run: Run; teamId: string; newest: number | undefined; onClose: () => void }

/** Executes the workflow as it is now with this execution's input, which may be changed first. */
export function InputDialog({ run, teamId, newest, onClose }: WorkflowProps) {
  return (
    <ValuesDialog
      onClose={onClose}
      title={`Execute ${run.workflowName} with this input`}
      label="Execute"
      text={`A new execution of version ${newest ?? run.workflowVersion}, the newest, begins at its trigger.`}
      fields={[
        {
          name: 'data',
          label: 'Data',
          help: 'A JSON object: the output of the trigger.',
          json: writeJson(run.inputData),
        },
      ]}
      start={({ data }, key) =>
        executeWorkflow(run.workflowId, { teamId, data: data as Record<string, unknown> }, key)
      }
    />
  )
}

type NodeProps = {
  run: Run
  nodeId: string
  name: string
  input: unknown
  /** The value of `$item` for a node in a loop; missing for others. */
  item?: unknown
  output: unknown
  handle: string | null
  onClose: () => void
}

/** The workflow's current version, if it has the node. */
type Newest = { newest: number | undefined }

/** A value that is no object is shown as {value}. */
function unwrap(shown: unknown): unknown {
  const entries = Object.entries(Object(shown))
  const [first] = entries
  return entries.length === 1 && first?.[0] === 'value' && Object(first[1]) !== first[1] ? first[1] : shown
}

/** Executes one node alone, with the input that it had and the outputs of the nodes around it. */
export function NodeDialog({ run, nodeId, name, input, item, newest, onClose }: NodeProps & Newest) {
  const differs = newest !== undefined && newest !== run.workflowVersion
  const [picked, setVersion] = useState<Version>('current')
  const version = differs && picked === 'current' ? newest : run.workflowVersion
  const outputs = Object.fromEntries(
    run.nodeExecutions.flatMap((one) =>
      one.iteration === null && one.step === null && one.nodeId !== nodeId && one.outputData !== null
        ? [[one.nodeId, one.outputData]]
        : [],
    ),
  )
  return (
    <ValuesDialog
      onClose={onClose}
      title={`Execute ${name} alone`}
      label="Execute the node"
      text="What the node does is real: a request that it makes is sent."
      fields={[
        { name: 'input', label: 'Input', help: '$input in its expressions.', json: writeJson(unwrap(input)) },
        ...(item === undefined
          ? []
          : [
              {
                name: 'item',
                label: 'Item',
                help: '$item in its expressions.',
                json: writeJson(unwrap(item)),
              },
            ]),
        {
          name: 'nodes',
          label: 'Outputs of other nodes',
          help: '$nodes in its expressions.',
          json: writeJson(outputs),
        },
      ]}
      start={({ input, nodes, item }, key) =>
        runNode(
          run.workflowId,
          nodeId,
          { input, item, nodes: nodes as Record<string, unknown>, version },
          // Of another version it is another start.
          `${key}-${version}`,
        )
      }
    >
      {differs && (
        <VersionChoice value={picked} onChange={setVersion} same={run.workflowVersion} current={newest} />
      )}
    </ValuesDialog>
  )
}

/** Executes the workflow with the output of one node given, so that the node itself is not executed. */
export function PinDialog({
  run,
  teamId,
  nodeId,
  name,
  output,
  handle,
  onClose,
}: NodeProps & { teamId: string }) {
  return (
    <ValuesDialog
      onClose={onClose}
      title={`Execute with ${name} pinned`}
      label="Execute"
      text={`${name} is not executed but gives this output, in a new execution of the newest version with the same input.`}
      fields={[{ name: 'output', label: `Output of ${name}`, json: writeJson(output) }]}
      start={({ output }, key) =>
        executeWorkflow(
          run.workflowId,
          {
            teamId,
            data: run.inputData,
            pinned: { [nodeId]: handle === null ? { output } : { output, handle } },
          },
          key,
        )
      }
    />
  )
}
