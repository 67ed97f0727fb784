import { Hono } from 'hono'
import * as v from 'valibot'
import {
  deleteRow,
  deleteRows,
  listRows,
  readRow,
  updateRow,
  updateRows,
  writeRows,
} from '../../db/tables/rows.ts'
import type { AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { ById, objectField } from '../http/fields.ts'
import { messageResponse } from '../http/responses.ts'
import { DeletionQuery, OneRow, RowListQuery, RowPage, RowSchema, RowsBody, RowsPatch } from './fields.ts'

/** The rows of a data table. */
export function createRowRoutes() {
  return new Hono<AppEnv>().route('/', createRowListRoutes()).route('/', createOneRowRoutes())
}

function createRowListRoutes() {
  return new Hono<AppEnv>()
    .get(
      '/api/tables/:id/rows',
      accept({
        id: 'listRows',
        tag: 'Data tables',
        summary: 'List rows of a data table',
        description:
          'Those that fulfil the conditions. Empty values come last in either order, and of texts the first 256 bytes ' +
          'count for it. A number that JavaScript cannot hold exactly is a text of its digits. 422: it would have taken ' +
          'longer than ten seconds.',
        role: 'member',
        of: 'dataTables',
        params: ById,
        query: RowListQuery,
        faults: [413, 422],
        responses: { 200: { description: 'One page', schema: RowPage } },
      }),
      async (c) => c.json(await listRows(c.get('scope'), c.req.valid('param').id, c.req.valid('query'))),
    )
    .post(
      '/api/tables/:id/rows',
      accept({
        id: 'writeRows',
        tag: 'Data tables',
        summary: 'Add rows to a data table',
        description:
          'All of them or, if there is anything wrong with one, none. With `keys` a row that is there already is changed ' +
          'in the columns that are given.',
        role: 'OPERATOR',
        of: 'dataTables',
        params: ById,
        json: RowsBody,
        example: { rows: [{ email: 'ada@example.com', orders: 3 }], keys: ['email'] },
        faults: [409, 413, 422],
        responses: {
          200: {
            description: 'The rows as they are now, in the order of the request',
            schema: v.object({ rows: v.array(RowSchema), inserted: v.number(), updated: v.number() }),
          },
        },
      }),
      async (c) => c.json(await writeRows(c.get('scope'), c.req.valid('param').id, c.req.valid('json'))),
    )
    .patch(
      '/api/tables/:id/rows',
      accept({
        id: 'updateRows',
        tag: 'Data tables',
        summary: 'Change rows of a data table',
        description: 'Sets the values in all rows that fulfil the conditions, at most 10,000 at once.',
        role: 'OPERATOR',
        of: 'dataTables',
        params: ById,
        json: RowsPatch,
        example: { where: [{ column: 'email', op: 'eq', value: 'ada@example.com' }], values: { orders: 4 } },
        faults: [409, 422],
        responses: { 200: { description: 'How many rows', schema: v.object({ updated: v.number() }) } },
      }),
      async (c) => c.json(await updateRows(c.get('scope'), c.req.valid('param').id, c.req.valid('json'))),
    )
    .delete(
      '/api/tables/:id/rows',
      accept({
        id: 'deleteRows',
        tag: 'Data tables',
        summary: 'Delete rows of a data table',
        description:
          'Those that fulfil the conditions, the oldest first and at most 10,000 at once: `more` says whether others are ' +
          'left.',
        role: 'OPERATOR',
        of: 'dataTables',
        params: ById,
        query: DeletionQuery,
        faults: [422],
        responses: {
          200: {
            description: 'How many rows',
            schema: v.object({ deleted: v.number(), more: v.boolean() }),
          },
        },
      }),
      async (c) => c.json(await deleteRows(c.get('scope'), c.req.valid('param').id, c.req.valid('query'))),
    )
}

function createOneRowRoutes() {
  const one = { 200: { description: 'The row', schema: RowSchema } }
  return new Hono<AppEnv>()
    .get(
      '/api/tables/:id/rows/:rowId',
      accept({
        id: 'readRow',
        tag: 'Data tables',
        summary: 'Read a row of a data table',
        role: 'member',
        of: 'dataTables',
        params: OneRow,
        faults: [422],
        responses: one,
      }),
      async (c) => {
        const { id, rowId } = c.req.valid('param')
        return c.json(await readRow(c.get('scope'), id, rowId))
      },
    )
    .patch(
      '/api/tables/:id/rows/:rowId',
      accept({
        id: 'updateRow',
        tag: 'Data tables',
        summary: 'Change a row of a data table',
        description: 'Sets the values that are given, null ones too, and keeps the others.',
        role: 'OPERATOR',
        of: 'dataTables',
        params: OneRow,
        json: v.object({ values: objectField }),
        example: { values: { orders: 5 } },
        faults: [409, 422],
        responses: one,
      }),
      async (c) => {
        const { id, rowId } = c.req.valid('param')
        return c.json(await updateRow(c.get('scope'), id, rowId, c.req.valid('json').values))
      },
    )
    .delete(
      '/api/tables/:id/rows/:rowId',
      accept({
        id: 'deleteRow',
        tag: 'Data tables',
        summary: 'Delete a row of a data table',
        role: 'OPERATOR',
        of: 'dataTables',
        params: OneRow,
        faults: [422],
        responses: { 200: messageResponse('Row deleted') },
      }),
      async (c) => {
        const { id, rowId } = c.req.valid('param')
        await deleteRow(c.get('scope'), id, rowId)
        return c.json({ message: 'Row deleted' })
      },
    )
}
