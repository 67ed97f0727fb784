import type { UseQueryResult } from '@tanstack/react-query'
import { Button } from '../controls/button.tsx'
import { Dialog } from '../overlays/dialog.tsx'
import { Loaded } from '../states.tsx'
import { type Column, Table } from './table.tsx'

type TableDialogProps<Row> = {
  title: string
  /** The name of the table. */
  label: string
  query: UseQueryResult<{ content: Row[] }>
  /** Is said if there are no rows. */
  none: string
  columns: Column<Row>[]
  onClose: () => void
}

/** Shows a list in a dialog: what was done with something of a page. */
export function TableDialog<Row extends { id: string }>(props: TableDialogProps<Row>) {
  const { title, label, query, none, columns, onClose } = props
  return (
    <Dialog open wide onClose={onClose} title={title}>
      <div className="stack">
        <Loaded query={query} rows={3}>
          {({ content }) =>
            content.length === 0 ? (
              <p className="quiet">{none}</p>
            ) : (
              <Table label={label} rows={content} keyOf={({ id }) => id} columns={columns} />
            )
          }
        </Loaded>
        <div className="actions">
          <Button onClick={onClose}>Close</Button>
        </div>
      </div>
    </Dialog>
  )
}
