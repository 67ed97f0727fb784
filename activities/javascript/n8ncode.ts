import { readScriptBody } from '../../workflows/javascript/reads.ts'
import { parseBody, type ScriptSyntaxError } from '../../workflows/javascript/syntax.ts'
import { type Bindings, findQueueKey } from '../expressions/bindings.ts'
import type { EvaluationDeps } from '../expressions/evaluation.ts'
import { NodeFailure } from '../nodes/kit/failure.ts'
import { writeScriptRoots } from './evaluate.ts'
import type { ScriptLimits } from './job.ts'
import { choosePrelude } from './prelude.ts'
import { type Code, type CodeResult, readCodeReply } from './scripts.ts'

/** Runs code that sees what code in n8n sees. Throws what runCodeAway throws. */
export async function runN8nCodeAway(
  deps: EvaluationDeps,
  { text, items, timeoutMs, memoryMb }: Omit<Code, 'reads'>,
  bindings: Bindings,
): Promise<CodeResult> {
  const limits: ScriptLimits = { timeoutMs, memoryMb, maxChars: deps.limits.maxChars }
  const script = { source: text, reads: readBody(text) }
  const rows = items?.map((item, index) => ({ item, index }))
  const scope = items ? { ...bindings, items } : bindings
  const reply = await deps.pool.run(findQueueKey(bindings), () => {
    const written = items && JSON.stringify(items)
    return {
      script: {
        prelude: [...new Set([...choosePrelude([text]), 'n8n' as const])],
        roots: writeScriptRoots([script], scope, rows, written?.length),
        items: written,
        sources: [{ kind: 'body', text, each: items !== undefined }],
        limits,
      },
    }
  })
  return readCodeReply(reply, limits, deps.limits.heapMb)
}

function readBody(text: string) {
  try {
    const reads = readScriptBody(text, parseBody(text))
    const [problem] = reads.found
    if (problem) throw new Error(problem.message)
    return reads
  } catch (error) {
    throw new NodeFailure(`the code: ${(error as ScriptSyntaxError).message}`, { type: 'CodeFailed' })
  }
}
