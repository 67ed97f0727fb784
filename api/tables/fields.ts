import * as v from 'valibot'
import { readJson } from '../../activities/reading/json.ts'
import { MAX_TABLE_COLUMNS } from '../../db/tables/columns.ts'
import {
  COLUMN_TYPES,
  columnNameField,
  keysField,
  matchField,
  rowsField,
  sortField,
  whereField,
} from '../../workflows/nodes/tables.ts'
import { documentAs, objectField, trimmedString, uuidField } from '../http/fields.ts'
import { paging } from '../http/query.ts'
import { idSchema, pageSchema, timeSchema } from '../http/responses.ts'

const types = `must be one of ${COLUMN_TYPES.join(', ')}`
const flag = v.optional(v.boolean('must be true or false'))

const columnInput = v.object(
  {
    id: v.pipe(
      v.optional(v.string('must be a string')),
      v.description('Of a column that is there already: it keeps its values. Not given: a new column'),
    ),
    name: v.pipe(
      columnNameField,
      documentAs<string>({ type: 'string', pattern: '^[A-Za-z_][A-Za-z0-9_]{0,62}$' }),
    ),
    type: v.picklist(COLUMN_TYPES, types),
    required: v.pipe(flag, v.description('Every row must have a value. Not given: false')),
    unique: v.pipe(flag, v.description('No two rows may have the same value. Not given: false')),
  },
  'must be an object',
)

const columns = v.pipe(
  v.array(columnInput, 'must be an array'),
  v.minLength(1, 'must have at least one column'),
  v.maxLength(MAX_TABLE_COLUMNS, `must have at most ${MAX_TABLE_COLUMNS} entries`),
)

export const TableBody = v.object({ teamId: uuidField, name: trimmedString(100), columns })
export const TablePatch = v.object({
  name: v.optional(trimmedString(100)),
  columns: v.pipe(
    v.optional(columns),
    v.description('All of them: the values of a column that is missing are deleted'),
  ),
})

export const TableSchema = v.pipe(
  v.object({
    id: idSchema,
    teamId: idSchema,
    name: v.pipe(v.string(), v.examples(['customers'])),
    columns: v.array(
      v.object({
        id: v.pipe(v.string(), v.examples(['c1'])),
        name: v.string(),
        type: v.picklist(COLUMN_TYPES),
        required: v.boolean(),
        unique: v.boolean(),
      }),
    ),
    rowCount: v.number(),
    bytes: v.pipe(v.number(), v.description('Of the values of all rows, as JSON')),
    createdAt: timeSchema,
    updatedAt: timeSchema,
  }),
  v.title('DataTable'),
)

const ofColumns = v.unknown()

/** A row: its id, the values of its columns by their names, and when it was made and changed. */
export const RowSchema = v.pipe(
  v.objectWithRest({ id: idSchema, createdAt: timeSchema, updatedAt: timeSchema }, ofColumns),
  v.title('DataRow'),
)
export const TablePage = pageSchema('DataTablePage', TableSchema)
export const RowPage = pageSchema('DataRowPage', RowSchema)

export const OneRow = v.object({ id: uuidField, rowId: uuidField })

const whereQuery = v.pipe(
  v.string('must be a JSON array of conditions'),
  documentAs<string>({ type: 'string', contentMediaType: 'application/json' }),
  v.rawTransform(({ dataset, addIssue, NEVER }) => {
    try {
      return readJson(dataset.value).value
    } catch {
      addIssue({ message: 'must be a JSON array of conditions' })
      return NEVER
    }
  }),
  whereField,
)

const description = 'Conditions {column, op, value} as JSON, such as [{"column":"age","op":"gte","value":18}]'

export const FilterQuery = {
  where: v.pipe(v.optional(whereQuery), v.description(description)),
  match: v.pipe(
    v.optional(matchField),
    v.description('Whether all conditions must hold, or any. Not given: all'),
  ),
}

export const RowListQuery = v.object({
  ...paging,
  ...FilterQuery,
  sort: v.pipe(
    v.optional(sortField),
    v.description('A column, or id; with a - before it in descending order. Not given: id, the oldest first'),
  ),
})

/** To delete all rows, the conditions are an empty list. */
export const DeletionQuery = v.object({
  ...FilterQuery,
  where: v.pipe(whereQuery, v.description(`${description}; [] are all rows`)),
})

export const RowsBody = v.object({
  rows: rowsField,
  keys: v.pipe(
    v.optional(keysField),
    v.description('A row that has the same values in these columns is changed, instead of a new one'),
  ),
})

export const RowsPatch = v.object({
  where: v.pipe(whereField, v.description('Which rows; [] are all')),
  match: v.optional(matchField),
  values: objectField,
})
