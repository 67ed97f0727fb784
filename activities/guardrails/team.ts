import { perDatabase } from '../../db/cache.ts'
import type { Db } from '../../db/connection.ts'
import { listEnabledRules } from '../../db/guardrails/enabled.ts'
import { listKnownExemplars } from '../../db/guardrails/exemplars.ts'
import { findGuardrailSettings } from '../../db/guardrails/settings.ts'
import type { CheckRequest } from './checks.ts'

/** What a check needs of its team. */
export type TeamChecks = Pick<CheckRequest, 'rules' | 'semantic' | 'model'>

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
 * Reads the same at most once at a time, so that a flood of checks takes one connection and not all of them. Who asks while
 * a read is under way gets what the next one finds: never what was there before they asked.
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
