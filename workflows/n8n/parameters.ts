import { castToString, type JsonataCode, numberCode, quoteString, unknownCode } from './expressions/code.ts'
import { translateExpression } from './expressions/expression.ts'
import type { NodeReferences } from './expressions/translator.ts'
import type { ProblemReporter } from './report.ts'
import { joinTemplateParts, splitN8nTemplate, type TemplatePart, writeTemplate } from './templates.ts'

/**
 * Reads the parameters of one n8n node. `path` says where in the node a value is. An expression that cannot
 * be translated is reported, and fails our node when the value is needed.
 */
export type ParameterReader = {
  /** The value for the config of one of our nodes, in which strings are templates. */
  readTemplate(value: unknown, path: string): unknown
  /** The value as JSONata. */
  readCode(value: unknown, path: string): JsonataCode
  /** JSON with expressions in strings and as values. Reports JSON that is not valid, and returns undefined. */
  readJson(text: string, path: string): { value: unknown } | undefined
  /** The expressions in a string and the plain text between them, in order. */
  readParts(text: string, path: string): TemplatePart[]
}

/** `count` is the number of expressions read so far. */
type Context = { references: NodeReferences; report: ProblemReporter; count: number }

/** The most expressions of a node: no more could be saved. */
const MAX_EXPRESSIONS = 1_000

export function createParameterReader(references: NodeReferences, report: ProblemReporter): ParameterReader {
  const context = { references, report, count: 0 }
  return {
    readTemplate: (value, path) => readTemplate(context, value, path),
    readCode: (value, path) => readCode(context, value, path),
    readJson: (text, path) => readJson(context, text, path),
    readParts: (text, path) => readParts(context, text, path),
  }
}

function readTemplate(context: Context, value: unknown, path: string): unknown {
  if (typeof value === 'string') return writeTemplate(readParts(context, value, path))
  if (Array.isArray(value)) return value.map((entry, i) => readTemplate(context, entry, `${path}[${i}]`))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, entry]) => [key, readTemplate(context, entry, `${path}.${key}`)]),
  )
}

function readCode(context: Context, value: unknown, path: string): JsonataCode {
  if (typeof value === 'string') return joinTemplateParts(readParts(context, value, path))
  if (typeof value === 'number') return numberCode(String(value))
  if (typeof value === 'boolean') return { text: String(value), hint: 'boolean' }
  if (value === null || value === undefined) return { text: 'null', hint: 'null' }
  if (Array.isArray(value)) {
    const entries = value.map((entry, i) => readCode(context, entry, `${path}[${i}]`).text)
    return { text: `[${entries.join(', ')}]`, hint: 'list' }
  }
  const fields = Object.entries(value).map(
    ([key, entry]) => `${quoteString(key)}: ${readCode(context, entry, `${path}.${key}`).text}`,
  )
  return { text: `{${fields.join(', ')}}`, hint: 'object' }
}

/** Only a string that begins with = has expressions. */
function readParts(context: Context, text: string, path: string, unwrapJson = false): TemplatePart[] {
  if (!text.startsWith('=')) return [text]
  const parts = splitN8nTemplate(text.slice(1))
  context.count += parts.filter((part) => typeof part !== 'string').length
  if (context.count > MAX_EXPRESSIONS) throw new Error(`it has more than ${MAX_EXPRESSIONS} expressions`)
  return parts.flatMap((part): TemplatePart[] => {
    if (typeof part === 'string') return part === '' ? [] : [part]
    return [readExpression(context, part.source, path, text, unwrapJson)]
  })
}

const TIME_ZONE =
  "n8n computes this date in the workflow's time zone. Perdure computes it in UTC: if the difference " +
  'matters, use a DATE node, which takes a time zone.'

function readExpression(
  { references, report }: Context,
  source: string,
  path: string,
  original: string,
  unwrapJson: boolean,
): JsonataCode {
  let dependsOnTimeZone = false
  const noteTimeZone = () => {
    dependsOnTimeZone = true
  }
  try {
    const code = translateExpression(source.trim(), { ...references, noteTimeZone }, unwrapJson)
    if (dependsOnTimeZone) report('expression', path, TIME_ZONE, original)
    return code
  } catch (error) {
    const reason = (error as Error).message
    const message =
      `Perdure cannot translate this expression, because it ${reason}. The node fails when it needs the ` +
      'value: write it as a JSONata expression.'
    report('expression', path, message, original)
    // The source has lost its braces here: Perdure would evaluate what is between them.
    const failure = `An n8n expression was not imported, because it ${reason}: ${source.trim().slice(0, 500)}`
    return unknownCode(`$error(${quoteString(failure)})`)
  }
}

/** What we write in place of an expression while the text around it is parsed as JSON. */
const markInString = (index: number) => `\\u0001${index}\\u0001`
const markValue = (index: number) => `"\\u0002${index}\\u0002"`

function readJson(context: Context, text: string, path: string): { value: unknown } | undefined {
  if (!text.startsWith('=')) return parseJson(context, text, path)
  // Authors call JSON.stringify to put a value into JSON. We put in the value itself, so the call is dropped.
  const parts = readParts(context, text, path, true)
  if (parts.length === 1 && typeof parts[0] === 'object') return { value: writeTemplate(parts) }
  const codes: JsonataCode[] = []
  let inString = false
  let marked = ''
  for (const part of parts) {
    if (typeof part === 'string') {
      inString = endsInString(part, inString)
      marked += part
    } else {
      const index = codes.push(part) - 1
      marked += inString ? markInString(index) : markValue(index)
    }
  }
  const parsed = parseJson(context, marked, path)
  return parsed && { value: fillMarks(parsed.value, codes) }
}

/** Whether a piece of JSON ends inside of a string. */
function endsInString(json: string, inString: boolean): boolean {
  let isOpen = inString
  for (let i = 0; i < json.length; i++) {
    if (json[i] === '\\' && isOpen) i++
    else if (json[i] === '"') isOpen = !isOpen
  }
  return isOpen
}

function parseJson({ report }: Context, text: string, path: string): { value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) }
  } catch {
    report(
      'parameter',
      path,
      'n8n reads this parameter as JSON, but it is not valid JSON. It was left out: correct it in the node.',
      text,
    )
    return undefined
  }
}

/** Replaces the marks by the expressions, as templates. */
function fillMarks(value: unknown, codes: JsonataCode[]): unknown {
  if (typeof value === 'string') {
    const whole = /^\u0002(\d+)\u0002$/.exec(value)
    if (whole) return writeTemplate([codes[Number(whole[1])]!])
    const pieces = value.split('\u0001').map((piece, i) => (i % 2 === 0 ? piece : codes[Number(piece)]!))
    const parts = pieces.filter((piece) => piece !== '')
    const [only] = parts
    // The expression is between quotes, so its value becomes a string. Null becomes an empty one.
    if (parts.length === 1 && typeof only === 'object') return writeTemplate([castToString(only, '""')])
    return writeTemplate(parts)
  }
  if (Array.isArray(value)) return value.map((entry) => fillMarks(entry, codes))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, fillMarks(entry, codes)]))
}
