import { useRef, useState } from 'react'
import { problemAt, problemsOf } from '../data/refusal.ts'
import { Button } from '../kit/controls/button.tsx'
import { Field } from '../kit/controls/field.tsx'
import { Checkbox, Select, TextInput } from '../kit/controls/input.tsx'
import { notify } from '../kit/notices.tsx'
import { FormDialog } from '../kit/overlays/dialog.tsx'
import { type ColumnFields, createDataTable, type DataTable, updateDataTable } from './data.ts'
import './tables.css'
import { TYPES } from './values.ts'

type Draft = ColumnFields & { key: number }

type FormProps = {
  teamId: string
  /** The table that is changed; null while a new one is made. */
  table: DataTable | null
  onClose: () => void
  onMade?: (table: DataTable) => void
}

const FRESH = { name: '', type: 'text', required: false, unique: false } as const
const KEYS = ['name', 'type', 'required', 'unique', 'id']

/** Makes a table, or changes its name and its columns. */
export function DataTableForm({ teamId, table, onClose, onMade }: FormProps) {
  const [name, setName] = useState(table?.name ?? '')
  const [columns, setColumns] = useState<Draft[]>(() =>
    (table?.columns ?? [FRESH]).map((column, key) => ({ ...column, key })),
  )
  const made = useRef(columns.length)
  const add = () => setColumns([...columns, { ...FRESH, key: made.current++ }])
  const change = (at: number, part: Partial<ColumnFields>) =>
    setColumns(columns.map((one, index) => (index === at ? { ...one, ...part } : one)))
  const lost =
    table && table.rowCount > 0
      ? table.columns.filter(({ id }) => !columns.some((one) => one.id === id)).map((one) => one.name)
      : []
  const send = async () => {
    const wanted = columns.map(({ key: _, ...column }) => column)
    if (table) {
      const isSame = JSON.stringify(wanted) === JSON.stringify(table.columns)
      await updateDataTable(table.id, { name, ...(isSame ? {} : { columns: wanted }) })
    } else {
      const created = await createDataTable(teamId, { name, columns: wanted })
      onMade?.(created)
    }
    notify(table ? 'Table saved' : 'Table created')
  }
  const paths = columns.flatMap((_, at) => KEYS.map((key) => `columns[${at}].${key}`))
  const label = table
    ? lost.length > 0
      ? 'Delete the values and save'
      : 'Save the table'
    : 'Create the table'
  return (
    <FormDialog
      open
      wide
      onClose={onClose}
      title={table ? `Edit ${table.name}` : 'New table'}
      label={label}
      danger={lost.length > 0}
      onSubmit={send}
      fields={['name', ...paths]}
    >
      {(error) => (
        <div className="stack">
          <Field label="Name" required error={problemAt(error, 'name')}>
            <TextInput value={name} onChange={setName} required maxLength={100} />
          </Field>
          {columns.map((column, at) => (
            <ColumnForm
              key={column.key}
              place={at + 1}
              column={column}
              error={tellProblems(error, at)}
              onChange={(part) => change(at, part)}
              onRemove={
                columns.length > 1 ? () => setColumns(columns.filter((_, index) => index !== at)) : undefined
              }
            />
          ))}
          <div className="row">
            <Button small icon="plus" onClick={add}>
              Add a column
            </Button>
          </div>
          {lost.length > 0 && (
            <p role="status">
              All rows lose their values of <strong>{lost.join(', ')}</strong>. This cannot be undone.
            </p>
          )}
        </div>
      )}
    </FormDialog>
  )
}

/** All that is wrong with a column, at its name. */
function tellProblems(error: unknown, at: number): string | undefined {
  const found = problemsOf(error).flatMap(({ path, message }) => {
    const key = KEYS.find((one) => path === `columns[${at}].${one}`)
    return key === undefined ? [] : [key === 'name' ? message : `${key} ${message}`]
  })
  return found.length === 0 ? undefined : found.join('; ')
}

type ColumnProps = {
  place: number
  column: Draft
  error: string | undefined
  onChange: (part: Partial<ColumnFields>) => void
  onRemove: (() => void) | undefined
}

function ColumnForm({ place, column, error, onChange, onRemove }: ColumnProps) {
  const { id, name, type, required, unique } = column
  return (
    <fieldset className="table-column">
      <legend className="hidden">Column {place}</legend>
      <Field label={`Column ${place}`} error={error}>
        <TextInput
          value={name}
          required
          maxLength={63}
          spellCheck={false}
          onChange={(next) => onChange({ name: next })}
        />
      </Field>
      <Field label={`Type of column ${place}`}>
        <Select
          value={type}
          disabled={id !== undefined}
          choices={TYPES.map((value) => ({ value, label: value }))}
          onChange={(next) => {
            const chosen = next as ColumnFields['type']
            onChange({ type: chosen, ...(chosen === 'json' ? { unique: false } : {}) })
          }}
        />
      </Field>
      <div className="row">
        <Checkbox checked={required} onChange={(next) => onChange({ required: next })}>
          Required
        </Checkbox>
        <Checkbox checked={unique} disabled={type === 'json'} onChange={(next) => onChange({ unique: next })}>
          Unique
        </Checkbox>
        {onRemove && (
          <Button small look="plain" icon="trash" aria-label={`Remove column ${place}`} onClick={onRemove} />
        )}
      </div>
    </fieldset>
  )
}
