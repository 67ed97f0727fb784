import { Field } from '../kit/field.tsx'
import { Checkbox, NumberInput, Select } from '../kit/input.tsx'
import type { GraphNode, Retry } from './contract.ts'
import { faultsAt, tellFaults, useForm } from './scope.ts'

type Defaults = { retry: Required<Retry>; timeoutMs: number }
type FailureProps = { defaults: Defaults; onChange: (node: GraphNode) => void }

const RETRY = [
  ['maxAttempts', 'Attempts', 'How often it is tried, the first time included.', 1, 100],
  ['initialIntervalMs', 'First pause (ms)', 'How long it waits before the second attempt.', 1, 86_400_000],
  ['backoffCoefficient', 'Factor', 'How many times longer each pause is.', 1, 100],
  ['maxIntervalMs', 'Longest pause (ms)', undefined, 1, 86_400_000],
] as const

const ON_ERROR = [
  { value: 'FAIL', label: 'The execution fails' },
  { value: 'CONTINUE', label: 'Go on, with the error as output' },
  { value: 'BRANCH', label: 'Leave by the output “error”' },
]

/** Attempts, time limits and what follows from an error. */
export function FailureFields({ defaults, onChange }: FailureProps) {
  const { node, faults, readOnly } = useForm()
  const wrong = (path: string) => tellFaults(faultsAt(faults, path))
  const change = (key: keyof GraphNode, value: unknown) => onChange(setField(node, key, value))
  const setRetry = (key: keyof Retry, value: number | undefined) => {
    const { [key]: _, ...rest } = node.retry ?? {}
    const retry = value === undefined ? rest : { ...rest, [key]: value }
    change('retry', Object.keys(retry).length > 0 ? retry : undefined)
  }
  return (
    <div className="fields">
      <Field label="If it fails" error={wrong('onError')}>
        <Select
          disabled={readOnly}
          value={node.onError ?? 'FAIL'}
          choices={ON_ERROR}
          onChange={(next) => change('onError', next)}
        />
      </Field>
      <div className="pairs">
        {RETRY.map(([key, label, help, min, max]) => (
          <Field key={key} label={label} help={help} error={wrong(`retry.${key}`)}>
            <NumberInput
              min={min}
              max={max}
              step={key === 'backoffCoefficient' ? 'any' : 1}
              placeholder={String(defaults.retry[key])}
              readOnly={readOnly}
              value={node.retry?.[key]}
              onChange={(next) => setRetry(key, next)}
            />
          </Field>
        ))}
        <Field label="Time limit (ms)" help="Of one attempt." error={wrong('timeoutMs')}>
          <NumberInput
            min={1}
            max={86_400_000}
            step={1}
            placeholder={String(defaults.timeoutMs)}
            readOnly={readOnly}
            value={node.timeoutMs}
            onChange={(next) => change('timeoutMs', next)}
          />
        </Field>
      </div>
      <Checkbox
        checked={node.disabled ?? false}
        disabled={readOnly}
        onChange={(on) => change('disabled', on || undefined)}
      >
        Disabled: it passes its input on
      </Checkbox>
    </div>
  )
}

/** The node with another value of a field; undefined takes the field out. */
export function setField(node: GraphNode, key: keyof GraphNode, value: unknown): GraphNode {
  if (value !== undefined) return { ...node, [key]: value }
  const { [key]: _, ...rest } = node
  return rest as GraphNode
}
