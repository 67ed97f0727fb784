import { change } from '../change.ts'
import type { Db } from '../connection.ts'
import { lockFor } from '../locks.ts'
import { demandTeam, type Scope } from '../scope.ts'
import { checkChannels } from './channels/names.ts'

/** What a team wants to be told of its executions, models and chats. */
export type MonitoringConfig = {
  anomalyDetectionEnabled: boolean
  driftAlertEnabled: boolean
  sentimentTrackingEnabled: boolean
  alertThresholds: {
    /** A multiple of the tokens that are expected. */
    tokenUsageSpike: number
    /** A fraction of the executions, or of the calls to models, that fail. */
    errorRateThreshold: number
    /** Milliseconds that 95 % of the executions, or of the calls, stay under. */
    latencyThreshold: number
  }
  /** `email` (the team's ADMINs), `slack`, `webhook` (all channels of that type), or ids of channels. */
  notificationChannels: string[]
}

/** The changes of a config: fields that are left out stay as they are. */
export type MonitoringPatch = {
  [K in keyof Omit<MonitoringConfig, 'alertThresholds'>]?: MonitoringConfig[K] | undefined
} & {
  alertThresholds?: { [K in keyof MonitoringConfig['alertThresholds']]?: number | undefined } | undefined
}

/** The config of a team (VIEWER). Throws FORBIDDEN and NOT_FOUND. */
export async function readMonitoringConfig(scope: Scope, teamId: string): Promise<MonitoringConfig> {
  await demandTeam(scope, teamId, 'VIEWER')
  return loadMonitoringConfig(scope.store.db, teamId)
}

/**
 * Changes what is given of a config, each threshold by itself (ADMIN). It counts for what is evaluated from now on. Returns
 * the whole config. Throws as `change`, and INVALID for a channel that the team cannot have.
 */
export async function updateMonitoringConfig(
  scope: Scope,
  teamId: string,
  patch: MonitoringPatch,
): Promise<MonitoringConfig> {
  return change(scope, 'MONITORING_CONFIG_UPDATED', teamId, async (tx) => {
    await lockFor(tx, 'monitoringConfigs', teamId)
    const before = await loadMonitoringConfig(tx, teamId)
    const { alertThresholds, ...rest } = before
    // Ids are stored as they are shown elsewhere: so they are found when a channel is deleted.
    const notificationChannels = patch.notificationChannels?.map((name) => name.toLowerCase())
    const after: MonitoringConfig = {
      ...merge(rest, { ...patch, notificationChannels }),
      alertThresholds: merge(alertThresholds, patch.alertThresholds ?? {}),
    }
    const keys = Object.keys(before) as (keyof MonitoringConfig)[]
    const changed = keys.filter((key) => JSON.stringify(before[key]) !== JSON.stringify(after[key]))
    if (changed.length === 0) return { result: before, unchanged: true }
    if (changed.includes('notificationChannels')) await checkChannels(tx, teamId, after.notificationChannels)
    const row = {
      anomalyDetectionEnabled: after.anomalyDetectionEnabled,
      driftAlertEnabled: after.driftAlertEnabled,
      sentimentTrackingEnabled: after.sentimentTrackingEnabled,
      ...after.alertThresholds,
      notificationChannels: after.notificationChannels,
      updatedAt: new Date(),
    }
    await tx
      .insertInto('monitoringConfigs')
      .values({ teamId, ...row })
      .onConflict((conflict) => conflict.column('teamId').doUpdateSet(row))
      .execute()
    const pick = (from: MonitoringConfig) =>
      Object.fromEntries(
        changed.map((key) => [key, key === 'alertThresholds' ? describe(from[key]) : from[key]]),
      )
    return {
      result: after,
      resourceId: teamId,
      details: { changed, before: pick(before), after: pick(after) },
    }
  })
}

/** Thresholds as the audit has them: it would take a key with `token` in it for that of a secret. */
function describe({ tokenUsageSpike, ...rest }: MonitoringConfig['alertThresholds']) {
  return { usageSpike: tokenUsageSpike, ...rest }
}

/** The values of `old`, with those of `given` that are there. */
function merge<T extends object>(old: T, given: { [K in keyof T]?: T[K] | undefined }): T {
  const keys = Object.keys(old) as (keyof T)[]
  return Object.fromEntries(keys.map((key) => [key, given[key] ?? old[key]])) as T
}

/** The config of a team for the service itself; the defaults for a team that has saved none. */
export async function loadMonitoringConfig(db: Db, teamId: string): Promise<MonitoringConfig> {
  const row = await db
    .selectFrom('monitoringConfigs')
    .selectAll()
    .where('teamId', '=', teamId)
    .executeTakeFirst()
  return {
    anomalyDetectionEnabled: row?.anomalyDetectionEnabled ?? false,
    driftAlertEnabled: row?.driftAlertEnabled ?? false,
    sentimentTrackingEnabled: row?.sentimentTrackingEnabled ?? false,
    alertThresholds: {
      tokenUsageSpike: row?.tokenUsageSpike ?? 3,
      errorRateThreshold: row?.errorRateThreshold ?? 0.1,
      latencyThreshold: row?.latencyThreshold ?? 30_000,
    },
    notificationChannels: row?.notificationChannels ?? [],
  }
}
