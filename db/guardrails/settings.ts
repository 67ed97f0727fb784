import { sql } from 'kysely'
import { change } from '../change.ts'
import type { Db, Tx } from '../connection.ts'
import { demandCredential } from '../credentials/references.ts'
import { lockFor } from '../locks.ts'
import { demandTeam, type Scope } from '../scope.ts'

/** The checks for which a team's model can be asked. */
export const MODEL_CHECKS = ['injection', 'content'] as const
export type ModelCheck = (typeof MODEL_CHECKS)[number]

/** The model that a team's guardrails ask. Null means not set; without a credential no model is asked. */
export type GuardrailSettings = {
  /** A credential of the team that is for models. */
  credentialId: string | null
  /** The vendor's name of the model that judges texts. */
  model: string | null
  /** The most US dollars that may be spent in a calendar month (UTC). */
  monthlyCostCap: number | null
  checks: ModelCheck[]
}

/** With what was spent in this month, in US dollars; calls under way are in it with what they can cost at most. */
export type GuardrailSettingsView = GuardrailSettings & { spentThisMonth: number; updatedAt: Date | null }

const NONE: GuardrailSettings = {
  credentialId: null,
  model: null,
  monthlyCostCap: null,
  checks: [],
}

/** The settings of a team (BUILDER). Throws FORBIDDEN and NOT_FOUND. */
export async function readGuardrailSettings(scope: Scope, teamId: string): Promise<GuardrailSettingsView> {
  await demandTeam(scope, teamId, 'BUILDER')
  return readView(scope.store.db, teamId)
}

/**
 * Replaces the settings of a team (ADMIN). They apply to later checks. Throws as `change`, and BAD_REQUEST for a
 * credential that is not one of the team's, or cannot be asked.
 */
export async function updateGuardrailSettings(
  scope: Scope,
  teamId: string,
  input: GuardrailSettings,
): Promise<GuardrailSettingsView> {
  const settings = { ...input, checks: MODEL_CHECKS.filter((check) => input.checks.includes(check)) }
  return change(scope, 'GUARDRAIL_SETTINGS_UPDATED', teamId, async (tx) => {
    // Two changes at once come one after the other, also where there is no row yet.
    await lockFor(tx, 'guardrailSettings', teamId)
    const before = await findGuardrailSettings(tx, teamId)
    const keys = Object.keys(NONE) as (keyof GuardrailSettings)[]
    const changed = keys.filter((key) => JSON.stringify(before[key]) !== JSON.stringify(settings[key]))
    if (changed.length === 0) return { result: await readView(tx, teamId), unchanged: true }
    await demandModels(tx, teamId, settings)
    await save(tx, teamId, settings)
    const pick = (from: GuardrailSettings) => Object.fromEntries(changed.map((key) => [key, from[key]]))
    return {
      result: await readView(tx, teamId),
      resourceId: teamId,
      details: { changed, before: pick(before), after: pick(settings) },
    }
  })
}

/** The settings of a team, for its checks. Rejects while PostgreSQL is away. */
export async function findGuardrailSettings(db: Db, teamId: string): Promise<GuardrailSettings> {
  const row = await db
    .selectFrom('guardrailSettings')
    .select(['credentialId', 'model', 'monthlyCostCap', 'asksInjection', 'asksContent'])
    .where('teamId', '=', teamId)
    .executeTakeFirst()
  if (!row) return NONE
  const { asksInjection, asksContent, monthlyCostCap, ...rest } = row
  const isAsked = { injection: asksInjection, content: asksContent }
  return {
    ...rest,
    monthlyCostCap: monthlyCostCap === null ? null : Number(monthlyCostCap),
    checks: MODEL_CHECKS.filter((check) => isAsked[check]),
  }
}

async function readView(db: Db, teamId: string): Promise<GuardrailSettingsView> {
  const settings = await findGuardrailSettings(db, teamId)
  const { rows } = await sql<{ updatedAt: Date | null; spent: string | number | null }>`
    select (select updated_at from guardrail_settings where team_id = ${teamId}) as updated_at,
      (select cost from guardrail_spending where team_id = ${teamId}
        and month = date_trunc('month', now() at time zone 'UTC')::date) as spent`.execute(db)
  const { updatedAt, spent } = rows[0]!
  return { ...settings, spentThisMonth: Number(spent ?? 0), updatedAt }
}

async function save(tx: Tx, teamId: string, { checks, ...settings }: GuardrailSettings): Promise<void> {
  const row = {
    ...settings,
    asksInjection: checks.includes('injection'),
    asksContent: checks.includes('content'),
    updatedAt: sql<Date>`now()`,
  }
  await tx
    .insertInto('guardrailSettings')
    .values({ teamId, ...row })
    .onConflict((conflict) => conflict.column('teamId').doUpdateSet(row))
    .execute()
}

async function demandModels(tx: Tx, teamId: string, { credentialId }: GuardrailSettings): Promise<void> {
  if (credentialId === null) return
  await demandCredential(tx, { teamId, credentialId, use: 'LLM', purpose: 'models' })
}

/** Whether the guardrails of a team ask models with a credential. */
export async function isGuardrailCredential(db: Db, id: string): Promise<boolean> {
  const row = await db
    .selectFrom('guardrailSettings')
    .select('teamId')
    .where('credentialId', '=', id)
    .executeTakeFirst()
  return row !== undefined
}
