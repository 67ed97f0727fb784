import type { ReactNode } from 'react'
import { Button } from '../controls/button.tsx'
import { OnOff } from '../controls/onoff.tsx'
import { notify, notifyError } from '../notices.tsx'
import { Menu, type MenuItem } from '../overlays/menu.tsx'
import { Empty } from '../states.tsx'
import { type Column, Table } from './table.tsx'

type ManagedItem = { id: string; name: string }

type ManagedProps<Row extends ManagedItem> = {
  label: string
  rows: readonly Row[]
  mayChange: boolean
  /** The text of an empty list. */
  empty: { title: string; text: ReactNode }
  add: { label: string; onClick: () => void }
  /** The columns of the list; a column with whether it is on, and one with the acts, come behind. */
  columns: (Column<Row> | false)[]
  onOff?: {
    heading: string
    /** The label of the switch before the name: "Send" makes "Send Mondays". */
    verb: string
    isOn: (row: Row) => boolean
    change: (row: Row, on: boolean) => Promise<unknown>
    said: (row: Row, on: boolean) => string
  }
  /** The one act that all who see the list can do, beside the menu. */
  act?: (row: Row) => ReactNode
  /** For those who may change it. */
  menu: (row: Row) => MenuItem[]
}

/** Things of the team that are made, turned on and off, changed and deleted: channels, rules, widgets. */
export function Managed<Row extends ManagedItem>({
  label,
  rows,
  mayChange,
  empty,
  add,
  columns,
  onOff,
  act,
  menu,
}: ManagedProps<Row>) {
  const button = mayChange && (
    <Button look="primary" icon="plus" onClick={add.onClick}>
      {add.label}
    </Button>
  )
  if (rows.length === 0) return <Empty {...empty}>{button}</Empty>
  const turn = (row: Row, on: boolean) =>
    onOff!.change(row, on).then(() => notify(onOff!.said(row, on)), notifyError)
  return (
    <>
      {button && <div className="row">{button}</div>}
      <Table
        label={label}
        rows={rows}
        keyOf={({ id }) => id}
        columns={[
          ...columns,
          onOff && {
            heading: onOff.heading,
            cell: (row) => (
              <OnOff
                label={`${onOff.verb} ${row.name}`}
                on={onOff.isOn(row)}
                mayChange={mayChange}
                onChange={(on) => void turn(row, on)}
              />
            ),
          },
          (mayChange || act !== undefined) && {
            heading: 'Act',
            cell: (row) => (
              <div className="row acts">
                {act?.(row)}
                {mayChange && (
                  <Menu
                    trigger={<Button small look="plain" icon="more" aria-label={`More about ${row.name}`} />}
                    items={menu(row)}
                  />
                )}
              </div>
            ),
          },
        ]}
      />
    </>
  )
}
