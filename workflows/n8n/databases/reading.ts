import { objectOf } from '../ai/asking.ts'
import type { SourceNode } from '../document.ts'
import { isTemplate, keepTexts, listObjects, plainText } from '../texts.ts'
import { type MappedSql, readColumnNames, readTableNames, shapeRows } from './sqlparts.ts'
import { quoteMySql, quotePostgres } from './statements.ts'

/** A statement as it is written, with the values that it has so far. */
type Draft = { quote: (name: string) => string; place: (value: unknown) => string; params: unknown[] }

function draft({ type }: SourceNode): Draft {
  const params: unknown[] = []
  const isMySql = type === 'mySql'
  return {
    params,
    quote: isMySql ? quoteMySql : quotePostgres,
    place(value) {
      params.push(value)
      return isMySql ? '?' : `$${params.length}`
    },
  }
}

const named = (node: SourceNode, { quote }: Draft) => readTableNames(node).map(quote).join('.')

export function readSelect(node: SourceNode): MappedSql {
  const { parameters } = node
  const { outputColumns, selectDistinct } = objectOf(parameters.options)
  if (isTemplate(selectDistinct)) throw new Error('an expression says whether it leaves out equal rows')
  const made = draft(node)
  const columns = readColumnNames(outputColumns)?.map(made.quote).join(', ') ?? '*'
  const distinct = selectDistinct === true ? 'DISTINCT ' : ''
  const sql =
    `SELECT ${distinct}${columns} FROM ${named(node, made)}` +
    writeWhere(node, made) +
    writeSort(node, made) +
    writeLimit(node, made)
  const params = made.params.length > 0 ? { params: made.params } : {}
  return { config: { query: sql, ...params, readOnly: true, maxRows: 10_000 }, shape: shapeRows(node, true) }
}

export function readDeletion(node: SourceNode): MappedSql {
  const { parameters, type } = node
  const { deleteCommand = 'truncate', restartSequences, options } = parameters
  const { cascade } = objectOf(options)
  if (isTemplate(deleteCommand) || isTemplate(restartSequences) || isTemplate(cascade))
    throw new Error('an expression says what it deletes')
  const made = draft(node)
  const table = named(node, made)
  const more = cascade === true && type === 'postgres' ? ' CASCADE' : ''
  const sql = ((): string => {
    switch (deleteCommand) {
      case 'drop':
        return `DROP TABLE IF EXISTS ${table}${more}`
      case 'truncate':
        return `TRUNCATE TABLE ${table}${restartSequences === true ? ' RESTART IDENTITY' : ''}${more}`
      case 'delete':
        return `DELETE FROM ${table}${writeWhere(node, made)}`
    }
    throw new Error(`it deletes by "${String(deleteCommand)}"`)
  })()
  const params = made.params.length > 0 ? { params: made.params } : {}
  return { config: { query: sql, ...params }, shape: shapeRows(node, false) }
}

const COMPARISONS = new Set(['=', '!=', '<>', 'LIKE', '>', '<', '>=', '<=', 'IS NULL', 'IS NOT NULL'])

function writeWhere({ parameters }: SourceNode, { quote, place }: Draft): string {
  const { where, combineConditions = 'AND' } = parameters
  if (isTemplate(where) || isTemplate(combineConditions))
    throw new Error('an expression gives its conditions')
  const clauses = listObjects(objectOf(where).values).map(({ column, condition = 'equal', value = '' }) => {
    const name = plainText(typeof column === 'object' ? objectOf(column).value : column)
    if (!name) throw new Error('an expression names the column of a condition, or nothing does')
    const sign = condition === 'equal' ? '=' : String(condition)
    if (!COMPARISONS.has(sign)) throw new Error(`it compares by "${sign}"`)
    if (sign === 'IS NULL' || sign === 'IS NOT NULL') return `${quote(name)} ${sign}`
    return `${quote(name)} ${sign} ${place(keepTexts(value))}`
  })
  if (clauses.length === 0) return ''
  return ` WHERE ${clauses.join(combineConditions === 'OR' ? ' OR ' : ' AND ')}`
}

function writeSort({ parameters }: SourceNode, { quote }: Draft): string {
  const rules = listObjects(objectOf(parameters.sort).values).map(({ column, direction }) => {
    const name = plainText(column)
    if (!name || isTemplate(direction)) throw new Error('an expression says how it sorts')
    return `${quote(name)} ${direction === 'DESC' ? 'DESC' : 'ASC'}`
  })
  return rules.length === 0 ? '' : ` ORDER BY ${rules.join(', ')}`
}

function writeLimit({ parameters }: SourceNode, { place }: Draft): string {
  const { returnAll = false, limit = 50 } = parameters
  if (isTemplate(returnAll)) throw new Error('an expression says whether it reads all rows')
  if (returnAll === true) return ''
  if (isTemplate(limit)) return ` LIMIT ${place(limit)}`
  const most = Number(plainText(limit))
  if (!Number.isInteger(most) || most < 0) throw new Error('its limit is no whole number')
  return ` LIMIT ${most}`
}
