import { isObject, setOwn } from '../../workflows/json.ts'
import { type Bindings, findQueueKey, writeRoots } from '../expressions/bindings.ts'
import { describeFault, type ExpressionLimits, expressionFailure } from '../expressions/failures.ts'
import { type EvaluatorReply, JOB_TIME_FACTOR } from '../expressions/job.ts'
import { createPacer } from '../expressions/pace.ts'
import type { Watch } from '../expressions/watch/watch.ts'
import { NodeFailure } from '../nodes/kit/failure.ts'
import { findPlainly, findScriptMiss, isUnavailable, NOT_PLAIN } from './direct.ts'
import { findCurrent, findId, findItems, findPair } from './items.ts'
import type { ScriptJob, ScriptSource } from './job.ts'
import { type CompiledScript, quoteScript } from './texts.ts'

type ScriptDeps = {
  pool: { run(workflow: string, prepare: () => ScriptJob): Promise<EvaluatorReply> }
  limits: ExpressionLimits
  watch: Watch | undefined
}

/** An item that scripts are evaluated for, and its number. */
type ScriptItem = { item: unknown; index: number }

/** What the values in a sandbox may take, in MB. */
const MEMORY_MB = 64

/**
 * The values of the scripts in order, undefined for nothing: plain paths are found in place, all else by one job.
 * Throws a NodeFailure.
 */
export async function evaluateScripts(
  deps: ScriptDeps,
  scripts: CompiledScript[],
  bindings: Bindings,
): Promise<unknown[]> {
  const values: unknown[] = []
  const away: number[] = []
  for (const [at, script] of scripts.entries()) {
    values[at] = findHere(script, bindings)
    if (values[at] instanceof NodeFailure) throw values[at]
    if (values[at] === NOT_PLAIN) away.push(at)
  }
  if (deps.watch) await tellMisses(deps.watch, scripts, [{}], bindings)
  if (away.length === 0) return values
  const heavy = away.map((at) => scripts[at]!)
  const sources = heavy.map(
    ({ code }): ScriptSource => ({ kind: 'expression', text: code, each: false, spoils: false }),
  )
  const texts = await runScripts(deps, heavy, sources, bindings)
  for (const [i, at] of away.entries()) {
    const text = texts[i]!
    values[at] = text === null ? undefined : readValue(JSON.parse(text))
  }
  return values
}

/**
 * The values of the scripts for each item, or the item's failure. `bindings.items` are all items of the node, of
 * which these may be some. Throws a NodeFailure for what concerns all.
 */
export async function evaluateScriptsForEach(
  deps: ScriptDeps,
  scripts: CompiledScript[],
  rows: ScriptItem[],
  bindings: Bindings,
): Promise<(unknown[] | NodeFailure)[]> {
  const table = rows.map((): unknown[] | NodeFailure => [])
  const away: number[] = []
  const pace = createPacer()
  const scope: Bindings = { ...bindings, items: bindings.items ?? rows.map(({ item }) => item) }
  if (deps.watch && rows.length > 0) await tellMisses(deps.watch, scripts, rows, scope)
  for (const [at, script] of scripts.entries()) {
    let isPlain = script.plain !== undefined
    for (let place = 0; isPlain && place < rows.length; place++) {
      await pace()
      const value = findHere(script, Object.assign(scope, rows[place]))
      const row = table[place]!
      if (value === NOT_PLAIN) isPlain = false
      else if (value instanceof NodeFailure) table[place] = row instanceof NodeFailure ? row : value
      else if (Array.isArray(row)) row[at] = value
    }
    if (!isPlain) away.push(at)
  }
  if (away.length > 0) await fillRows(deps, scripts, away, rows, scope, table)
  return table
}

