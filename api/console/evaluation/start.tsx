import { useState } from 'react'
import { problemAt } from '../data/refusal.ts'
import { go } from '../kit/address.ts'
import { Code } from '../kit/code/code.tsx'
import { Field } from '../kit/controls/field.tsx'
import { Checkbox, NumberInput, TextInput } from '../kit/controls/input.tsx'
import { FormDialog } from '../kit/overlays/dialog.tsx'
import { type Batch, startBatch, useEvalConfig } from './data.ts'
import { DimensionFields, type Judge, JudgeFields } from './judge.tsx'

const EXAMPLE = `[
  {
    "input": { "question": "What is 6 x 7?" },
    "output": "42",
    "expectedOutput": "42"
  }
]`
const NAMES = ['judgeProvider', 'judgeModel', 'judgeCredentialId'] as const
const FIELDS = [...NAMES, 'name', 'passThreshold', 'maxCost', 'concurrency']
type NewBatch = Parameters<typeof startBatch>[1]

/** Starts a batch of cases that are pasted as JSON. Fields that are left out come from the settings. */
export function StartDialog({ workflowId, onClose }: { workflowId: string; onClose: () => void }) {
  const { data: config } = useEvalConfig(workflowId)
  const [name, setName] = useState('')
  const [cases, setCases] = useState(EXAMPLE)
  const [runs, setRuns] = useState(false)
  const [judge, setJudge] = useState<Judge>({ provider: '', model: '', credentialId: '' })
  const [dimensions, setDimensions] = useState<string[]>([])
  const [threshold, setThreshold] = useState<number>()
  const [maxCost, setMaxCost] = useState<number>()
  const [concurrency, setConcurrency] = useState<number>()
  const settled = config?.effective.evalModel

  const start = async () => {
    const batch = await startBatch(workflowId, {
      testCases: readCases(cases),
      runWorkflow: runs,
      ...(name.trim() ? { name } : {}),
      ...(judge.provider ? { judgeProvider: judge.provider as NonNullable<NewBatch['judgeProvider']> } : {}),
      ...(judge.model ? { judgeModel: judge.model } : {}),
      ...(judge.credentialId ? { judgeCredentialId: judge.credentialId } : {}),
      ...(dimensions.length > 0 ? { evalDimensions: dimensions } : {}),
      ...(threshold === undefined ? {} : { passThreshold: threshold }),
      ...(maxCost === undefined ? {} : { maxCost }),
      ...(concurrency === undefined ? {} : { concurrency }),
    })
    go(addressOfBatch(batch))
  }

  return (
    <FormDialog
      open
      wide
      onClose={onClose}
      title="New batch"
      label="Start the batch"
      onSubmit={start}
      fields={FIELDS}
    >
      {(error) => (
        <>
          <Field label="Name" help="Without one it is the date." error={problemAt(error, 'name')}>
            <TextInput value={name} onChange={setName} maxLength={200} />
          </Field>
          <Field
            label="Cases"
            help="A JSON array: each with an input, an output, and what was expected, if that is known."
          >
            <Code value={cases} onChange={setCases} language="json" lines={12} />
          </Field>
          <Checkbox checked={runs} onChange={setRuns}>
            Run the workflow for the cases without an output
          </Checkbox>
          <p className="quiet">
            {settled
              ? `What is left empty comes from the settings: ${settled} judges.`
              : 'The settings name no judge, so name one here.'}
          </p>
          <JudgeFields
            value={judge}
            onChange={setJudge}
            empty="As in the settings"
            error={error}
            names={NAMES}
          />
          <div className="filters">
            <Field label="Lowest score that passes" error={problemAt(error, 'passThreshold')}>
              <NumberInput value={threshold} onChange={setThreshold} placeholder="As in the settings" />
            </Field>
            <Field label="Most it may cost, in $" error={problemAt(error, 'maxCost')}>
              <NumberInput value={maxCost} onChange={setMaxCost} placeholder="Any" />
            </Field>
            <Field label="Cases at once" error={problemAt(error, 'concurrency')}>
              <NumberInput value={concurrency} onChange={setConcurrency} placeholder="4" />
            </Field>
          </div>
          <DimensionFields
            value={dimensions}
            onChange={setDimensions}
            help="With none chosen, those of the settings."
          />
        </>
      )}
    </FormDialog>
  )
}

/** The cases as they were pasted. Throws an Error that says where they are no JSON. */
function readCases(text: string): unknown[] {
  try {
    return JSON.parse(text) as unknown[]
  } catch (error) {
    throw new Error(`The cases are no JSON: ${(error as Error).message}`)
  }
}

/** The page of a batch. */
export function addressOfBatch({ workflowId, id }: Pick<Batch, 'workflowId' | 'id'>): string {
  return `/evaluation/${workflowId}/${id}`
}
