import { addressOf, api, keepRows, queries, read, sendFile } from '../data/client.ts'
import { resource } from '../data/resource.ts'
import { linkWith } from '../kit/address.ts'

const { refresh, useRead, write } = resource('tables')

const SIZE = '50'

async function listDataTables(teamId: string, page: number) {
  return read(api.api.tables.$get({ query: { teamId, page: String(page), size: SIZE } }))
}

export type DataTable = Awaited<ReturnType<typeof listDataTables>>['content'][number]
export type DataColumn = DataTable['columns'][number]

/** A team's data tables by name. */
export function useDataTables(teamId: string, page: number) {
  return useRead([teamId, page], () => listDataTables(teamId, page), keepRows)
}

export function useDataTable(id: string) {
  return useRead(['one', id], () => read(api.api.tables[':id'].$get({ param: { id } })), {
    enabled: id !== '',
  })
}

/** A column that is sent: one without an id is new. */
export type ColumnFields = Omit<DataColumn, 'id'> & { id?: string }
type TableFields = { name: string; columns: ColumnFields[] }

export async function createDataTable(teamId: string, fields: TableFields): Promise<DataTable> {
  return write(read(api.api.tables.$post({ json: { teamId, ...fields } })))
}

export async function updateDataTable(id: string, json: Partial<TableFields>): Promise<void> {
  await write(read(api.api.tables[':id'].$put({ param: { id }, json })))
}

export async function deleteDataTable(id: string, force: boolean): Promise<void> {
  await read(api.api.tables[':id'].$delete({ param: { id }, query: force ? { force: 'true' } : {} }))
  queries.removeQueries({ queryKey: ['tables', 'one', id] })
  await refresh()
}

/** A row: its columns are keys of it, beside those that every row has. */
export type DataRow = { [column: string]: unknown; id: string; updatedAt: string }
type RowPage = {
  content: DataRow[]
  number: number
  size: number
  totalElements: number
  totalPages: number
}

/** Which rows, as the address says it: `where` is the JSON of conditions. */
type RowQuery = { where: string; match: string; sort: string; page: number }

function writeFilter({ where, match }: Pick<RowQuery, 'where' | 'match'>) {
  return { ...(where ? { where } : {}), ...(match === 'any' ? { match: 'any' as const } : {}) }
}

/** One page of the rows of a table. */
export function useDataRows(id: string, query: RowQuery) {
  const { page, sort } = query
  const asked = { ...writeFilter(query), ...(sort ? { sort } : {}), page: String(page), size: SIZE }
  return useRead<RowPage>(
    ['one', id, 'rows', asked],
    async () =>
      (await read(api.api.tables[':id'].rows.$get({ param: { id }, query: asked }))) as unknown as RowPage,
    keepRows,
  )
}

type Values = Record<string, unknown>

export async function addDataRow(id: string, values: Values): Promise<void> {
  await write(read(api.api.tables[':id'].rows.$post({ param: { id }, json: { rows: [values] } })))
}

/** Only the values that are given change. */
export async function updateDataRow(id: string, rowId: string, values: Values): Promise<void> {
  await write(read(api.api.tables[':id'].rows[':rowId'].$patch({ param: { id, rowId }, json: { values } })))
}

export async function deleteDataRow(id: string, rowId: string): Promise<void> {
  await write(read(api.api.tables[':id'].rows[':rowId'].$delete({ param: { id, rowId } })))
}

/** Where the rows that fulfil the conditions are downloaded. */
export function csvOf(id: string, query: Pick<RowQuery, 'where' | 'match'>): string {
  return addressOf(linkWith(`/api/tables/${id}/csv`, writeFilter(query)))
}

/** Adds the rows of a CSV file; those that have the same values in the columns `keys` are changed. */
export async function uploadCsv(id: string, file: Blob, keys: string[]) {
  try {
    const path = linkWith(`/api/tables/${id}/csv`, { keys: keys.join(',') })
    return (await (await sendFile(path, file, 'text/csv')).json()) as { inserted: number; updated: number }
  } finally {
    // Of a file that is refused, the lines before may be written.
    await refresh()
  }
}
