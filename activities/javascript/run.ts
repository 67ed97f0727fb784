import { startStopwatch } from '../stopwatch.ts'
import type { InsideFault, ScriptFault, ScriptJob, ScriptLimits, ScriptReply, ScriptSource } from './job.ts'
import { Escaped, makeSandbox, type Sandbox } from './sandbox.ts'

/** A sandbox that waits for the next job, so that this finds one at once. */
let spare: Promise<Sandbox> | undefined

/** How many pending jobs (microtasks) are done between two looks at the time. */
const JOBS_AT_ONCE = 1_000

/**
 * Runs a script job in a sandbox of its own. `begun` is called when its own evaluation begins, from which on its
 * limit counts. Does not throw; the caller must end this process if it never returns.
 */
export async function runScript(
  { script }: ScriptJob,
  begun: () => void,
): Promise<ScriptReply | ScriptFault> {
  const taken = spare ?? makeSandbox()
  spare = undefined
  const sandbox = await taken
  const parts = script.prelude.filter((part) => part !== 'base')
  if (parts.length > 0) await sandbox.load(parts)
  setImmediate(() => {
    spare = makeSandbox()
    // The next job makes its own, and fails with what is wrong.
    spare.catch(() => {
      spare = undefined
    })
  })
  const result = await evaluateScript(sandbox, script, begun)
  return { ...result, console: sandbox.readConsole() }
}

type Outcome = Omit<ScriptReply, 'console'> | Omit<ScriptFault, 'console'>

async function evaluateScript(
  sandbox: Sandbox,
  script: ScriptJob['script'],
  begun: () => void,
): Promise<Outcome> {
  const { roots, items, sources, limits } = script
  const stopwatch = startStopwatch(limits.timeoutMs)
  let stopped = false
  const isOver = () => {
    stopped ||= stopwatch.isOver()
    return stopped
  }
  sandbox.runtime.setMemoryLimit(limits.memoryMb * 1024 * 1024)
  sandbox.runtime.setInterruptHandler(isOver)
  begun()
  let at = -1
  try {
    sandbox.ask('load', roots, items)
    for (at = 0; at < sources.length; at++) {
      const { kind, text, each, spoils = kind === 'expression' && MAY_SPOIL.test(text) } = sources[at]!
      const compiled = sandbox.evaluate(wrap(sources[at]!), nameSource(at))
      sandbox.ask('add', compiled, each, spoils)
    }
    at = -1
    const unsettled = await finish(sandbox, limits.maxChars, limits.timeoutMs, isOver)
    if (unsettled) return { kind: 'fault', at: findSource(sandbox), cause: unsettled, message: '' }
    const fault = sandbox.ask('fault')
    if (typeof fault === 'string') return placeFault(JSON.parse(fault), sources, hasFilled(sandbox, limits))
    const values = readValues(sandbox, sources, limits.maxChars)
    return { kind: 'script', values, spentMs: stopwatch.spentMs() }
  } catch (error) {
    return describeEscape(error, stopped, at < 0 ? findSource(sandbox) : at, sources)
  }
}

/** Evaluates until all is done; says what is wrong if it never will be. */
async function finish(
  { ask, runtime }: Sandbox,
  maxChars: number,
  timeoutMs: number,
  isOver: () => boolean,
): Promise<'TIMEOUT' | 'STUCK' | undefined> {
  let sleptMs = 0
  ask('start', maxChars)
  for (;;) {
    runtime.executePendingJobs(JOBS_AT_ONCE).dispose()
    if (isOver()) return 'TIMEOUT'
    if (ask('isDone') === true) return undefined
    if (runtime.hasPendingJob()) continue
    const wait = Number(ask('nextTimer'))
    if (!(wait >= 0)) return 'STUCK'
    sleptMs += wait
    if (sleptMs > timeoutMs) return 'TIMEOUT'
    if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait))
    ask('runTimer')
  }
}

