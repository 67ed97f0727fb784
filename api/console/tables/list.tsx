import { useState } from 'react'
import { Link } from 'wouter'
import { go, readPage, useQueryState } from '../kit/address.ts'
import { Button } from '../kit/controls/button.tsx'
import { PageHeader } from '../kit/header.tsx'
import { Empty, Loaded } from '../kit/states.tsx'
import { Pager } from '../kit/tables/pager.tsx'
import { Table } from '../kit/tables/table.tsx'
import { Age } from '../kit/time.tsx'
import { useRole, useTeam } from '../shell/role.tsx'
import { type DataTable, useDataTables } from './data.ts'
import { DeleteDataTable } from './deletion.tsx'
import { DataTableForm } from './form.tsx'
import { showBytes } from './values.ts'

type Work = { kind: 'edit' | 'delete'; table: DataTable } | { kind: 'create' } | null

/** The team's data tables. */
export function DataTablesPage() {
  const mayBuild = useRole()('BUILDER')
  const { teamId } = useTeam()
  const [query, , linkTo] = useQueryState({ page: '' })
  const found = useDataTables(teamId, readPage(query.page))
  const [work, setWork] = useState<Work>(null)
  const close = () => setWork(null)
  const add = mayBuild && (
    <Button look="primary" icon="plus" onClick={() => setWork({ kind: 'create' })}>
      New table
    </Button>
  )
  return (
    <>
      <PageHeader
        title="Tables"
        lead="Rows that workflows, agents and people write and read, and that outlive an execution."
      >
        {add}
      </PageHeader>
      <Loaded query={found}>
        {(list) =>
          list.totalElements === 0 ? (
            <Empty
              title="No tables"
              text="Keep here what workflows must remember, such as customers they have written to. The node DATA_TABLE reads and writes the rows."
            >
              {add}
            </Empty>
          ) : (
            <>
              <TableList rows={list.content} onWork={setWork} mayBuild={mayBuild} />
              <Pager page={list} linkTo={(number) => linkTo({ page: number })} />
            </>
          )
        }
      </Loaded>
      {work?.kind === 'create' && (
        <DataTableForm
          teamId={teamId}
          table={null}
          onClose={close}
          onMade={({ id }) => go(`/tables/${id}`)}
        />
      )}
      {work?.kind === 'edit' && <DataTableForm teamId={teamId} table={work.table} onClose={close} />}
      {work?.kind === 'delete' && <DeleteDataTable table={work.table} onClose={close} />}
    </>
  )
}

type ListProps = { rows: readonly DataTable[]; onWork: (work: Work) => void; mayBuild: boolean }

function TableList({ rows, onWork, mayBuild }: ListProps) {
  return (
    <Table
      label="Tables"
      rows={rows}
      keyOf={({ id }) => id}
      onOpen={({ id }) => go(`/tables/${id}`)}
      columns={[
        {
          heading: 'Name',
          cell: ({ id, name }) => (
            <Link className="name" href={`/tables/${id}`}>
              {name}
            </Link>
          ),
        },
        {
          heading: 'Columns',
          cell: ({ columns }) => <span className="said">{columns.map(({ name }) => name).join(', ')}</span>,
        },
        { heading: 'Rows', number: true, cell: ({ rowCount }) => rowCount.toLocaleString() },
        { heading: 'Size', number: true, cell: ({ bytes }) => showBytes(bytes) },
        { heading: 'Changed', cell: ({ updatedAt }) => <Age at={updatedAt} /> },
        mayBuild && {
          heading: 'Actions',
          cell: (table) => (
            <div className="row acts">
              <Button small aria-label={`Edit ${table.name}`} onClick={() => onWork({ kind: 'edit', table })}>
                Edit
              </Button>
              <Button
                small
                aria-label={`Delete ${table.name}`}
                onClick={() => onWork({ kind: 'delete', table })}
              >
                Delete
              </Button>
            </div>
          ),
        },
      ]}
    />
  )
}
