import { useId, useState } from 'react'
import { FieldGroup } from '../kit/controls/field.tsx'
import { Checkbox } from '../kit/controls/input.tsx'
import { notify } from '../kit/notices.tsx'
import { FormDialog } from '../kit/overlays/dialog.tsx'
import { type DataTable, uploadCsv } from './data.ts'

/** Adds the rows of a CSV file to a table, or changes those that are there by keys. */
export function CsvUpload({ table, onClose }: { table: DataTable; onClose: () => void }) {
  const fileId = useId()
  const [file, setFile] = useState<File | null>(null)
  const [keys, setKeys] = useState<string[]>([])
  const send = async () => {
    if (!file) return
    const { inserted, updated } = await uploadCsv(table.id, file, keys)
    notify(`${inserted.toLocaleString()} rows added, ${updated.toLocaleString()} changed`)
  }
  const possible = table.columns.filter(({ type }) => type !== 'json')
  return (
    <FormDialog open onClose={onClose} title={`Upload rows to ${table.name}`} label="Upload" onSubmit={send}>
      <div className="stack">
        <div className="field">
          <label htmlFor={fileId}>CSV file</label>
          <input
            id={fileId}
            className="input"
            type="file"
            required
            accept=".csv,text/csv"
            aria-describedby={`${fileId}-help`}
            onChange={(event) => setFile(event.target.files?.[0] ?? null)}
          />
          <p className="help" id={`${fileId}-help`}>
            In UTF-8. Its first line has the names of columns, as a download has it.
          </p>
        </div>
        {possible.length > 0 && (
          <FieldGroup
            label="Keys"
            help="A row that has the same values in these columns is changed. Without a key, all rows are added."
          >
            {possible.map(({ id, name }) => (
              <Checkbox
                key={id}
                checked={keys.includes(name)}
                disabled={keys.length >= 5 && !keys.includes(name)}
                onChange={(on) => setKeys(on ? [...keys, name] : keys.filter((one) => one !== name))}
              >
                {name}
              </Checkbox>
            ))}
          </FieldGroup>
        )}
      </div>
    </FormDialog>
  )
}