/** The values as the sandbox has them. Its own bound is only as good as the script leaves it. */
function readValues({ ask }: Sandbox, sources: ScriptSource[], maxChars: number): (string | null)[] {
  let chars = 0
  return sources.map((_, at) => {
    const text = ask('value', at)
    if (typeof text !== 'string') return null
    chars += text.length
    if (chars > 2 * maxChars) throw new RangeError('the script has changed its own limit')
    return text
  })
}

/**
 * Texts that may change the values that they read: calls that change arrays and dates, assignments, `delete`. An
 * expression that is taken for one only gets copies.
 */
const MAY_SPOIL =
  /\.\s*(?:sort|reverse|splice|push|pop|shift|unshift|fill|copyWithin|set\w*|delete|add|clear)\b|\bassign\b|\bdefine\w+|\bdelete\b|\+\+|--|[^=!<>]=(?![=>])|[<>]{2,3}=|\[\s*['"`]/

const HEADS = { expression: '(function () { return (', body: '(async function () {' }
const TAILS = { expression: '\n) })', body: '\n})' }

function wrap({ kind, text }: ScriptSource): string {
  return HEADS[kind] + text + TAILS[kind]
}

function nameSource(at: number): string {
  return `source-${at}`
}

/** Whether the script's memory had been full, or nearly: where it cannot be said, it had not. */
function hasFilled({ grownMb }: Sandbox, { memoryMb }: ScriptLimits): boolean {
  return grownMb() > memoryMb / 2
}

function placeFault(fault: InsideFault, sources: ScriptSource[], filled: boolean): Outcome {
  const { at, item, message, stack = '' } = fault
  const cause = fault.cause === 'NULL' ? (filled ? 'MEMORY' : 'ERROR') : fault.cause
  return { kind: 'fault', at, item, cause, message, ...findPlace(stack, at, sources) }
}

/** The first place in the source's own text that a stack trace names: line and column from 1. */
function findPlace(stack: string, at: number, sources: ScriptSource[]): { line?: number; column?: number } {
  const source = sources[at]
  const found = new RegExp(`\\b${nameSource(at)}:(\\d+)(?::(\\d+))?`).exec(stack)
  if (!source || !found) return {}
  const line = Number(found[1])
  const column = Number(found[2] ?? 0) - (line === 1 ? HEADS[source.kind].length : 0)
  const last = source.text.split('\n').length
  // A fault at the end of the text is found behind it.
  if (line > last) return { line: last }
  return column > 0 ? { line, column } : { line }
}

/** The source that was being evaluated when the evaluation was ended; -1 if the sandbox cannot say. */
function findSource({ runtime, ask }: Sandbox): number {
  runtime.removeInterruptHandler()
  runtime.setMemoryLimit(-1)
  try {
    return Number(ask('place'))
  } catch {
    return -1
  }
}

/** What ended the evaluation from outside of the script: its time, its memory, or a text that is no script. */
function describeEscape(error: unknown, stopped: boolean, at: number, sources: ScriptSource[]): Outcome {
  const fault = { kind: 'fault', at, message: '' } as const
  if (stopped) return { ...fault, cause: 'TIMEOUT' }
  if (error instanceof Escaped) {
    const { nameInside, message, stackInside } = error
    if (nameInside === 'SyntaxError') {
      const place = findPlace(stackInside, at, sources)
      return { ...fault, cause: 'ERROR', message: `SyntaxError: ${message.slice(0, 500)}`, ...place }
    }
    if (message === 'stack overflow') return { ...fault, cause: 'ERROR', message: TOO_DEEP }
    return { ...fault, cause: 'MEMORY' }
  }
  if (error instanceof RangeError && /call stack/.test(error.message)) {
    return { ...fault, cause: 'ERROR', message: TOO_DEEP }
  }
  return { ...fault, cause: 'MEMORY' }
}

const TOO_DEEP = 'is nested too deeply'
