import { Button } from '../kit/controls/button.tsx'
import { notify } from '../kit/notices.tsx'
import { useConfirm } from '../kit/overlays/confirm.tsx'
import { Rows } from '../kit/states.tsx'
import { type Column, Table } from '../kit/tables/table.tsx'
import { Age } from '../kit/time.tsx'
import { type DataColumn, type DataRow, type DataTable, deleteDataRow } from './data.ts'
import './tables.css'
import { nameDataRow, showValue } from './values.ts'

type RowsProps = {
  table: DataTable
  rows: readonly DataRow[]
  /** Whether they are those of the search before. */
  stale: boolean
  sort: string
  onSort: (sort: string) => void
  onOpen: (row: DataRow) => void
  mayChange: boolean
}

/** The rows of a data table. A row is opened to be changed, or to be read whole. */
export function DataRows({ table, rows, stale, sort, onSort, onOpen, mayChange }: RowsProps) {
  const { id, columns } = table
  const confirm = useConfirm()
  const remove = (row: DataRow) =>
    confirm({
      title: 'Delete this row?',
      text: `${nameDataRow(columns, row)} is deleted. This cannot be undone.`,
      label: 'Delete the row',
      danger: true,
      work: async () => {
        await deleteDataRow(id, row.id)
        notify('Row deleted')
      },
    })
  return (
    <Rows stale={stale}>
      <Table
        label={`Rows of ${table.name}`}
        rows={rows}
        keyOf={(row) => row.id}
        onOpen={onOpen}
        sort={{ by: sort.replace(/^-/, ''), down: sort.startsWith('-') }}
        onSort={({ by, down }) => onSort(down ? `-${by}` : by)}
        columns={[
          ...columns.map(makeColumn),
          // With a blank in it, which names of columns do not have.
          { heading: 'Last changed', cell: ({ updatedAt }) => <Age at={updatedAt} /> },
          {
            heading: 'What to do',
            cell: (row) => {
              const name = nameDataRow(columns, row)
              return (
                <div className="row acts">
                  <Button
                    small
                    aria-label={`${mayChange ? 'Edit' : 'Show'} ${name}`}
                    onClick={() => onOpen(row)}
                  >
                    {mayChange ? 'Edit' : 'Show'}
                  </Button>
                  {mayChange && (
                    <Button small aria-label={`Delete ${name}`} onClick={() => remove(row)}>
                      Delete
                    </Button>
                  )}
                </div>
              )
            },
          },
        ]}
      />
    </Rows>
  )
}

const MOST_SHOWN = 300

function makeColumn({ name, type }: DataColumn): Column<DataRow> {
  return {
    heading: name,
    number: type === 'number',
    ...(type === 'json' ? {} : { sort: name }),
    cell: (row) => {
      const text = showValue(type, row[name]).slice(0, MOST_SHOWN)
      if (row[name] === null || row[name] === undefined) return <span className="quiet">–</span>
      return (
        <span className="table-value" title={text}>
          {type === 'json' ? <code>{text}</code> : text}
        </span>
      )
    },
  }
}
