import { upgradeFromTwoToThree } from '@scalar/openapi-upgrader/2.0-to-3.0'
import { upgradeFromThreeToThreeOne } from '@scalar/openapi-upgrader/3.0-to-3.1'
import { parse as parseYaml } from 'yaml'
import type { ConnectorAction } from '../../../workflows/connectors/connector.ts'
import { isObject } from '../../../workflows/json.ts'
import { quoteShort } from '../../../workflows/problem.ts'
import { type ApiOperation, readOperation } from './operation.ts'
import { fillServer, type OpenApiOptions, textOf } from './parts.ts'
import type { Doc } from './refs.ts'
import { resolve } from './refs.ts'
import { readSignIn, type SchemeSignIn } from './signin.ts'

/** What a document says of a service. `problems` say what of it cannot be used, and why. */
export type ReadDocument = SchemeSignIn & {
  title: string
  summary: string
  /** Undefined where the document says none, or one that is `relative` to its own address. */
  server: string | undefined
  relative: string | undefined
  actions: Record<string, ConnectorAction>
  problems: string[]
}

const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch'] as const
const MAX_OPERATIONS = 5_000
const MAX_PROBLEMS = 100

/**
 * Reads an OpenAPI document of 2.0, 3.0 or 3.1, in JSON or YAML. Only for an evaluator process: it may take any time and
 * memory. Throws an Error that says what is wrong with the document as a whole.
 */
export function readOpenApi(text: string, options: OpenApiOptions): ReadDocument {
  const doc = upgrade(parseDocument(text))
  const info = isObject(doc.info) ? doc.info : {}
  const problems: string[] = []
  const signIn = readSignIn(doc)
  const actions: Record<string, ConnectorAction> = {}
  let count = 0
  for (const [path, given] of Object.entries(isObject(doc.paths) ? doc.paths : {})) {
    const item = resolve(doc, given)
    if (!item) {
      problems.push(`paths.${path} refers to something that the document does not have`)
      continue
    }
    for (const method of METHODS) {
      if (!isObject(item[method])) continue
      if (++count > MAX_OPERATIONS) throw new Error(`has more than ${MAX_OPERATIONS} operations`)
      const operation: ApiOperation = { path, method, item, own: item[method] }
      try {
        const { id, action } = readOperation(doc, operation, options)
        actions[nameAnew(actions, id)] = action
      } catch (error) {
        problems.push(`${method.toUpperCase()} ${path} ${(error as Error).message}`)
      }
    }
  }
  if (count === 0) throw new Error('has no operations')
  const { length } = problems
  return {
    title: textOf(info.title) ?? 'A service',
    summary: (textOf(info.summary) ?? textOf(info.description) ?? '').split('\n')[0]!.slice(0, 500),
    ...readServer(doc),
    ...signIn,
    actions,
    problems:
      length > MAX_PROBLEMS
        ? [...problems.slice(0, MAX_PROBLEMS), `and ${length - MAX_PROBLEMS} more`]
        : problems,
  }
}

function parseDocument(text: string): Doc {
  const isJson = /^\s*\{/.test(text)
  let value: unknown
  try {
    // Aliases are bounded, since each may stand for many values.
    value = isJson ? JSON.parse(text) : parseYaml(text, { maxAliasCount: 100, merge: false })
  } catch (error) {
    throw new Error(
      `is neither JSON nor YAML that can be read: ${quoteShort((error as Error).message.split('\n')[0]!)}`,
    )
  }
  if (!isObject(value)) throw new Error('is not an object')
  return value
}

function upgrade(doc: Doc): Doc {
  const version = String(doc.openapi ?? doc.swagger ?? '')
  const stranger = findStranger(doc)
  if (stranger) throw new Error(`refers to another document (${quoteShort(stranger)}): put all into one`)
  if (/^2\.0\b/.test(version)) return upgradeFromThreeToThreeOne(upgradeFromTwoToThree(doc) as never) as Doc
  if (/^3\.0\b/.test(version)) return upgradeFromThreeToThreeOne(doc as never) as Doc
  if (/^3\.[12]\b/.test(version)) return doc
  throw new Error('is no OpenAPI document of 2.0, 3.0, 3.1 or 3.2')
}

/** A reference to another file or address. */
function findStranger(doc: Doc): string | undefined {
  const waiting: unknown[] = [doc]
  while (waiting.length > 0) {
    const value = waiting.pop()
    if (typeof value !== 'object' || value === null) continue
    const { $ref } = value as Doc
    if (typeof $ref === 'string' && !$ref.startsWith('#')) return $ref
    for (const one of Object.values(value)) if (typeof one === 'object') waiting.push(one)
  }
  return undefined
}

function readServer({ servers }: Doc): Pick<ReadDocument, 'server' | 'relative'> {
  const first = Array.isArray(servers) ? servers[0] : undefined
  if (!isObject(first)) return { server: undefined, relative: undefined }
  return { server: fillServer(first), relative: textOf(first.url) }
}

function nameAnew(actions: Record<string, unknown>, wanted: string): string {
  let name = wanted
  for (let count = 2; Object.hasOwn(actions, name); count++) name = `${wanted}_${count}`
  return name
}
