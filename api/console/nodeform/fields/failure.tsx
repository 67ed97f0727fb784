import { Checkbox, Select } from '../../kit/controls/input.tsx'
import { nameKey } from '../../kit/names.ts'
import type { GraphNode, NodeEdit } from '../contract.ts'
import type { NodeType } from '../data.ts'
import type { NodeSchema, Schema } from '../schema.ts'
import { useForm } from '../scope.ts'
import { type Edit, editKey } from './field.ts'
import { Labelled } from './leaf.tsx'
import { ValueField } from './value.tsx'

type Retry = NodeType['retry']
type FailureProps = { defaults: NodeType; schemas: NodeSchema; onEdit: (edit: NodeEdit) => void }

export const FAILURE_PATHS = ['onError', 'retry', 'timeoutMs', 'disabled']

const ON_ERROR = [
  { value: 'FAIL', label: 'The execution fails' },
  { value: 'CONTINUE', label: 'Go on, with the error as output' },
  { value: 'BRANCH', label: 'Leave by the output “error”' },
]

/** Attempts, time limits and what follows from an error. */
export function FailureFields({ defaults, schemas, onEdit }: FailureProps) {
  const { node, readOnly } = useForm()
  const edit = (key: keyof GraphNode) => (make: Edit) => onEdit((now) => editKey(now, key, make))
  const retry = schemas.retry?.anyOf?.find(({ properties }) => properties)?.properties ?? {}
  const own = { schema: schemas.onError ?? {}, path: 'onError', label: 'If it fails', value: node.onError }
  // Loops and pauses have attempts and limits of their own.
  const retries = !['loop', 'pause'].includes(defaults.kind) || node.retry || node.timeoutMs
  const number = (
    schema: Schema,
    path: string,
    usual: number,
    value: unknown,
    change: (make: Edit) => void,
  ) => (
    <ValueField
      key={path}
      schema={{ ...schema, default: usual }}
      path={path}
      label={LABELS[path] ?? nameKey(path)}
      value={value}
      edit={change}
    />
  )
  return (
    <div className="fields">
      <Labelled {...own} edit={edit('onError')}>
        <Select
          disabled={readOnly}
          value={node.onError ?? 'FAIL'}
          choices={ON_ERROR}
          onChange={(next) => edit('onError')(() => next)}
        />
      </Labelled>
      {retries && (
        <div className="pairs">
          {Object.entries(retry).map(([key, schema]) =>
            number(
              schema,
              `retry.${key}`,
              defaults.retry[key as keyof Retry],
              node.retry?.[key as keyof Retry],
              (make) =>
                edit('retry')((now) => {
                  const next = editKey(Object(now ?? {}), key, make)
                  return Object.keys(next).length > 0 ? next : undefined
                }),
            ),
          )}
          {number(
            schemas.timeoutMs ?? {},
            'timeoutMs',
            defaults.timeoutMs,
            node.timeoutMs,
            edit('timeoutMs'),
          )}
        </div>
      )}
      <Checkbox
        checked={node.disabled ?? false}
        disabled={readOnly}
        onChange={(on) => edit('disabled')(() => on || undefined)}
      >
        Disabled: it passes its input on
      </Checkbox>
    </div>
  )
}

const LABELS: Record<string, string> = {
  'retry.maxAttempts': 'Attempts',
  'retry.initialIntervalMs': 'First pause (ms)',
  'retry.backoffCoefficient': 'Factor',
  'retry.maxIntervalMs': 'Longest pause (ms)',
  timeoutMs: 'Time limit (ms)',
}

/** The settings that differ from the defaults, for the closed section. */
export function tellFailure({ onError, retry, timeoutMs, disabled }: GraphNode): string {
  const said = [
    disabled ? 'disabled' : '',
    onError === 'CONTINUE' ? 'goes on' : onError === 'BRANCH' ? 'output “error”' : '',
    retry?.maxAttempts ? `${retry.maxAttempts} ${retry.maxAttempts === 1 ? 'attempt' : 'attempts'}` : '',
    timeoutMs ? `${timeoutMs} ms` : '',
  ]
  return said.filter(Boolean).join(', ')
}
