import type { KeyboardEvent, ReactNode } from 'react'
import { Icon } from '../controls/icon.tsx'
import './tables.css'

export type Column<Row> = {
  heading: string
  cell: (row: Row) => ReactNode
  /** By what the list is sorted where this heading is clicked; without it, it is not. */
  sort?: string
  number?: boolean
}

export type Sort = { by: string; down: boolean }

type TableProps<Row> = {
  label: string
  columns: (Column<Row> | false | null | undefined)[]
  rows: readonly Row[]
  keyOf: (row: Row) => string
  /** Enter on a row, besides the links in it. */
  onOpen?: (row: Row) => void
  sort?: Sort
  onSort?: (sort: Sort) => void
}

/**
 * A table; on a phone each row becomes a card with the headings beside the cells. The arrow keys (and j, k) go from
 * row to row, Enter opens one. Rows are found by key, so focus stays while the list is read again.
 */
export function Table<Row>({ label, columns, rows, keyOf, onOpen, sort, onSort }: TableProps<Row>) {
  const shown = columns.filter((column): column is Column<Row> => Boolean(column))
  const move = (event: KeyboardEvent<HTMLTableRowElement>, row: Row) => {
    if (event.target !== event.currentTarget || event.ctrlKey || event.metaKey || event.altKey) return
    const by = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key]
    if (by !== undefined) {
      const next =
        by > 0 ? event.currentTarget.nextElementSibling : event.currentTarget.previousElementSibling
      if (next instanceof HTMLElement) next.focus()
      event.preventDefault()
    } else if (event.key === 'Enter' && onOpen) onOpen(row)
  }
  return (
    <div className="table">
      <table aria-label={label}>
        <thead>
          <tr>
            {shown.map((column) => (
              <th
                key={column.heading}
                scope="col"
                className={column.number ? 'number' : undefined}
                aria-sort={tellSort(column.sort, sort)}
              >
                {column.sort && onSort ? (
                  <button
                    type="button"
                    onClick={() =>
                      onSort({ by: column.sort!, down: sort?.by === column.sort ? !sort?.down : true })
                    }
                  >
                    {column.heading}
                    {sort?.by === column.sort && <Icon name="down" size={12} />}
                  </button>
                ) : (
                  column.heading
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr
              key={keyOf(row)}
              data-key={keyOf(row)}
              tabIndex={onOpen ? 0 : undefined}
              onKeyDown={(event) => move(event, row)}
            >
              {shown.map((column) => (
                <td
                  key={column.heading}
                  data-heading={column.heading}
                  className={column.number ? 'number' : undefined}
                >
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function tellSort(by: string | undefined, sort: Sort | undefined) {
  if (by === undefined || !sort) return undefined
  if (sort.by !== by) return 'none'
  return sort.down ? 'descending' : 'ascending'
}
