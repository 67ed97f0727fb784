import { splitScript } from '../../javascript/template.ts'
import { type Fields, findCredential, objectOf } from '../ai/asking.ts'
import type { ToolGiven } from '../ai/fromai.ts'
import { isTemplate, plainText } from '../texts.ts'
import { readStatement } from './statements.ts'

/** Postgres and MySQL as tools: a statement, whose values are its parameters. */
export function mapDatabaseTool(given: ToolGiven): Fields {
  const { node, tools, args, report } = given
  const { operation = 'insert', query, options } = node.parameters
  if (operation !== 'executeQuery')
    throw new Error(
      `it does "${String(operation)}" with a table, and Perdure has only SQL as a tool: write the statement`,
    )
  const { queryReplacement, ...rest } = objectOf(options)
  for (const [name, value] of Object.entries(rest)) {
    const message = `Perdure has no option like n8n's "${name}" for this tool, so it was left out.`
    if (!QUIET.has(name)) report('parameter', `parameters.options.${name}`, message, value)
  }
  const isMySql = node.type === 'mySqlTool'
  const own = readParams(args.read(queryReplacement))
  const { sql, values } = readStatement(args.read(query), { isMySql, own: own.length, whole: WHOLE })
  if (isMySql && own.length > 0 && values.length > 0)
    throw new Error('its statement has both expressions and parameters')
  const params = [...values, ...own]
  // The credential of a tool is the agent's to report.
  const credentialId = findCredential(node, tools)
  return { type: 'DATABASE_QUERY', credentialId, query: sql, ...(params.length > 0 ? { params } : {}) }
}

/** Options that make no difference here. */
export const QUIET = new Set([
  'connectionTimeout',
  'delayClosingIdleConnection',
  'largeNumbersOutput',
  'queryBatching',
])

const WHOLE = 'the model writes its SQL, and Perdure has only statements whose values the model gives'

/** The values of a statement's parameters, which n8n has as a text with commas. */
function readParams(given: unknown): string[] {
  if (given === undefined || given === '') return []
  const text = String(given)
  if (!isTemplate(text)) return (plainText(text) ?? '').split(',').map((one) => one.trim())
  const { parts } = splitScript(text)
  const between = parts.filter((part) => typeof part === 'string').map((part) => part.trim())
  if (!between.every((part) => part === ',' || part === ''))
    throw new Error('texts stand beside the expressions for the parameters of its statement')
  const sources = parts.flatMap((part) => (typeof part === 'string' ? [] : [part.source.trim()]))
  const [only, ...more] = sources
  if (only?.startsWith('[') && more.length === 0) return splitList(only)
  return sources.map((source) => `={{ ${source} }}`)
}

/** The entries of a list in an expression. */
function splitList(source: string): string[] {
  const found = /^\[([^[\]{}()`]*|(?:[^[\]{}()`]*\$args\["[\w-]+"\][^[\]{}()`]*)*)\]$/.exec(source)
  const inner = found?.[1]?.trim() ?? ''
  if (!found || /["'][^"']*,[^"']*["']/.test(inner.replaceAll(/\$args\["[\w-]+"\]/g, '')))
    throw new Error('the parameters of its statement are computed together')
  return inner === '' ? [] : inner.split(',').map((one) => `={{ ${one.trim()} }}`)
}
