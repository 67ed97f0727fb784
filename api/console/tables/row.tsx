import { useState } from 'react'
import { problemAt, Refusal } from '../data/refusal.ts'
import { Code } from '../kit/code/code.tsx'
import { Button } from '../kit/controls/button.tsx'
import { Field } from '../kit/controls/field.tsx'
import { Select, TextArea, TextInput } from '../kit/controls/input.tsx'
import { Facts } from '../kit/header.tsx'
import { notify } from '../kit/notices.tsx'
import { Dialog, FormDialog } from '../kit/overlays/dialog.tsx'
import { addDataRow, type DataColumn, type DataRow, type DataTable, updateDataRow } from './data.ts'
import { nameDataRow, readTyped, showValue, typeValue } from './values.ts'

type RowProps = { table: DataTable; row: DataRow; onClose: () => void }

/** Adds a row, or changes one; values that are not touched stay what they are. */
export function RowDialog({ table, row, onClose }: Omit<RowProps, 'row'> & { row: DataRow | null }) {
  const { columns } = table
  const [typed, setTyped] = useState<Record<string, string>>({})
  const before = ({ name, type }: DataColumn) => (row ? typeValue(type, row[name]) : '')
  const textOf = (column: DataColumn) => typed[column.id] ?? before(column)
  const pathOf = ({ name }: DataColumn) => `${row ? 'values' : 'rows[0]'}.${name}`
  const send = async () => {
    const values = readFields(
      columns.filter((column) => textOf(column) !== before(column)),
      textOf,
      pathOf,
    )
    if (row) await updateDataRow(table.id, row.id, values)
    else await addDataRow(table.id, values)
    notify(row ? 'Row saved' : 'Row added')
  }
  return (
    <FormDialog
      open
      wide
      onClose={onClose}
      title={row ? `Edit ${nameDataRow(columns, row)}` : `Add a row to ${table.name}`}
      label={row ? 'Save the row' : 'Add the row'}
      onSubmit={send}
      fields={columns.map(pathOf)}
    >
      {(error) => (
        <div className="stack">
          {columns.map((column) => (
            <Field
              key={column.id}
              label={column.name}
              // The API says what is missing, so that all is said at once.
              help={describe(column)}
              error={problemAt(error, pathOf(column))}
            >
              <ValueInput
                type={column.type}
                value={textOf(column)}
                onChange={(text) => setTyped((now) => ({ ...now, [column.id]: text }))}
              />
            </Field>
          ))}
        </div>
      )}
    </FormDialog>
  )
}

const HELP: Partial<Record<DataColumn['type'], string>> = {
  date: 'such as 2026-01-31, or 2026-01-31T12:00:00Z; in UTC without a zone',
  json: 'JSON: a text stands in quotes',
}

function describe({ type, required, unique }: DataColumn): string {
  return [required && 'required', unique && 'unique', HELP[type] ?? type].filter(Boolean).join(', ')
}

/** The values of columns, and a refusal with all those that are no JSON. */
function readFields(
  columns: readonly DataColumn[],
  textOf: (column: DataColumn) => string,
  pathOf: (column: DataColumn) => string,
): Record<string, unknown> {
  const message = 'must be JSON; put quotes around a text'
  const problems: { path: string; message: string }[] = []
  const read = columns.map((column) => {
    try {
      return [column.name, readTyped(column.type, textOf(column))]
    } catch {
      problems.push({ path: pathOf(column), message })
      return [column.name, null]
    }
  })
  if (problems.length > 0) throw new Refusal(400, 'Not everything is JSON that must be', problems)
  return Object.fromEntries(read)
}

type ValueProps = { type: DataColumn['type']; value: string; onChange: (text: string) => void }

function ValueInput({ type, ...props }: ValueProps) {
  if (type === 'boolean') return <Select {...props} empty="No value" choices={YES_NO} />
  if (type === 'json') return <Code language="json" {...props} lines={8} />
  if (type === 'text') return <TextArea {...props} rows={2} />
  return <TextInput {...props} inputMode={type === 'number' ? 'decimal' : 'text'} spellCheck={false} />
}

export const YES_NO = [
  { value: 'true', label: 'Yes' },
  { value: 'false', label: 'No' },
]

/** All of a row, to be read. */
export function RowView({ table, row, onClose }: RowProps) {
  return (
    <Dialog open wide onClose={onClose} title={nameDataRow(table.columns, row)}>
      <Facts
        facts={table.columns.map(({ name, type }) => [
          name,
          <span key={name} className="said">
            {showValue(type, row[name]) || '–'}
          </span>,
        ])}
      />
      <div className="actions">
        <Button onClick={onClose}>Close</Button>
      </div>
    </Dialog>
  )
}
