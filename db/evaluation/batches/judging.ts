import type { Problem } from '../../../workflows/problem.ts'
import { joinPath } from '../../../workflows/problem.ts'
import type { Db } from '../../connection.ts'
import { invalid } from '../../fault.ts'
import { readOwner } from '../../owners.ts'
import { demand, type Scope, type Store } from '../../scope.ts'
import { loadEvalConfig } from '../configs.ts'
import { loadDimensions } from '../dimensions.ts'
import { type EvalProvider, PROVIDER_CREDENTIALS } from '../providers.ts'
import type { BatchDimension, BatchSettings } from './runs.ts'

/** What a request for a batch says of its judge; what it leaves out comes from the evaluation config. */
export type JudgeChoice = {
  judgeProvider?: EvalProvider | undefined
  judgeModel?: string | undefined
  judgeCredentialId?: string | undefined
  evalDimensions?: string[] | undefined
  passThreshold?: number | undefined
}

/**
 * What a batch is judged by (BUILDER): what is given, else what the evaluation config says; `builtIn` are the
 * dimensions that every team has. Throws INVALID with all that is
 * missing or does not fit, and NOT_FOUND.
 */
export async function chooseJudge(
  scope: Scope,
  workflowId: string,
  given: JudgeChoice,
  builtIn: BatchDimension[],
): Promise<Pick<BatchSettings, 'provider' | 'model' | 'credentialId' | 'dimensions' | 'passThreshold'>> {
  const { db } = scope.store
  const teamId = await readOwner(scope.store, 'workflows', workflowId)
  demand(scope, teamId, 'BUILDER')
  const known = await loadEvalConfig(db, { teamId, workflowId })
  const rubrics = [...builtIn, ...(await loadDimensions(db, teamId))]
  const problems: Problem[] = []
  const need = <T extends string>(path: string, value: T | null | undefined): T | undefined => {
    if (!value) problems.push({ path, message: 'is required, because the evaluation config has none' })
    return value ?? undefined
  }
  const provider = need('judgeProvider', given.judgeProvider ?? known.evalProvider)
  const model = need('judgeModel', given.judgeModel ?? known.evalModel)
  const credentialId = need('judgeCredentialId', given.judgeCredentialId ?? known.evalCredentialId)
  if (provider && credentialId) {
    const problem = await findCredentialFault(db, { teamId, credentialId, provider })
    if (problem) problems.push({ path: 'judgeCredentialId', message: problem })
  }
  const names = given.evalDimensions ?? known.evalDimensions
  const dimensions = names.flatMap((name, at): BatchDimension[] => {
    const found = rubrics.find((rubric) => rubric.name === name)
    if (found) return [{ name, rubric: found.rubric }]
    const all = rubrics.map((rubric) => rubric.name).join(', ')
    problems.push({
      path: joinPath('evalDimensions', at),
      message: `is no dimension of the team: there are ${all}`,
    })
    return []
  })
  if (problems.length > 0 || !provider || !model || !credentialId) throw invalid(problems)
  const passThreshold = given.passThreshold ?? known.evalFailureThreshold
  return { provider, model, credentialId, dimensions, passThreshold }
}

async function findCredentialFault(
  db: Db,
  { teamId, credentialId, provider }: { teamId: string; credentialId: string; provider: EvalProvider },
): Promise<string | undefined> {
  const found = await db
    .selectFrom('credentials')
    .select('type')
    .where('id', '=', credentialId)
    .where('teamId', '=', teamId)
    .executeTakeFirst()
  if (!found) return 'is no credential of the team'
  const type = PROVIDER_CREDENTIALS[provider]
  return found.type === type ? undefined : `must be a credential of the type ${type} for ${provider}`
}

/** Whether the team still has a credential. */
export async function hasCredential({ db }: Store, teamId: string, id: string): Promise<boolean> {
  const found = await db
    .selectFrom('credentials')
    .select('id')
    .where('id', '=', id)
    .where('teamId', '=', teamId)
    .executeTakeFirst()
  return found !== undefined
}
