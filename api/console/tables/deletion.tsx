import { useState } from 'react'
import { isRefused } from '../data/refusal.ts'
import { Checkbox } from '../kit/controls/input.tsx'
import { notify } from '../kit/notices.tsx'
import { FormDialog } from '../kit/overlays/dialog.tsx'
import { useRole } from '../shell/role.tsx'
import { type DataTable, deleteDataTable } from './data.ts'

/** Asks before a table is deleted. One that active workflows use is refused, and only an ADMIN may insist. */
export function DeleteDataTable({ table, onClose }: { table: DataTable; onClose: () => void }) {
  const { id, name, rowCount } = table
  const may = useRole()
  const [force, setForce] = useState(false)
  const remove = async () => {
    await deleteDataTable(id, force)
    notify('Table deleted')
  }
  return (
    <FormDialog
      open
      onClose={onClose}
      title={`Delete ${name}?`}
      label="Delete the table"
      danger
      onSubmit={remove}
    >
      {(error) => (
        <div className="stack">
          <p>
            {rowCount === 0
              ? 'It has no rows.'
              : `Its ${rowCount.toLocaleString()} rows are deleted with it.`}{' '}
            This cannot be undone.
          </p>
          {(force || isRefused(error, 409)) && may('ADMIN') && (
            <Checkbox checked={force} onChange={setForce}>
              Although active workflows use it
            </Checkbox>
          )}
        </div>
      )}
    </FormDialog>
  )
}
