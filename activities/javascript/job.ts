/**
 * The parts of the library that scripts have, which are evaluated in the sandbox before them. `base` is always
 * there; the others are only loaded for sources that may need them, because they take time and memory.
 */
export type PreludePart = 'base' | 'intl' | 'luxon' | 'buffer' | 'jmespath' | 'titlecase' | 'n8n' | 'methods'

/**
 * An `expression` gives its value, a `body` is the inside of an async function and gives what that returns. `each`:
 * once for each item, with `$item` and `$index`. `spoils`: it may change the values that it reads, so the others get
 * copies; if it is undefined, the text of an expression is looked at.
 */
export type ScriptSource = { kind: 'expression' | 'body'; text: string; each: boolean; spoils?: boolean }

/**
 * `timeoutMs` is processor time, and for a script that sleeps the clock too; `memoryMb` is what its values take
 * in the sandbox; `maxChars` is the JSON of all results together.
 */
export type ScriptLimits = { timeoutMs: number; memoryMb: number; maxChars: number }

/**
 * A job for an evaluator process: evaluates JavaScript in a sandbox that only this job uses. `roots` is the JSON
 * of what the sources read (see writeRoots), `items` the JSON of a list. The sources are evaluated in their order,
 * one after the other; the first that fails ends the job.
 */
export type ScriptJob = {
  script: {
    prelude: PreludePart[]
    roots: string
    items?: string | undefined
    sources: ScriptSource[]
    limits: ScriptLimits
  }
}

/** What a script writes with `console`. */
export type ConsoleLine = { level: string; text: string }

/**
 * `values` has the JSON of each source's value, null for nothing (undefined); with `each`, of the list of values,
 * where nothing is null. `spentMs` is the processor time that it took.
 */
export type ScriptReply = {
  kind: 'script'
  values: (string | null)[]
  spentMs: number
  console: ConsoleLine[]
}

/**
 * Where a script failed: the index of the source (-1 if that is unknown) and of the item, line and column in the
 * source's own text, both from 1, and what it had written until then. STUCK: it waits for a promise that nothing
 * will settle.
 */
export type ScriptFault = {
  kind: 'fault'
  at: number
  item?: number | undefined
  cause: 'TIMEOUT' | 'MEMORY' | 'SIZE' | 'STUCK' | 'ERROR'
  message: string
  line?: number | undefined
  column?: number | undefined
  console: ConsoleLine[]
}

/** The most characters that a script's console keeps. */
export const MAX_CONSOLE = 12_000

/** The processor time that a process may take to load the sandbox, before the script's own begins. */
export const SCRIPT_LOAD_MS = 10_000

/** What goes wrong with a script, as the sandbox tells its host. */
export type InsideFault = {
  at: number
  item?: number
  /** NULL: null was thrown, as it also is when the memory runs out. */
  cause: 'ERROR' | 'SIZE' | 'MEMORY' | 'NULL'
  message: string
  stack?: string
}
