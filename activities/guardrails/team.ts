import { perDatabase } from '../../db/cache.ts'
import type { Db } from '../../db/connection.ts'
import { listEnabledRules } from '../../db/guardrails/enabled.ts'
import { listKnownExemplars } from '../../db/guardrails/exemplars.ts'
import { findGuardrailSettings, MODEL_CHECKS } from '../../db/guardrails/settings.ts'
import type { Store } from '../../db/scope.ts'
import { CONTENT_TYPES, NAMED_PII_TYPES, PII_TYPES, readNames } from '../../workflows/guardrails/names.ts'
import type { GuardrailChecks } from '../../workflows/nodes/guardrails.ts'
import type { ExecutionContext } from '../../workflows/run/plan.ts'
import { findTeam } from '../fairness/turns.ts'
import type { Detection } from './detectors.ts'
import type { CheckRequest, TeamChecks } from './request.ts'

/** The request that a node's checks are. The team is read for each text: its rules and exemplars may have changed. */
export async function prepareRequest(
  { store }: { store: Store },
  context: ExecutionContext,
  text: string,
  checks: GuardrailChecks,
  { meter, signal }: Pick<CheckRequest, 'meter' | 'signal'>,
): Promise<CheckRequest> {
  const team = await findTeam({ store }, context)
  const { applyCustomRules, detectSemanticManipulation, validateSchema, jsonSchema, onViolation } = checks
  const wanted = { rules: applyCustomRules, semantic: detectSemanticManipulation, model: false }
  return {
    team,
    workflow: context.workflowId,
    text,
    detection: listDetectors(checks),
    schema: validateSchema ? jsonSchema : undefined,
    ...(await loadTeamChecks(store.db, team, wanted)),
    model: checks.askModel ? MODEL_CHECKS : [],
    meter,
    signal,
    onViolation,
  }
}

function listDetectors(checks: GuardrailChecks): Detection {
  const { redactPii, piiTypes, detectPromptInjection, injectionSensitivity: sensitivity } = checks
  const { filterContent, contentCategories } = checks
  return {
    ...(redactPii ? { PII_REDACTION: { kinds: readNames(NAMED_PII_TYPES, piiTypes, PII_TYPES) } } : {}),
    ...(detectPromptInjection ? { PROMPT_INJECTION: { sensitivity } } : {}),
    ...(filterContent ? { CONTENT_FILTER: { categories: readNames(CONTENT_TYPES, contentCategories) } } : {}),
  }
}

/** Reads what a check needs of its team: only what it is going to use. Checks no right. Rejects while
 * PostgreSQL is away. */
export async function loadTeamChecks(
  db: Db,
  teamId: string,
  {
    rules = true,
    semantic = true,
    model = true,
  }: { rules?: boolean; semantic?: boolean; model?: boolean } = {},
): Promise<TeamChecks> {
  const together = <T>(what: string, read: (db: Db, teamId: string) => Promise<T>): Promise<T> =>
    readTogether(readsOf(db), `${what} ${teamId}`, () => read(db, teamId))
  return {
    ...(rules ? { rules: await together('rules', listEnabledRules) } : {}),
    ...(model ? { model: (await together('settings', findGuardrailSettings)).checks } : {}),
    ...(semantic ? { semantic: { exemplars: await together('exemplars', listKnownExemplars) } } : {}),
  }
}

type Reads = Map<string, { running: Promise<unknown>; next?: Promise<unknown> }>
const readsOf = perDatabase((): Reads => new Map())

/**
 * Reads the same at most once at a time, so that a flood of checks takes one connection and not all of them. A caller that
 * asks during a read gets the result of the next one, never rows that are older than its question.
 */
function readTogether<T>(reads: Reads, key: string, read: () => Promise<T>): Promise<T> {
  const start = (): Promise<T> => {
    const one: { running: Promise<unknown>; next?: Promise<unknown> } = { running: Promise.resolve() }
    const running = read().finally(() => {
      if (!one.next) reads.delete(key)
    })
    one.running = running
    reads.set(key, one)
    return running
  }
  const under = reads.get(key)
  if (!under) return start()
  under.next ??= under.running.then(start, start)
  return under.next as Promise<T>
}
