import { setTimeout as sleep } from 'node:timers/promises'
import * as v from 'valibot'
import { Fault } from '../../db/fault.ts'
import { placeOf } from '../../db/send/notes.ts'
import { type TableWork, workOnTable } from '../../db/tables/nodes.ts'
import { isObject } from '../../workflows/json.ts'
import type { FailureType } from '../../workflows/nodes/failures.ts'
import {
  MAX_TABLE_ROWS,
  rowsField,
  sortField,
  type TableOperation,
  whereField,
} from '../../workflows/nodes/tables.ts'
import { describeIssues } from '../../workflows/problem.ts'
import { invalidConfig, NodeFailure } from './kit/failure.ts'
import { workedItem } from './kit/items.ts'
import type { NodeContext, NodeRunner } from './kit/node.ts'

const MAX_NAMED = 50
const BUSY_MS = 200

/**
 * DATA_TABLE: outputs {rows, count}; of an upsert {inserted, updated} too, of a deletion `more`; {count} or {exists} for
 * those. With `output` it is the rows alone, or the item itself if a row is there or is not. What it writes is written
 * once, whatever happens to its attempts. Fails with InvalidInput for values that do not fit the table, naming every row
 * and column, and for what a unique column or the team's plan refuses. InvalidConfig is a table that the team does not
 * have, OutputTooLarge more than 8 MB of rows, DatabaseTimeout what takes too long.
 */
export const runDataTable: NodeRunner = async (context) => {
  const { spot, idempotencyKey, signal } = context
  const place = placeOf(spot.executionId, idempotencyKey)
  const work = await renderWork(context)
  for (;;) {
    signal.throwIfAborted()
    try {
      return { output: shapeOutput(context, await workOnTable(spot.store, place, work)) }
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      // Others of the team are at work with its tables.
      if (error.code !== 'UNAVAILABLE') throw tellFault(error, work.table)
      await sleep(BUSY_MS, undefined, { signal }).catch(() => signal.throwIfAborted())
    }
  }
}

function shapeOutput(context: NodeContext, done: unknown): unknown {
  const { output } = context.config
  const { rows, exists } = done as { rows?: unknown; exists?: boolean }
  if (output === 'rows') return rows
  if (output === undefined) return done
  return exists === (output === 'found') ? workedItem(context) : []
}

const TYPES: Partial<Record<Fault['code'], FailureType>> = {
  INVALID: 'InvalidInput',
  CONFLICT: 'InvalidInput',
  TOO_LARGE: 'OutputTooLarge',
  UNPROCESSABLE: 'DatabaseTimeout',
}

function tellFault(fault: Fault, table: string): unknown {
  const type = TYPES[fault.code]
  if (fault.code === 'NOT_FOUND' && fault.message.includes('data table'))
    return invalidConfig('table', `must be a data table of the team, unlike ${JSON.stringify(table)}`)
  if (type === undefined) return fault
  const { problems } = fault
  const named = problems.slice(0, MAX_NAMED).map(({ path, message }) => `${path} ${message}`)
  const more = problems.length > MAX_NAMED ? ` (and ${problems.length - MAX_NAMED} more)` : ''
  return new NodeFailure(problems.length > 0 ? named.join('; ') + more : fault.message, {
    type,
    cause: fault,
  })
}

const rowList = v.pipe(
  v.unknown(),
  v.transform((value) => (isObject(value) ? [value] : value)),
  rowsField,
)
const SCHEMAS = {
  rows: rowList,
  values: v.custom<Record<string, unknown>>(isObject, 'must be an object'),
  where: whereField,
  sort: sortField,
  limit: v.pipe(
    v.unknown(),
    v.transform((value) => (typeof value === 'string' && value.trim() !== '' ? Number(value) : value)),
    v.number('must be a number'),
    v.integer('must be a whole number'),
    v.minValue(1, 'must be at least 1'),
    v.maxValue(MAX_TABLE_ROWS, `must be at most ${MAX_TABLE_ROWS}`),
  ),
} as const

/** The config with its values computed. Throws a NodeFailure (InvalidInput) that names all that is wrong. */
async function renderWork({ config, bindings, evaluator }: NodeContext): Promise<TableWork> {
  const work: Record<string, unknown> = {
    table: config.table,
    operation: config.operation as TableOperation,
    ...(config.match === undefined ? {} : { match: config.match }),
    ...(config.keys === undefined ? {} : { keys: config.keys }),
    ...(config.output === 'rows' && config.limit === undefined ? { whole: true } : {}),
  }
  const wrong: string[] = []
  for (const [key, schema] of Object.entries(SCHEMAS)) {
    if (config[key] === undefined) continue
    const value = await evaluator.render(config[key], bindings)
    const parsed = v.safeParse(schema as v.GenericSchema, value)
    if (parsed.success) work[key] = parsed.output
    else
      for (const { path, message } of describeIssues(parsed.issues.slice(0, MAX_NAMED), key))
        wrong.push(`${path} ${message}`)
  }
  if (wrong.length > 0) throw new NodeFailure(wrong.join('; '), { type: 'InvalidInput' })
  return work as TableWork
}
