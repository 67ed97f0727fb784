import { isN8nCode } from '../../workflows/javascript/code.ts'
import type { ScriptReads } from '../../workflows/javascript/reads.ts'
import { type Bindings, findQueueKey, writeRoots } from '../expressions/bindings.ts'
import type { EvaluationDeps } from '../expressions/evaluation.ts'
import { describeFault } from '../expressions/failures.ts'
import type { EvaluatorReply } from '../expressions/job.ts'
import { createPacer } from '../expressions/pace.ts'
import { NodeFailure } from '../nodes/kit/failure.ts'
import { readJsonInTurns } from '../reading/json.ts'
import { writeScriptRoots } from './evaluate.ts'
import type { ConsoleLine, ScriptFault, ScriptLimits } from './job.ts'
import { choosePrelude } from './prelude/prelude.ts'

/**
 * The code of a node, a function's body. With `items` it runs once for each, with `$item` and `$index`; else
 * once. `reads` is what it reads.
 */
export type Code = {
  text: string
  reads: ScriptReads
  items?: unknown[] | undefined
  timeoutMs: number
  memoryMb: number
}

/**
 * What a code returned, undefined for nothing; with items, the list of what it returned, null for nothing. `spentMs` is the
 * processor time that it took.
 */
export type CodeResult = { value: unknown; console: ConsoleLine[]; spentMs: number }

/** Runs a node's code. Throws a NodeFailure: CodeFailed or CodeLimit, with what it wrote, or as the evaluator does. */
export async function runCodeAway(
  { pool, limits: { maxChars, heapMb } }: EvaluationDeps,
  { text, reads, items, timeoutMs, memoryMb }: Code,
  bindings: Bindings,
): Promise<CodeResult> {
  const limits: ScriptLimits = { timeoutMs, memoryMb, maxChars }
  const isN8n = isN8nCode(text)
  const rows = items?.map((item, index) => ({ item, index }))
  const list = items ? { items } : {}
  const reply = await pool.run(findQueueKey(bindings), () => {
    const written = items && JSON.stringify(items)
    return {
      script: {
        prelude: isN8n ? [...choosePrelude([text]), 'n8n'] : choosePrelude([text]),
        roots: isN8n
          ? writeScriptRoots([{ reads, source: text }], { ...bindings, ...list }, rows, written?.length)
          : // Dates are in the time zone of the workflow.
            writeRoots(
              [{ ...reads, roots: new Set([...reads.roots, 'execution']) }],
              bindings,
              written?.length,
            ),
        items: written,
        sources: [{ kind: 'body', text, each: items !== undefined }],
        limits,
      },
    }
  })
  if (reply.kind === 'fault') throw describeCodeFault(reply, limits)
  if (reply.kind !== 'script') throw describeOutside(reply, limits, heapMb)
  const [value] = reply.values
  // Its numbers are JavaScript's own.
  const read = typeof value === 'string' ? await readJsonInTurns(value, createPacer(), 'number') : undefined
  return { value: read?.value, console: reply.console, spentMs: reply.spentMs }
}

function describeCodeFault(fault: ScriptFault, limits: ScriptLimits): NodeFailure {
  const { cause, item, console } = fault
  const notes = console.length > 0 ? { notes: { console } } : {}
  const type = cause === 'ERROR' || cause === 'STUCK' ? 'CodeFailed' : 'CodeLimit'
  const at = item === undefined ? '' : ` (item ${item})`
  return new NodeFailure(`${describeScriptFault(fault, 'the code', limits)}${at}`, { type, ...notes })
}

/** Describes a fault as a sentence. `what` is its subject, such as `the code`. */
function describeScriptFault(
  { cause, message, line, column }: ScriptFault,
  what: string,
  { timeoutMs, memoryMb, maxChars }: ScriptLimits,
): string {
  switch (cause) {
    case 'TIMEOUT':
      return `${what} took longer than ${timeoutMs / 1_000} s of processor time`
    case 'MEMORY':
      return `${what} used too much memory (more than ${memoryMb} MB)`
    case 'SIZE':
      return `${what} has a result that is too big (more than ${maxChars / 1_000_000} MB)`
    case 'STUCK':
      return `${what} waits for a promise that nothing will settle`
    case 'ERROR': {
      const place = [line && `line ${line}`, column && `column ${column}`].filter(Boolean).join(', ')
      return `${what}${place && `, ${place}`}: ${message}`
    }
  }
}

/** Describes why a process ended: a call that cannot be interrupted took too long, or no process is available. */
function describeOutside(reply: EvaluatorReply, limits: ScriptLimits, heapMb: number): NodeFailure {
  if (reply.kind !== 'error') {
    return new NodeFailure('the evaluator gave an unexpected reply', { type: 'CodeFailed' })
  }
  if (reply.cause === 'DOWN' || reply.cause === 'BUSY') {
    return describeFault(reply.cause, 'the code', { ...limits, heapMb }, reply.message)
  }
  const cause = reply.cause === 'TOTAL' ? 'TIMEOUT' : reply.cause
  const message = describeScriptFault({ ...reply, kind: 'fault', cause, console: [] }, 'the code', limits)
  return new NodeFailure(message, { type: cause === 'ERROR' ? 'CodeFailed' : 'CodeLimit' })
}
