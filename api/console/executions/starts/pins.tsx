import { useState } from 'react'
import { Field } from '../../kit/controls/field.tsx'
import { Select } from '../../kit/controls/input.tsx'
import type { Execution } from '../data.ts'
import { type Fill, readJson, unwrap } from './dialog.tsx'
import type { StartNode } from './last.ts'

type PinProps = { nodes: readonly StartNode[]; run: Execution | undefined; fill: Fill }

/** Pins the output that a node had in the last execution: the node is not executed then. */
export function PinChoice({ nodes, run, fill }: PinProps) {
  const [wrong, setWrong] = useState<string>()
  const outputs = new Map(
    run?.nodeExecutions.flatMap((one) =>
      one.iteration === null && one.step === null && one.outputData !== null
        ? [[one.nodeId, one] as const]
        : [],
    ),
  )
  const choices = nodes.filter(
    ({ id, type, parentId, disabled }) =>
      outputs.has(id) && !parentId && !disabled && !type.endsWith('_TRIGGER'),
  )
  if (choices.length === 0) return null
  const pin = (id: string) => {
    const { outputData, handle } = outputs.get(id)!
    const output = unwrap(outputData)
    fill('pinned', (now) => {
      try {
        const pinned = readJson(now) as Record<string, unknown>
        setWrong(undefined)
        return JSON.stringify({ ...pinned, [id]: handle === null ? { output } : { output, handle } }, null, 2)
      } catch (error) {
        setWrong(`Pinned outputs: ${(error as Error).message}`)
        return now
      }
    })
  }
  return (
    <Field label="Pin what a node put out in the last execution" error={wrong}>
      <Select
        value=""
        onChange={pin}
        empty="None"
        choices={choices.map(({ id, name }) => ({ value: id, label: name || id }))}
      />
    </Field>
  )
}
