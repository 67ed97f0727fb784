import { sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import { change } from '../change.ts'
import type { Db, Tx } from '../connection.ts'
import { type CredentialType, credentialKind } from '../credentials/types.ts'
import { invalid } from '../fault.ts'
import { lockFor } from '../locks.ts'
import { readOwner } from '../owners.ts'
import { demand, demandTeam, type Scope } from '../scope.ts'
import { BUILT_IN_DIMENSIONS, loadDimensions } from './dimensions.ts'
import { type EvalProvider, PROVIDER_CREDENTIALS } from './providers.ts'

/** How runs are judged, as a workflow or its team says it. Null: nothing is said here. */
export type EvalConfig = {
  evalEnabled: boolean | null
  evalProvider: EvalProvider | null
  evalModel: string | null
  evalCredentialId: string | null
  /** Percent of the runs that succeed. */
  evalSamplingRate: number | null
  evalDimensions: string[] | null
  /** Composites below it have failed. */
  evalFailureThreshold: number | null
  evalNotifyFailures: boolean | null
}

/** What counts: the workflow's word before the team's, and that before the default. */
export type EffectiveEvalConfig = {
  [K in keyof EvalConfig]: K extends 'evalProvider' | 'evalModel' | 'evalCredentialId'
    ? EvalConfig[K]
    : NonNullable<EvalConfig[K]>
}

type Stored = { id: string | null; createdAt: Date | null; updatedAt: Date | null }
export type EvalConfigView = EvalConfig & Stored & { effective: EffectiveEvalConfig }

const SILENT: EvalConfig & Stored = {
  id: null,
  evalEnabled: null,
  evalProvider: null,
  evalModel: null,
  evalCredentialId: null,
  evalSamplingRate: null,
  evalDimensions: null,
  evalFailureThreshold: null,
  evalNotifyFailures: null,
  createdAt: null,
  updatedAt: null,
}

const DEFAULTS: EffectiveEvalConfig = {
  evalEnabled: false,
  evalProvider: null,
  evalModel: null,
  evalCredentialId: null,
  // Migration 0085 has it too.
  evalSamplingRate: 10,
  evalDimensions: [...BUILT_IN_DIMENSIONS],
  evalFailureThreshold: 3,
  evalNotifyFailures: false,
}

const COLUMNS = {
  evalEnabled: 'enabled',
  evalProvider: 'provider',
  evalModel: 'model',
  evalCredentialId: 'credentialId',
  evalSamplingRate: 'samplingRate',
  evalDimensions: 'dimensions',
  evalFailureThreshold: 'failureThreshold',
  evalNotifyFailures: 'notifyFailures',
} as const
const KEYS = Object.keys(COLUMNS) as (keyof EvalConfig)[]

/** One workflow, or with null all workflows of a team that have no config of their own. */
type ConfigPlace = { teamId: string; workflowId: string | null }

/** What counts for the runs of a workflow. For the service itself: it checks no right. */
export async function loadEvalConfig(
  db: Db,
  place: { teamId: string; workflowId: string },
): Promise<EffectiveEvalConfig> {
  return merge(await load(db, place), await load(db, { ...place, workflowId: null }))
}

/** The config of a workflow (VIEWER); every field is null if it has none. Throws NOT_FOUND. */
export async function readEvalConfig(scope: Scope, workflowId: string): Promise<EvalConfigView> {
  const teamId = await readOwner(scope.store, 'workflows', workflowId)
  demand(scope, teamId, 'VIEWER')
  return view(scope.store.db, { teamId, workflowId })
}

/** The config of a team, which counts where a workflow says nothing (VIEWER). Throws NOT_FOUND. */
export async function readTeamEvalConfig(scope: Scope, teamId: string): Promise<EvalConfigView> {
  await demandTeam(scope, teamId, 'VIEWER')
  return view(scope.store.db, { teamId, workflowId: null })
}

/**
 * Changes the given fields of a workflow's config (BUILDER); null takes a word back. Throws as `change`, and INVALID for
 * what cannot work: a judge that is switched on without a model, or a credential of another provider.
 */
export async function updateEvalConfig(
  scope: Scope,
  workflowId: string,
  patch: Partial<EvalConfig>,
): Promise<EvalConfigView> {
  const teamId = await readOwner(scope.store, 'workflows', workflowId)
  return update(scope, 'EVAL_CONFIG_UPDATED', { teamId, workflowId }, patch)
}

/** The same for the config of a team (ADMIN). */
export async function updateTeamEvalConfig(
  scope: Scope,
  teamId: string,
  patch: Partial<EvalConfig>,
): Promise<EvalConfigView> {
  return update(scope, 'TEAM_EVAL_CONFIG_UPDATED', { teamId, workflowId: null }, patch)
}

/** Removes the config of a workflow (BUILDER): that of its team counts. May be repeated. */
export async function deleteEvalConfig(scope: Scope, workflowId: string): Promise<void> {
  const teamId = await readOwner(scope.store, 'workflows', workflowId)
  await remove(scope, 'EVAL_CONFIG_DELETED', { teamId, workflowId })
}

/** Removes the config of a team (ADMIN). May be repeated. */
export async function deleteTeamEvalConfig(scope: Scope, teamId: string): Promise<void> {
  await remove(scope, 'TEAM_EVAL_CONFIG_DELETED', { teamId, workflowId: null })
}

/** Whether judges of a team are asked with a credential. */
export async function isEvalCredential(db: Db, id: string): Promise<boolean> {
  const found = db.selectFrom('evalConfigs').select('id').where('credentialId', '=', id)
  return (await found.executeTakeFirst()) !== undefined
}

function update(
  scope: Scope,
  act: 'EVAL_CONFIG_UPDATED' | 'TEAM_EVAL_CONFIG_UPDATED',
  place: ConfigPlace,
  patch: Partial<EvalConfig>,
): Promise<EvalConfigView> {
  const { teamId, workflowId } = place
  return change(scope, act, teamId, async (tx) => {
    // Two changes of a team at once come one after the other: they may count together.
    await lockFor(tx, 'evalConfigs', teamId)
    const before = await load(tx, place)
    const given = Object.entries(patch).filter(([, value]) => value !== undefined)
    const after = { ...before, ...Object.fromEntries(given) } as EvalConfig & Stored
    const changed = KEYS.filter((key) => JSON.stringify(before[key]) !== JSON.stringify(after[key]))
    if (changed.length === 0 && before.id !== null) return { result: await view(tx, place), unchanged: true }
    const effective = merge(
      after,
      workflowId === null ? SILENT : await load(tx, { teamId, workflowId: null }),
    )
    await demandSense(tx, teamId, after, effective)
    const row = Object.fromEntries(KEYS.map((key) => [COLUMNS[key], after[key]]))
    if (before.id === null)
      await tx
        .insertInto('evalConfigs')
        .values({ id: uuid(), teamId, workflowId, ...row })
        .execute()
    else
      await tx
        .updateTable('evalConfigs')
        .set({ ...row, updatedAt: sql<Date>`now()` })
        .where('id', '=', before.id)
        .execute()
    const pick = (from: EvalConfig) => Object.fromEntries(changed.map((key) => [key, from[key]]))
    return {
      result: await view(tx, place),
      resourceId: workflowId ?? teamId,
      details: { changed, before: pick(before), after: pick(after) },
    }
  })
}

function remove(
  scope: Scope,
  act: 'EVAL_CONFIG_DELETED' | 'TEAM_EVAL_CONFIG_DELETED',
  { teamId, workflowId }: ConfigPlace,
): Promise<void> {
  return change(scope, act, teamId, async (tx) => {
    const { numDeletedRows } = await tx
      .deleteFrom('evalConfigs')
      .where('teamId', '=', teamId)
      .where('workflowId', workflowId === null ? 'is' : '=', workflowId)
      .executeTakeFirst()
    if (numDeletedRows === 0n) return { result: undefined, unchanged: true }
    return { result: undefined, resourceId: workflowId ?? teamId, details: {} }
  })
}

async function view(db: Db, place: ConfigPlace): Promise<EvalConfigView> {
  const own = await load(db, place)
  const team = place.workflowId === null ? SILENT : await load(db, { ...place, workflowId: null })
  return { ...own, effective: merge(own, team) }
}

async function load(db: Db, { teamId, workflowId }: ConfigPlace): Promise<EvalConfig & Stored> {
  const row = await db
    .selectFrom('evalConfigs')
    .selectAll()
    .where('teamId', '=', teamId)
    .where('workflowId', workflowId === null ? 'is' : '=', workflowId)
    .executeTakeFirst()
  if (!row) return SILENT
  return {
    id: row.id,
    evalEnabled: row.enabled,
    evalProvider: row.provider as EvalProvider | null,
    evalModel: row.model,
    evalCredentialId: row.credentialId,
    evalSamplingRate: row.samplingRate,
    evalDimensions: row.dimensions,
    evalFailureThreshold: row.failureThreshold === null ? null : Number(row.failureThreshold),
    evalNotifyFailures: row.notifyFailures,
    createdAt: row.createdAt,
    updatedAt: row.updatedAt,
  }
}

function merge(own: EvalConfig, team: EvalConfig): EffectiveEvalConfig {
  const pairs = KEYS.map((key) => [key, own[key] ?? team[key] ?? DEFAULTS[key]])
  return Object.fromEntries(pairs) as EffectiveEvalConfig
}

async function demandSense(
  tx: Tx,
  teamId: string,
  given: EvalConfig,
  { evalEnabled, evalProvider, evalModel, evalCredentialId, evalDimensions }: EffectiveEvalConfig,
): Promise<void> {
  const problems: { path: string; message: string }[] = []
  const blame = (path: keyof EvalConfig, message: string) => problems.push({ path, message })
  if (evalEnabled && evalProvider === null) blame('evalProvider', 'is needed by evalEnabled')
  if (evalEnabled && evalModel === null) blame('evalModel', 'is needed by evalEnabled')
  if (evalEnabled && evalCredentialId === null) blame('evalCredentialId', 'is needed by evalEnabled')
  if (evalCredentialId !== null) {
    const fault = await findCredentialFault(tx, teamId, evalCredentialId, evalProvider)
    if (fault) blame('evalCredentialId', fault)
  }
  if (given.evalDimensions !== null) {
    const known = new Set((await loadDimensions(tx, teamId)).map(({ name }) => name))
    for (const name of evalDimensions)
      if (!known.has(name) && !(BUILT_IN_DIMENSIONS as readonly string[]).includes(name))
        blame('evalDimensions', `has "${name}", which is no dimension of this team`)
  }
  if (problems.length > 0) throw invalid(problems)
}

/** The credential is held until the commit: a deletion waits. */
async function findCredentialFault(
  tx: Tx,
  teamId: string,
  id: string,
  provider: EvalProvider | null,
): Promise<string | undefined> {
  const found = await tx
    .selectFrom('credentials')
    .select(['name', 'type'])
    .where('id', '=', id)
    .where('teamId', '=', teamId)
    .forKeyShare()
    .executeTakeFirst()
  if (!found) return 'must be a credential of this team'
  const type = found.type as CredentialType
  if (!credentialKind(type).uses.includes('LLM'))
    return `must be a credential for models; "${found.name}" is of the type ${type}`
  if (provider === null || PROVIDER_CREDENTIALS[provider] === type) return undefined
  return `must be of the type ${PROVIDER_CREDENTIALS[provider]} for the provider ${provider}; "${found.name}" is of the type ${type}`
}
