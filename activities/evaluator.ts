import jsonata from 'jsonata'
import { RE2JS } from 're2js'
import type { Conversion } from './conversions.ts'
import { createTextCache, isTruthy, toPlain } from './plain.ts'

/**
 * The program of one evaluator process: runs what users write, one job at a time, and knows nothing else. The
 * pool kills it when a job takes too long; a heap that overflows ends this process and no other.
 */

/** `context`: whether it reads names without a variable, which are those of `$input`; else it has no context. */
export type Source = { text: string; context: boolean }

/** `roots` and `items` are JSON texts: what the expressions read, and the items that one of them goes over. */
type Work = { roots: string; sources: Source[] } | EachWork
type EachWork = { roots: string; items: string; each: Source; filter: boolean }
export type Job = Work | { conversion: Conversion }

/** What became of a job: JSON texts (null for nothing), the indexes a filter kept, or the JSON of all values. */
export type Reply =
  | { kind: 'ready' }
  | { kind: 'progress' }
  | { kind: 'values'; values: (string | null)[] }
  | { kind: 'kept'; kept: number[] }
  | { kind: 'mapped'; text: string }
  | { kind: 'error'; at: number; cause: Cause; message: string }

/** `DOWN` is the pool's own: no process could be had. */
export type Cause = 'TIMEOUT' | 'TOTAL' | 'MEMORY' | 'SIZE' | 'ERROR' | 'DOWN'

const [timeoutMs = 1_000, totalMs = 5_000, maxChars = 8_000_000] = process.argv.slice(2).map(Number)
const PROGRESS_MS = 100
const MAX_CACHED_CHARS = 200_000

const compiled = createTextCache<jsonata.Expression>(MAX_CACHED_CHARS)
const regexes = createTextCache<RE2JS>(MAX_CACHED_CHARS)

function compile(source: string): jsonata.Expression {
  return compiled(source, () => {
    const RegexEngine = LinearRegex as unknown as RegExpConstructor
    const expression = jsonata(source, { timeout: timeoutMs, RegexEngine })
    expression.registerFunction('eval', () => {
      throw new Error('$eval is not available')
    })
    return expression
  })
}

/** What JSONata needs of a RegExp, on an engine whose time is linear in the text. */
function LinearRegex(native: RegExp) {
  const pattern = regexes(String(native), () => {
    const flags = (native.ignoreCase ? RE2JS.CASE_INSENSITIVE : 0) | (native.multiline ? RE2JS.MULTILINE : 0)
    return RE2JS.compile(RE2JS.translateRegExp(native.source), flags)
  })
  let text: string | undefined
  let matcher = pattern.matcher('')
  return {
    lastIndex: 0,
    exec(input: string) {
      if (input !== text) {
        text = input
        matcher = pattern.matcher(input)
      }
      if (this.lastIndex > input.length || !matcher.find(this.lastIndex)) {
        this.lastIndex = 0
        return null
      }
      this.lastIndex = matcher.end()
      const groups = Array.from({ length: matcher.groupCount() + 1 }, (_, i) => matcher.group(i) ?? undefined)
      return Object.assign(groups, { index: matcher.start() })
    },
  }
}

const now = () => performance.now()

async function run(job: Job): Promise<Reply> {
  if ('conversion' in job) return convertAway(job.conversion)
  const started = now()
  let spoke = started
  let at = 0
  const step = () => {
    const time = now()
    if (time - started > totalMs) return false
    if (time - spoke > PROGRESS_MS) {
      spoke = time
      reply({ kind: 'progress' })
    }
    return true
  }
  try {
    let roots = readRoots(job)
    const items = 'items' in job ? (JSON.parse(job.items) as unknown[]) : []
    const length = 'items' in job ? items.length : job.sources.length
    const values: (string | null)[] = []
    const kept: number[] = []
    let chars = 0
    for (; at < length; at++) {
      if (!step()) return fail(at, 'TOTAL')
      const source = 'items' in job ? job.each : job.sources[at]!
      const bindings = 'items' in job ? { ...roots, item: items[at], index: at } : roots
      const value = toPlain(await compile(source.text).evaluate(contextOf(source, roots), bindings))
      if ('items' in job && job.filter) {
        if (isTruthy(value)) kept.push(at)
      } else {
        const text = value === undefined ? null : JSON.stringify(value)
        chars += text?.length ?? 0
        if (chars > maxChars) return fail(at, 'SIZE')
        values.push(text)
      }
      if (isSpoilt(job, source)) roots = readRoots(job)
    }
    if (!('items' in job)) return { kind: 'values', values }
    if (job.filter) return { kind: 'kept', kept }
    return { kind: 'mapped', text: `[${values.map((text) => text ?? 'null').join(',')}]` }
  } catch (error) {
    return describe(at, error)
  }
}

/** The parsers are loaded by the process that needs them first. */
async function convertAway(conversion: Conversion): Promise<Reply> {
  try {
    const { convert } = await import('./conversions.ts')
    const text = JSON.stringify(convert(conversion))
    return text.length > maxChars ? fail(0, 'SIZE') : { kind: 'values', values: [text] }
  } catch (error) {
    return describe(0, error)
  }
}

function readRoots(job: Work): Record<string, unknown> {
  return JSON.parse(job.roots)
}

function contextOf(source: Source, roots: Record<string, unknown>): unknown {
  return source.context ? roots.input : undefined
}

/** JSONata's object constructor writes into an empty array it meets: the next expression gets a fresh one. */
function isSpoilt(job: Work, source: Source): boolean {
  return source.text.includes('{') && job.roots.includes('[]')
}

function fail(at: number, cause: Cause, message = ''): Reply {
  return { kind: 'error', at, cause, message }
}

function describe(at: number, error: unknown): Reply {
  const { code, message } = (error ?? {}) as { code?: string; message?: string }
  if (code === 'D1012') return fail(at, 'TIMEOUT')
  if (error instanceof RangeError && /call stack/.test(error.message)) {
    return fail(at, 'ERROR', 'is nested too deeply')
  }
  if (error instanceof RangeError) return fail(at, 'MEMORY')
  return fail(at, 'ERROR', String(message ?? error).slice(0, 500))
}

function reply(message: Reply): void {
  // The service may be gone: `disconnect` ends this process then.
  process.send?.(message, () => {})
}

// A Ctrl-C reaches the whole process group, but work goes on until the service lets go.
process.on('SIGINT', () => {})
process.on('SIGTERM', () => {})
process.on('disconnect', () => process.exit(0))
process.on('message', (job: Job) => void run(job).then(reply))
Object.preventExtensions(Object.prototype)
reply({ kind: 'ready' })
