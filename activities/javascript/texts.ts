import { LRUCache } from 'lru-cache'
import { DATE_METHODS } from '../../workflows/javascript/names.ts'
import { listWatchedPaths, readScriptPath, type ScriptPath } from '../../workflows/javascript/paths.ts'
import { readScript, type ScriptReads } from '../../workflows/javascript/reads.ts'
import {
  describePosition,
  findParents,
  measureScript,
  parseScript,
  type ScriptNode,
  type ScriptSyntaxError,
} from '../../workflows/javascript/syntax.ts'
import { type ScriptTemplate, splitScript } from '../../workflows/javascript/template.ts'
import { TURN_UNITS, takeTurn } from '../../workflows/turns.ts'
import { expressionFailure } from '../expressions/failures.ts'
import type { PreludePart } from './job.ts'
import { choosePrelude } from './prelude/prelude.ts'
import { mayChange, rewriteScript } from './rewrite.ts'

/** A text that begins with `=`, ready to be evaluated. */
export type CompiledScript = {
  /** The whole text. */
  source: string
  reads: ScriptReads
  /** It is one expression with nothing around it, whose value keeps its type; else a text is made of `parts`. */
  alone: boolean
  /** If all its expressions are plain paths: those and the texts between them. */
  plain: (string | ScriptPath)[] | undefined
  /** The plain paths that it reads in any case, of which the author should know if there is nothing. */
  watched: ScriptPath[]
  /** The expression for the sandbox. */
  code: string
  prelude: PreludePart[]
}

const cache = new LRUCache<string, CompiledScript>({
  maxSize: 1_000_000,
  sizeCalculation: ({ source, code }) => source.length + code.length,
})

/** The units of work that scripts took to compile since a caller has waited for a turn. */
let spent = 0

/**
 * Compiles a text that begins with `=`, once for each text; timers and sockets have their turn in between.
 * Throws a NodeFailure if it is not valid.
 */
export async function compileScript(text: string): Promise<CompiledScript> {
  const known = cache.get(text)
  if (known) return known
  try {
    const template = splitScript(text)
    const sources = template.parts.filter((part) => typeof part !== 'string')
    const trees: ScriptNode[] = []
    for (const { source, start } of sources) {
      spent += 2 * measureScript(source)
      if (spent > TURN_UNITS) {
        spent = 0
        await takeTurn()
      }
      trees.push(parseAt(source, start))
    }
    const compiled = readTemplateScript(text, template, trees)
    cache.set(text, compiled)
    return compiled
  } catch (error) {
    const { message, position } = error as ScriptSyntaxError
    const where = position === undefined ? '' : ` (${describePosition(text, position)})`
    throw expressionFailure(`${quoteScript(text)}: ${message}${where}`)
  }
}

function parseAt(source: string, start: number): ScriptNode {
  try {
    return parseScript(source)
  } catch (error) {
    const { message, position } = error as ScriptSyntaxError
    throw position === undefined ? error : Object.assign(new Error(message), { position: start + position })
  }
}

function readTemplateScript(
  text: string,
  { parts, alone }: ScriptTemplate,
  trees: ScriptNode[],
): CompiledScript {
  const reads = emptyReads()
  const methods = new Set<string>()
  const codes: string[] = []
  const plain: (string | ScriptPath)[] = []
  const watched: ScriptPath[] = []
  let changes = false
  let at = 0
  for (const part of parts) {
    if (typeof part === 'string') {
      codes.push(JSON.stringify(part))
      plain.push(part)
      continue
    }
    const tree = trees[at++]!
    const own = readScript(part.source, tree)
    const [problem] = own.found
    if (problem) throw Object.assign(new Error(problem.message), { position: part.start + problem.position })
    addReads(reads, own)
    changes ||= mayChange([...findParents(tree).keys()])
    codes.push(`() => (${rewriteScript(part.source, tree, methods)})`)
    const path = readScriptPath(tree)
    if (path) plain.push(path)
    watched.push(...listWatchedPaths(tree))
  }
  return {
    source: text,
    reads,
    alone,
    plain: plain.length === parts.length ? plain : undefined,
    watched,
    code: alone ? `$$value(${codes[0]}, ${changes})` : `$$text([${codes.join(', ')}], ${changes})`,
    prelude: choosePieces(text, methods),
  }
}

/** What a script reads that reads nothing. */
export function emptyReads(): ScriptReads {
  return {
    roots: new Set(),
    nodes: new Set(),
    context: false,
    problems: [],
    listed: new Set(),
    paired: new Set(),
    found: [],
  }
}

function addReads(to: ScriptReads, from: ScriptReads): void {
  for (const name of from.roots) to.roots.add(name)
  for (const name of from.nodes) to.nodes.add(name)
  for (const name of from.listed) to.listed.add(name)
  for (const name of from.paired) to.paired.add(name)
}

/** The parts of the library that a text may need; `methods` are n8n's methods that it calls. */
function choosePieces(text: string, methods: Set<string>): PreludePart[] {
  const parts = new Set<PreludePart>([...choosePrelude([text]), 'n8n'])
  if ([...methods].some((method) => DATE_METHODS.has(method))) parts.add('intl').add('luxon')
  if (methods.size > 0) parts.add('intl').add('methods')
  if (methods.has('toTitleCase')) parts.add('titlecase')
  return [...parts]
}

/** Quotes a text that begins with `=` for a message, cut to 80 characters. */
export function quoteScript(text: string): string {
  const line = text.replace(/\s+/g, ' ')
  return `expression ${line.length > 80 ? `${line.slice(0, 80)}...` : line}`
}
