import { Hono } from 'hono'
import * as v from 'valibot'
import { TABLE_QUOTAS } from '../../db/tables/quotas.ts'
import { createTable, deleteTable, listTables, readTable, updateTable } from '../../db/tables/tables.ts'
import type { AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { ById, uuidField } from '../http/fields.ts'
import { forceField, paging } from '../http/query.ts'
import { EXAMPLE_ID, LOCATION_HEADER, messageResponse } from '../http/responses.ts'
import { createTableCsvRoutes } from './csv.ts'
import { TableBody, TablePage, TablePatch, TableSchema } from './fields.ts'
import { createRowRoutes } from './rows.ts'

const one = { 200: { description: 'The data table', schema: TableSchema } }
const BY_ID = { id: '$response.body#/id' }

const forced = v.object({ force: forceField('Deletes it although active workflows use it (ADMIN)') })

const limits = Object.entries(TABLE_QUOTAS)
  .map(([plan, { tables, rows, bytes }]) => {
    const [many, size] = [rows.toLocaleString('en-US'), (bytes / 1_000_000).toLocaleString('en-US')]
    return `${plan} ${tables} tables, ${many} rows, ${size} MB`
  })
  .join('; ')

/** The data tables of a team: rows that its workflows and people keep. */
export function createTableRoutes() {
  return new Hono<AppEnv>()
    .route('/', createTableListRoutes())
    .route('/', createOneTableRoutes())
    .route('/', createRowRoutes())
    .route('/', createTableCsvRoutes())
}

function createTableListRoutes() {
  return new Hono<AppEnv>()
    .get(
      '/api/tables',
      accept({
        id: 'listTables',
        tag: 'Data tables',
        summary: "List a team's data tables",
        description: 'Sorted by name.',
        role: 'member',
        query: v.object({ teamId: uuidField, ...paging }),
        responses: { 200: { description: 'One page', schema: TablePage } },
      }),
      async (c) => c.json(await listTables(c.get('scope'), c.req.valid('query'))),
    )
    .post(
      '/api/tables',
      accept({
        id: 'createTable',
        tag: 'Data tables',
        summary: 'Create a data table',
        description:
          'Nodes and people keep rows in it. Each column has a type, and may be required or unique. What a team can have ' +
          `in all of its tables depends on its plan: ${limits}.`,
        role: 'BUILDER',
        json: TableBody,
        example: {
          teamId: EXAMPLE_ID,
          name: 'customers',
          columns: [
            { name: 'email', type: 'text', required: true, unique: true },
            { name: 'orders', type: 'number' },
          ],
        },
        faults: [409],
        responses: {
          201: {
            description: 'The data table',
            schema: TableSchema,
            headers: LOCATION_HEADER,
            links: {
              readTable: { parameters: BY_ID },
              listRows: { parameters: BY_ID },
              deleteTable: { parameters: BY_ID },
            },
          },
        },
      }),
      async (c) => {
        const table = await createTable(c.get('scope'), c.req.valid('json'))
        return c.json(table, 201, { Location: `/api/tables/${table.id}` })
      },
    )
}

function createOneTableRoutes() {
  return new Hono<AppEnv>()
    .get(
      '/api/tables/:id',
      accept({
        id: 'readTable',
        tag: 'Data tables',
        summary: 'Read a data table',
        description: 'Its columns, and how much is in it.',
        role: 'member',
        of: 'dataTables',
        params: ById,
        responses: one,
      }),
      async (c) => c.json(await readTable(c.get('scope'), c.req.valid('param').id)),
    )
    .put(
      '/api/tables/:id',
      accept({
        id: 'updateTable',
        tag: 'Data tables',
        summary: 'Change a data table',
        description:
          'Its name, or its columns as a whole: those with an `id` stay what they are, under whatever name, others are ' +
          'new, and the values of those that are missing are deleted.',
        role: 'BUILDER',
        of: 'dataTables',
        params: ById,
        json: TablePatch,
        example: { name: 'people' },
        faults: [409, 422],
        responses: one,
      }),
      async (c) => c.json(await updateTable(c.get('scope'), c.req.valid('param').id, c.req.valid('json'))),
    )
    .delete(
      '/api/tables/:id',
      accept({
        id: 'deleteTable',
        tag: 'Data tables',
        summary: 'Delete a data table',
        description:
          'With its rows. Refused with 409 while active workflows use it, unless an ADMIN says `force=true`: then they ' +
          'fail where they need it.',
        role: 'BUILDER',
        of: 'dataTables',
        params: ById,
        query: forced,
        faults: [409, 422],
        responses: { 200: messageResponse('Data table deleted') },
      }),
      async (c) => {
        await deleteTable(c.get('scope'), c.req.valid('param').id, c.req.valid('query').force)
        return c.json({ message: 'Data table deleted' })
      },
    )
}