/** Tells of the paths that lead nowhere, for each of the items. */
async function tellMisses(
  watch: Watch,
  scripts: CompiledScript[],
  rows: Partial<ScriptItem>[],
  bindings: Bindings,
): Promise<void> {
  const pace = createPacer()
  const scope: Bindings = { ...bindings }
  for (const { source, watched } of scripts) {
    for (const path of watched) {
      let miss: string | undefined
      for (const row of rows) {
        await pace()
        miss = findScriptMiss(path, Object.assign(scope, row))
        if (miss === undefined) break
      }
      if (miss !== undefined) watch.tellScript(source, miss)
    }
  }
}

async function fillRows(
  deps: ScriptDeps,
  scripts: CompiledScript[],
  away: number[],
  rows: ScriptItem[],
  bindings: Bindings,
  table: (unknown[] | NodeFailure)[],
): Promise<void> {
  const heavy = away.map((at) => scripts[at]!)
  const codes = heavy.map(({ code }) => `() => ${code}`)
  const source: ScriptSource = {
    kind: 'expression',
    text: `$$row([${codes.join(', ')}])`,
    each: true,
    spoils: false,
  }
  const [text] = await runScripts(deps, heavy, [source], bindings, rows)
  const replies = JSON.parse(text ?? '[]') as ([unknown?][] | { at: number; message: string })[]
  for (const [place, reply] of replies.entries()) {
    const values = table[place]!
    if (values instanceof NodeFailure) continue
    if (Array.isArray(reply)) for (const [i, [value]] of reply.entries()) values[away[i]!] = readValue(value)
    else table[place] = expressionFailure(`${quoteScript(heavy[reply.at]!.source)}: ${reply.message}`)
  }
}

/** A value from the sandbox, in which infinity is an object, as JSON has no number for it. */
function readValue(value: unknown): unknown {
  if (!isObject(value) || typeof value.$$infinite !== 'boolean') return value
  return value.$$infinite ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY
}

/** A script's value without the sandbox, or its NodeFailure; NOT_PLAIN if that cannot be. */
function findHere({ plain, alone, source }: CompiledScript, bindings: Bindings): unknown {
  if (!plain) return NOT_PLAIN
  let text = ''
  for (const part of plain) {
    const value = typeof part === 'string' ? part : findPlainly(part, bindings)
    if (isUnavailable(value)) return expressionFailure(`${quoteScript(source)}: ${value.unavailable}`)
    if (alone || value === NOT_PLAIN) return value
    // What JavaScript makes of an object or a list may be anything.
    if (typeof value === 'object' && value !== null) return NOT_PLAIN
    if (value || value === 0 || value === false) text += String(value)
  }
  return text
}

async function runScripts(
  { pool, limits, watch }: ScriptDeps,
  scripts: CompiledScript[],
  sources: ScriptSource[],
  bindings: Bindings,
  rows?: ScriptItem[],
): Promise<(string | null)[]> {
  const timeoutMs = limits.timeoutMs * (rows ? JOB_TIME_FACTOR : 1)
  const reply = await pool.run(findQueueKey(bindings), () => {
    const items = rows && JSON.stringify(rows.map(({ item }) => item))
    const roots = writeScriptRoots(scripts, bindings, rows, items?.length)
    const prelude = [...new Set(scripts.flatMap((script) => script.prelude))]
    const { maxChars } = limits
    return {
      script: { prelude, roots, items, sources, limits: { timeoutMs, memoryMb: MEMORY_MB, maxChars } },
    }
  })
  if (reply.kind === 'script' || reply.kind === 'fault') watch?.tellConsole(reply.console)
  if (reply.kind === 'script') return reply.values
  const own = { ...limits, timeoutMs, heapMb: MEMORY_MB }
  const script = reply.kind === 'fault' || reply.kind === 'error' ? findScript(scripts, reply.at) : undefined
  const what = script ? quoteScript(script.source) : 'an expression of this node'
  if (reply.kind === 'error') throw describeFault(reply.cause, what, own, reply.message)
  if (reply.kind !== 'fault') throw expressionFailure('the evaluator gave an unexpected reply')
  if (reply.cause === 'STUCK') throw expressionFailure(`${what}: waits for something that never comes`)
  throw describeFault(reply.cause, what, own, reply.message)
}

