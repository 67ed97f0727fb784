import * as v from 'valibot'
import { splitScript } from '../../javascript/template.ts'
import { getOwn } from '../../json.ts'
import { type Fields, objectOf } from '../ai/asking.ts'
import type { SourceNode } from '../document.ts'
import {
  isTemplate,
  keepText,
  keepTexts,
  listObjects,
  plainText,
  quoteValue,
  tryCode,
  writeLiteral,
} from '../texts.ts'

type Where = { where?: Fields[]; match?: 'all' | 'any' }

/** The conditions of n8n's node for data tables. `equals`: it only looks whether columns have values. */
export function readTableConditions({ parameters }: SourceNode, { equals = false } = {}): Where {
  const { filters, matchType = 'anyCondition' } = parameters
  const { conditions } = objectOf(filters)
  if (isTemplate(filters) || isTemplate(conditions))
    throw new Error('an expression gives all of its conditions')
  if (matchType !== 'anyCondition' && matchType !== 'allConditions')
    throw new Error('an expression says whether all of its conditions must hold')
  const where = listObjects(conditions).map((one) =>
    readCondition(equals ? { ...one, condition: 'eq' } : one),
  )
  if (where.length === 0) return {}
  return { where, match: matchType === 'allConditions' ? 'all' : 'any' }
}

/** As readTableConditions, for what n8n does not do without a condition, and a DATA_TABLE would do to all rows. */
export function demandConditions(node: SourceNode): Where {
  const found = readTableConditions(node)
  if (found.where) return found
  throw new Error('it has no condition, without which n8n refuses to work: say which rows are meant')
}

function readCondition({ keyName = 'id', condition = 'eq', keyValue = '' }: Fields): Fields {
  if (isTemplate(condition)) throw new Error('an expression says how it compares')
  const column = keepText(keyName)
  if (column === '') throw new Error('a condition names no column')
  if (column === 'createdAt' || column === 'updatedAt')
    throw new Error(
      `it compares "${column}", which no condition can here: keep the time in a column of your own, and compare that`,
    )
  if (column === 'id') return readIdCondition(condition, keyValue)
  const read = getOwn(WORDS, String(condition))
  if (!read) throw new Error(`it compares by "${String(condition)}", which Perdure does not have`)
  const code = condition === 'neq' ? codeOf(keyValue) : undefined
  return { column: code === undefined ? column : nameIf(column, code), ...read(keyValue) }
}

const WORDS: Record<string, (value: unknown) => Fields> = {
  eq: readEqual,
  neq: readUnequal,
  gt: (value) => ({ op: 'gt', value: keepTexts(value) }),
  gte: (value) => ({ op: 'gte', value: keepTexts(value) }),
  lt: (value) => ({ op: 'lt', value: keepTexts(value) }),
  lte: (value) => ({ op: 'lte', value: keepTexts(value) }),
  isEmpty: () => ({ op: 'blank' }),
  isNotEmpty: () => ({ op: 'notBlank' }),
  isTrue: () => ({ op: 'eq', value: true }),
  isFalse: () => ({ op: 'eq', value: false }),
  like: readLike,
  ilike() {
    throw new Error(
      'it compares texts without regard to capitals: keep the text in small letters in a column of its own, and compare that',
    )
  },
}

/** To n8n nothing has a value that is not there, and null is the empty one. */
function readEqual(value: unknown): Fields {
  const code = codeOf(value)
  if (code === undefined) return { op: 'eq', value: keepTexts(value) }
  return { op: 'in', value: `={{ [${code}\n].filter((value) => value !== undefined) }}` }
}

function readUnequal(value: unknown): Fields {
  const code = codeOf(value)
  if (code === undefined) return { op: 'ne', value: keepTexts(value) }
  return { op: 'ne', value: keepTexts(value) }
}

const PATTERN =
  'it compares with a pattern that has a % within: compare with parts of it, in conditions of their own'

/** n8n's only wildcard is %. A text without it may be anywhere. */
function readLike(value: unknown): Fields {
  if (isTemplate(value)) {
    const isPattern = 'typeof value === "string" && value.includes("%")'
    const fault = 'The text to look for has a %, which would be a wildcard in n8n'
    return { op: 'contains', value: demand(writeTextCode(value), isPattern, fault) }
  }
  const text = plainText(value) ?? ''
  const [, before = '', part = '', after = ''] = /^(%*)(.*?)(%*)$/s.exec(text) ?? []
  if (part.includes('%')) throw new Error(PATTERN)
  const anywhere = text === part || part === '' || (before !== '' && after !== '')
  if (!anywhere && before !== '')
    throw new Error('it looks for texts that end in one: keep what is compared in a column of its own')
  return {
    op: anywhere ? 'contains' : 'startsWith',
    value: writeLiteral(part),
  }
}

const uuid = v.pipe(v.string(), v.uuid())

function readIdCondition(condition: unknown, value: unknown): Fields {
  if (condition !== 'eq')
    throw new Error(
      `it compares ids by "${String(condition)}", and they are no numbers here: compare another column`,
    )
  const code = codeOf(value)
  if (code !== undefined) return { column: 'id', ...readEqual(value) }
  const id = plainText(value) ?? ''
  if (v.is(uuid, id)) return { column: 'id', op: 'eq', value: id }
  throw new Error(
    `it names a row by its id in n8n, "${id}", and ids are UUIDs here: find it by another column`,
  )
}

/** The JavaScript of a value that is one expression, and has its type. */
export function codeOf(value: unknown): string | undefined {
  if (!isTemplate(value)) return undefined
  const { parts, alone } = splitScript(value)
  const [only] = parts
  return alone && typeof only === 'object' ? tryCode(only.source) : undefined
}

/** The JavaScript of the text that a template makes, or of the value of its only expression. */
function writeTextCode(value: string): string {
  const parts = splitScript(value).parts.map((part) =>
    typeof part === 'string' ? quoteValue(part) : tryCode(part.source),
  )
  return codeOf(value) ?? `[${parts.join(', ')}].join("")`
}

/** The column, or none where there is no value to compare with: the node fails, and takes it for no null. */
function nameIf(column: string, code: string): string {
  if (isTemplate(column)) throw new Error('expressions give both the column of a condition and its value')
  return `={{ (value => value === undefined ? '' : ${quoteValue(plainText(column) ?? '')})(${code}\n) }}`
}

/** An expression for the value, which is null, so that the node fails, if `fault` holds for it. */
const demand = (code: string, fault: string, message: string) =>
  `={{ ((value) => { if (${fault}) throw new Error(${JSON.stringify(message)}); return value })(${code}\n) }}`
