import type { Evaluator } from '../../activities/expressions/evaluator.ts'
import { createAskModel } from '../../activities/guardrails/model/ask.ts'
import type { GuardrailModelDeps } from '../../activities/guardrails/model/call.ts'
import { createDetectorPool } from '../../activities/guardrails/pool.ts'
import type { Guardrails } from '../../activities/guardrails/request.ts'
import { createSemanticPool, type SemanticPool } from '../../activities/guardrails/semantic/similar.ts'

/** How a worker checks texts. `threads` is for tests; `onError`: whether a text passes a check that could not be made. */
export type CheckingOptions = {
  onError?: Guardrails['onError'] | undefined
  threads?: Parameters<typeof createDetectorPool>[0]
  /** The threads that compare meanings, if others of the process use them too; they are closed with the others. */
  semantic?: SemanticPool | undefined
}

/** The checks of texts for the nodes of this process, in threads of its own. */
export function startChecking(
  deps: GuardrailModelDeps,
  evaluator: Evaluator,
  { onError = 'closed', threads, semantic = createSemanticPool() }: CheckingOptions = {},
): { guardrails: Guardrails; stop: () => Promise<void> } {
  const pool = createDetectorPool(threads)
  const askModel = createAskModel(deps)
  return {
    guardrails: { pool, semantic, evaluator, askModel, onError },
    async stop() {
      await Promise.all([pool.close(), semantic.close()])
    },
  }
}
