import { readdir, readFile } from 'node:fs/promises'
import { join, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseSync } from 'vite'
import { expect, test } from 'vitest'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const ROOMS = ['workflows', 'db', 'activities', 'api', 'worker']
const MAX_LINES = 100

type SyntaxNode = { type: string; start: number; end: number; [key: string]: unknown }

const FUNCTIONS = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression'])

const isNode = (value: unknown): value is SyntaxNode =>
  typeof value === 'object' && value !== null && 'type' in value && 'start' in value

/** What a declaration or a property calls its value. */
const readName = (node: SyntaxNode): string | undefined => {
  const named = node.id ?? node.key
  return isNode(named) ? String(named.name ?? named.value ?? named.type) : undefined
}

const countLines = (text: string) => text.split('\n').length

/** A statement that is only a function is the text of a script: it is read as what is in it. */
const unwrapScope = (statement: unknown): unknown => {
  const { expression } = statement as { expression?: { type: string; body?: unknown } }
  return (expression && FUNCTIONS.has(expression.type) && expression.body) || statement
}

/** Adds all functions, arrow functions and methods below a node; one without a name has that of what it is in. */
function findFunctions(node: unknown, name: string, found: { name: string; start: number; end: number }[]) {
  if (Array.isArray(node)) for (const item of node) findFunctions(item, name, found)
  if (!isNode(node)) return
  const own = readName(node) ?? name
  if (FUNCTIONS.has(node.type)) found.push({ name: own, start: node.start, end: node.end })
  for (const value of Object.values(node)) {
    if (typeof value === 'object') findFunctions(value, own, found)
  }
}

async function listLongFunctions(file: string) {
  const text = await readFile(join(ROOT, file), 'utf8')
  if (countLines(text) <= MAX_LINES) return []
  const { program, errors } = parseSync(file, text)
  expect(errors, file).toEqual([])
  const found: { name: string; start: number; end: number }[] = []
  // The outermost function of a script is its scope, as a module is.
  for (const statement of program.body) findFunctions(unwrapScope(statement), 'file', found)
  return found.flatMap(({ name, start, end }) => {
    const lines = countLines(text.slice(start, end))
    if (lines <= MAX_LINES) return []
    const line = countLines(text.slice(0, start))
    return [`${file}:${line} ${name} has ${lines} lines`]
  })
}

test(`no function has more than ${MAX_LINES} lines`, async () => {
  const entries = await Promise.all(
    ROOMS.map(async (room) =>
      (await readdir(join(ROOT, room), { recursive: true })).map(
        (entry) => `${room}/${entry.split(sep).join('/')}`,
      ),
    ),
  )
  const files = entries.flat().filter((file) => /\.(tsx?|js)$/.test(file))
  expect(files.length).toBeGreaterThan(1000)
  const long = (await Promise.all(files.map(listLongFunctions))).flat()
  expect(long).toEqual([])
})
