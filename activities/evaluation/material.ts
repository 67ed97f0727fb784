import { findJudgedRun } from '../../db/evaluation/judgedruns.ts'
import { readExecutionOutput } from '../../db/executions/records/records.ts'
import { redact } from '../../db/redaction/redact.ts'
import { readRecentRules } from '../../db/redaction/rules.ts'
import type { Store } from '../../db/scope.ts'
import type { Material } from './judge.ts'

/** More than that is not masked at once, and a judge would see little of it. */
const MAX_CHARS = 250_000

/** The input and output of an execution, masked as in exports; or why there is no material. */
export async function readMaterial(
  store: Store,
  executionId: string,
): Promise<Material | { missing: 'NOT_KEPT' | 'TOO_LARGE' }> {
  const run = await findJudgedRun(store, executionId)
  if (!run?.keepInputs || !run.keepOutputs) return { missing: 'NOT_KEPT' }
  if (run.inputBytes > MAX_CHARS) return { missing: 'TOO_LARGE' }
  const made = await readExecutionOutput(store, run)
  if (made === undefined) return { missing: 'NOT_KEPT' }
  const spelled = JSON.stringify(made)
  if (spelled.length > MAX_CHARS) return { missing: 'TOO_LARGE' }
  const rules = await readRecentRules(store.db, store.db)
  const mask = (value: unknown) => {
    const clean = redact(value, { pii: true, rules })
    return typeof clean === 'string' ? clean : JSON.stringify(clean)
  }
  return { input: mask(run.inputData), output: mask(made) }
}
