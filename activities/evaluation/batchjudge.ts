import { hasCredential } from '../../db/evaluation/batches/judging.ts'
import type { BatchDeps } from './batchcase.ts'
import { type JudgeDeps, judgeDimension } from './judge.ts'

/** How the job asks the judge of a batch about a case: its calls stand in the usage of the team under the case's id. */
export function createBatchJudge(deps: JudgeDeps): BatchDeps['judge'] {
  return async (
    { id, teamId, workflowId, provider, model, credentialId },
    { dimension, material, signal },
  ) => {
    const caller = { workflowId, subjectId: id }
    const call = { teamId, provider, model, credentialId, dimension, material, caller, signal }
    const said = await judgeDimension(deps, call).catch((error) => {
      if (signal.aborted) return null
      throw error
    })
    if (said === null) return null
    const { flagged } = said
    if (said.status === 'SCORED') return { score: said.score, explanation: said.explanation, flagged }
    // Without its credential, the batch ends before its next case, and this one is not counted as judged.
    if (said.reason === 'CREDENTIAL' && !(await hasCredential(deps.store, teamId, credentialId))) return null
    return { score: null, explanation: said.reason, flagged }
  }
}
