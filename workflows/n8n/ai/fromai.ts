import { parseExpressionAt } from 'acorn'
import { isObject, setOwn } from '../../json.ts'
import type { SourceNode } from '../document.ts'
import type { MapperTools } from '../mapper.ts'
import type { ProblemReporter } from '../report.ts'
import { quoteValue } from '../texts.ts'
import type { Fields } from './asking.ts'

/** An argument with which the model calls a tool. */
type ToolArgument = {
  name: string
  description?: string | undefined
  schema: Fields
  optional?: boolean
  fallback?: unknown
}

/** The arguments of one tool, as they are found in the texts of its node. */
export type ArgumentList = {
  add(argument: ToolArgument): void
  /** The value with every call of $fromAI in its texts replaced by the argument that it names. */
  read<T>(value: T): T
  /** The JSON Schema of all arguments. */
  describe(): Fields
  isEmpty(): boolean
  /** Whether an expression is an argument that is no text, and nothing else. */
  isTyped(source: string): boolean
}

/** The parts of a tool of n8n's: `args` collects the arguments that the model calls it with. */
export type ToolGiven = { node: SourceNode; tools: MapperTools; args: ArgumentList; report: ProblemReporter }

const MAX_ARGUMENTS = 100
const NAME = /^[A-Za-z0-9_-]{1,64}$/
const CALL = /\$fromai(?=\s*\()/gi

const TYPES: Record<string, Fields> = {
  string: { type: 'string' },
  number: { type: 'number' },
  boolean: { type: 'boolean' },
  json: {
    anyOf: [
      { type: 'object', minProperties: 1 },
      { type: 'array', minItems: 1 },
    ],
  },
}

/** An argument in an expression. */
export const writeArgument = (name: string) => `$args[${JSON.stringify(name)}]`

/** The schema of a type of n8n's; of one that it does not have, a text. */
export const schemaOf = (type: unknown): Fields => TYPES[String(type).toLowerCase()] ?? TYPES.string!

export function createArguments(): ArgumentList {
  const known = new Map<string, ToolArgument>()
  let calls = 0

  function add(argument: ToolArgument): void {
    if (!NAME.test(argument.name))
      throw new Error(`the name of its argument "${argument.name.slice(0, 100)}" is not valid`)
    const before = known.get(argument.name)
    const same = (one: ToolArgument) => JSON.stringify([one.schema, one.description, one.fallback])
    if (before && same(before) !== same(argument))
      throw new Error(`it describes its argument "${argument.name}" in two ways`)
    known.set(argument.name, argument)
  }

  function readText(text: string): string {
    if (!text.startsWith('=')) return text
    let written = ''
    let from = 0
    for (const { index, 0: name } of text.matchAll(CALL)) {
      if (index < from || !text.slice(0, index).includes('{{')) continue
      if (++calls > MAX_ARGUMENTS) throw new Error(`it calls $fromAI more than ${MAX_ARGUMENTS} times`)
      const { end, argument } = readCall(text, index, name)
      add(argument)
      const { name: key, fallback } = argument
      const value = writeArgument(key)
      written += text.slice(from, index)
      written += fallback === undefined ? value : `(${value} ?? ${writeValue(fallback)})`
      from = end
    }
    return written + text.slice(from)
  }

  function read(value: unknown): unknown {
    if (typeof value === 'string') return readText(value)
    if (Array.isArray(value)) return value.map(read)
    if (!isObject(value)) return value
    return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, read(entry)]))
  }

  return {
    add,
    read: <T>(value: T) => read(value) as T,
    isEmpty: () => known.size === 0,
    isTyped(source) {
      const [, name = ''] = /^\(?\$args\["([\w-]+)"\](?: \?\? [\w.-]+\))?$/.exec(source) ?? []
      const type = known.get(name)?.schema.type
      return known.has(name) && type !== 'string'
    },
    describe() {
      const properties: Fields = {}
      for (const { name, description, schema, fallback } of known.values()) {
        setOwn(properties, name, {
          ...schema,
          ...(description ? { description } : {}),
          ...(fallback === undefined ? {} : { default: fallback }),
        })
      }
      const required = [...known.values()].filter(
        ({ optional, fallback }) => !optional && fallback === undefined,
      )
      return {
        type: 'object',
        properties,
        ...(required.length > 0 ? { required: required.map(({ name }) => name) } : {}),
        additionalProperties: false,
      }
    },
  }
}

/** A value in an expression; braces in it would end that. */
function writeValue(value: unknown): string {
  if (typeof value === 'string') return quoteValue(value)
  return typeof value === 'object' ? `JSON.parse(${quoteValue(JSON.stringify(value))})` : String(value)
}

type Syntax = { type: string; start: number; end: number; [key: string]: unknown }

/** The call of $fromAI that begins there: its end, and the argument that it names. */
function readCall(text: string, start: number, name: string): { end: number; argument: ToolArgument } {
  let node: Syntax | undefined
  try {
    node = parseExpressionAt(text, start, { ecmaVersion: 'latest' }) as unknown as Syntax
  } catch {
    throw new Error(`a call of ${name} is no JavaScript`)
  }
  // The call is the first thing in whatever is made of it.
  while (node && !(node.type === 'CallExpression' && (node.callee as Syntax).type === 'Identifier'))
    node = FIRST.map((key) => node![key] as Syntax | undefined).find((inner) => inner?.start === start)
  if (!node) throw new Error(`a call of ${name} cannot be read`)
  const [key, description, type = 'string', fallback] = (node.arguments as Syntax[]).map((one) =>
    readLiteral(one, name),
  )
  if (TYPES[String(type).toLowerCase()] === undefined)
    throw new Error(`it asks for an argument of the type "${String(type)}"`)
  return {
    end: node.end,
    argument: {
      name: String(key ?? ''),
      schema: schemaOf(type),
      ...(description ? { description: String(description) } : {}),
      ...(fallback === undefined ? {} : { fallback: castFallback(fallback, String(type).toLowerCase()) }),
    },
  }
}

const FIRST = ['callee', 'object', 'left', 'test', 'tag', 'expression']

function readLiteral(node: Syntax, name: string): unknown {
  const { type } = node
  if (type === 'Literal' && node.regex === undefined) return node.value
  if (type === 'TemplateLiteral') {
    const [quasi, ...more] = node.quasis as { value: { cooked: string } }[]
    if (quasi && more.length === 0) return quasi.value.cooked
  }
  if (type === 'Identifier' && node.name === 'undefined') return undefined
  if (type === 'UnaryExpression' && node.operator === '-') {
    const value = readLiteral(node.argument as Syntax, name)
    if (typeof value === 'number') return -value
  }
  throw new Error(`a call of ${name} is given what is computed`)
}

/** A fallback as n8n reads it: as a text, then as its type. */
function castFallback(value: unknown, type: string): unknown {
  const text = String(value)
  if (type === 'string') return text
  if (type === 'number' && !Number.isNaN(Number(text))) return Number(text)
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
