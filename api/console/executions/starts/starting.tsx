import { useState } from 'react'
import { go } from '../../kit/address.ts'
import { FormDialog } from '../../kit/overlays/dialog.tsx'
import type { Run } from '../live.ts'
import { executeWorkflow, makeKey, recoverExecution, runNode } from './data.ts'
import { unwrap, ValuesDialog } from './dialog.tsx'
import { useVersionOf, type Version, VersionChoice } from './version.tsx'

function writeJson(value: unknown): string {
  return JSON.stringify(value ?? {}, null, 2)
}

type RecoverProps = {
  run: Run
  how: 'retry' | 'rerun'
  /** The workflow's published version. */
  newest: number | undefined
  onClose: () => void
}

/** Asks how to take up an execution that has ended, and goes to the new one. */
export function RecoverDialog({ run, how, newest, onClose }: RecoverProps) {
  const differs = newest !== undefined && newest !== run.workflowVersion
  const [picked, setVersion] = useState<Version>(run.draft ? 'same' : 'current')
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

type WorkflowProps = { run: Run; teamId: string; onClose: () => void }

/** Executes the workflow as it is now with this execution's input, which may be changed first. */
export function InputDialog({ run, teamId, onClose }: WorkflowProps) {
  const { number, version, choice } = useVersionOf(run)
  return (
    <ValuesDialog
      onClose={onClose}
      title={`Execute ${run.workflowName} with this input`}
      label="Execute"
      text={`A new execution of version ${number} begins at its trigger.`}
      chosen={String(number)}
      fields={[
        {
          name: 'data',
          label: 'Data',
          help: 'A JSON object: the output of the trigger.',
          json: writeJson(run.inputData),
        },
      ]}
      start={({ data }, key) =>
        executeWorkflow(run.workflowId, { teamId, data: data as Record<string, unknown>, version }, key)
      }
    >
      {choice}
    </ValuesDialog>
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

/** Executes one node alone, with the input that it had and the outputs of the nodes around it. */
export function NodeDialog({ run, nodeId, name, input, item, has, onClose }: NodeProps & { has: boolean }) {
  const { number, choice } = useVersionOf(run, has)
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
      chosen={String(number)}
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
          { input, item, nodes: nodes as Record<string, unknown>, version: number },
          key,
        )
      }
    >
      {choice}
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
  const { number, version, choice } = useVersionOf(run)
  return (
    <ValuesDialog
      onClose={onClose}
      title={`Execute with ${name} pinned`}
      label="Execute"
      text={`${name} is not executed but gives this output, in a new execution of version ${number} with the same input.`}
      chosen={String(number)}
      fields={[{ name: 'output', label: `Output of ${name}`, json: writeJson(unwrap(output)) }]}
      start={({ output }, key) =>
        executeWorkflow(
          run.workflowId,
          {
            teamId,
            data: run.inputData,
            pinned: { [nodeId]: handle === null ? { output } : { output, handle } },
            version,
          },
          key,
        )
      }
    >
      {choice}
    </ValuesDialog>
  )
}