function findScript(scripts: CompiledScript[], at: number): CompiledScript | undefined {
  return scripts.length === 1 ? scripts[0] : scripts[at]
}

/**
 * A pair as the sandbox gets it: its index in the node's items, the item itself, or the reason why there is no pair.
 */
type SentPair = number | { item: unknown } | string

/** The JSON of what the scripts read; see prelude/n8n.js. `spent`: the characters that the job has besides. */
export function writeScriptRoots(
  scripts: Pick<CompiledScript, 'reads' | 'source'>[],
  bindings: Bindings,
  rows: ScriptItem[] | undefined,
  spent = 0,
): string {
  const { items, index } = findCurrent(bindings)
  const roots = new Set(scripts.flatMap(({ reads }) => [...reads.roots]))
  const raw = new Set(
    scripts.flatMap(({ reads }) => [...reads.nodes].filter((name) => !reads.listed.has(name))),
  )
  const names: Record<string, string> = {}
  const lists: Record<string, unknown[] | string | null> = {}
  for (const { reads } of scripts) {
    for (const name of reads.nodes) setOwn(names, name, findId(name, bindings))
    for (const name of reads.listed) {
      const id = findId(name, bindings)
      const found = findItems(name, bindings)
      // Null is a node that has not been executed.
      if (!Object.hasOwn(bindings.nodes, id)) setOwn(lists, id, null)
      else setOwn(lists, id, Array.isArray(found) ? found : found.unavailable)
    }
  }
  const isOnEach = bindings.items !== undefined
  const readsAll = scripts.some(({ source }) => /\$(?:input\b|items\b|item\s*\()/.test(source))
  if (isOnEach) roots.delete('input')
  // With rows they are the items of the job.
  if (rows) for (const root of ['item', 'index']) roots.delete(root)
  const scope = {
    ...bindings,
    names,
    lists,
    pairs: findPairs(scripts, bindings, lists, rows?.map((row) => row.index) ?? [index]),
    each: isOnEach,
    indexes: rows?.some((row, at) => row.index !== at) ? rows.map((row) => row.index) : undefined,
    items: isOnEach && readsAll && rows?.length !== items.length ? items : undefined,
  }
  for (const root of ['execution', 'names', 'lists', 'pairs', 'each', 'indexes', 'items']) roots.add(root)
  const nodes = new Set([...raw].map((name) => findId(name, bindings)))
  return writeRoots([{ roots, nodes, context: false, problems: [] }], scope as unknown as Bindings, spent)
}

/** The pairs of the items at these indexes, by node and index; of all items if a script asks for any of them. */
function findPairs(
  scripts: Pick<CompiledScript, 'reads' | 'source'>[],
  bindings: Bindings,
  lists: Record<string, unknown[] | string | null>,
  indexes: number[],
): Record<string, Record<number, SentPair>> {
  const pairs: Record<string, Record<number, SentPair>> = {}
  const all = scripts.some(({ source }) => /itemMatching|pairedItem/.test(source))
  const wanted = all ? [...findCurrent(bindings).items.keys()] : indexes
  for (const name of new Set(scripts.flatMap(({ reads }) => [...reads.paired]))) {
    const id = findId(name, bindings)
    const list = lists[id]
    const places = new Map(Array.isArray(list) ? list.map((item, at) => [item, at]) : [])
    const found: Record<number, SentPair> = {}
    for (const index of wanted) {
      const pair = findPair(name, index, bindings)
      if ('unavailable' in pair) found[index] = pair.unavailable
      else {
        // Only an object is surely the same one.
        const at = typeof pair.item === 'object' ? places.get(pair.item) : undefined
        found[index] = at ?? pair
      }
    }
    setOwn(pairs, id, found)
  }
  return pairs
}
