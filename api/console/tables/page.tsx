import { useState } from 'react'
import { useParams } from 'wouter'
import { readPage, useQueryState } from '../kit/address.ts'
import { Button, LinkButton } from '../kit/controls/button.tsx'
import { Facts, PageHeader } from '../kit/header.tsx'
import { Empty, Loaded } from '../kit/states.tsx'
import { Pager } from '../kit/tables/pager.tsx'
import { Age } from '../kit/time.tsx'
import { useRole } from '../shell/role.tsx'
import { csvOf, type DataRow, type DataTable, useDataRows, useDataTable } from './data.ts'
import { RowFilter } from './filter.tsx'
import { DataTableForm } from './form.tsx'
import { RowDialog, RowView } from './row.tsx'
import { DataRows } from './rows.tsx'
import { CsvUpload } from './upload.tsx'
import { showBytes } from './values.ts'

/** One data table: its rows, and what can be done with them. */
export function DataTablePage() {
  const { id = '' } = useParams()
  const found = useDataTable(id)
  return <Loaded query={found}>{(table) => <OneTable key={table.id} table={table} />}</Loaded>
}

type Shown = { kind: 'add' | 'upload' | 'table' } | { kind: 'row'; row: DataRow } | null

function OneTable({ table }: { table: DataTable }) {
  const { id, name, teamId, columns, rowCount, bytes, updatedAt } = table
  const may = useRole(teamId)
  const [builds, operates] = [may('BUILDER'), may('OPERATOR')]
  const [query, setQuery, linkTo] = useQueryState({ where: '', match: '', sort: '', page: '' })
  const found = useDataRows(id, { ...query, page: readPage(query.page) })
  const [shown, setShown] = useState<Shown>(null)
  const close = () => setShown(null)
  const add = operates && (
    <Button look="primary" icon="plus" onClick={() => setShown({ kind: 'add' })}>
      Add a row
    </Button>
  )
  return (
    <>
      <PageHeader title={name} crumbs={[['Tables', '/tables']]}>
        <LinkButton href={csvOf(id, query)} download icon="download">
          Download CSV
        </LinkButton>
        {operates && (
          <Button icon="upload" onClick={() => setShown({ kind: 'upload' })}>
            Upload CSV
          </Button>
        )}
        {builds && (
          <Button icon="edit" onClick={() => setShown({ kind: 'table' })}>
            Edit the table
          </Button>
        )}
        {add}
      </PageHeader>
      <Facts
        facts={[
          ['Rows', rowCount.toLocaleString()],
          ['Size', showBytes(bytes)],
          ['Changed', <Age key="changed" at={updatedAt} />],
        ]}
      />
      <RowFilter
        key={`${query.where} ${query.match}`}
        columns={columns}
        where={query.where}
        match={query.match}
        error={found.error}
        onApply={(where, match) => setQuery({ where, match })}
      />
      <Loaded query={found}>
        {(list) =>
          list.totalElements === 0 ? (
            query.where ? (
              <Empty title="No rows" text="None fulfils these conditions." />
            ) : (
              <Empty
                title="No rows"
                text="Workflows add rows with the node DATA_TABLE, and people here or from a CSV file."
              >
                {add}
              </Empty>
            )
          ) : (
            <>
              <DataRows
                table={table}
                rows={list.content}
                stale={found.isPlaceholderData}
                sort={query.sort}
                onSort={(sort) => setQuery({ sort })}
                onOpen={(row) => setShown({ kind: 'row', row })}
                mayChange={operates}
              />
              <Pager page={list} linkTo={(number) => linkTo({ page: number })} />
            </>
          )
        }
      </Loaded>
      {shown?.kind === 'add' && <RowDialog table={table} row={null} onClose={close} />}
      {shown?.kind === 'row' &&
        (operates ? (
          <RowDialog table={table} row={shown.row} onClose={close} />
        ) : (
          <RowView table={table} row={shown.row} onClose={close} />
        ))}
      {shown?.kind === 'upload' && <CsvUpload table={table} onClose={close} />}
      {shown?.kind === 'table' && <DataTableForm teamId={teamId} table={table} onClose={close} />}
    </>
  )
}
