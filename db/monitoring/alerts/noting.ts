import { type Selectable, sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import { record } from '../../change.ts'
import type { Tx } from '../../connection.ts'
import { settle } from '../../queue.ts'
import type { AlertStates, Alerts } from '../../schema.ts'
import type { Store } from '../../scope.ts'
import { cleanText } from '../../text.ts'
import { type AlertSeverity, type AlertType, queueNotice } from '../notices/notices.ts'
import { NO_WORKFLOW } from '../usage/calls.ts'
import { raiseSeverity, stepAlert, type WatchState } from './lifecycle.ts'
import { type ClaimedWindow, WATCHES } from './watches.ts'

/** The finding in figures, and in a sentence without any of the data that executions worked on. */
export type WindowFinding = {
  severity: AlertSeverity
  observed: number
  expected: number | null
  threshold: number | null
  message: string
  sampleExecutionIds: string[]
}

/** The verdict on a metric of a workflow, or with null of the team. */
type WindowVerdict = {
  metric: string
  workflowId: string | null
  state: WatchState['state']
  finding?: WindowFinding | undefined
  reason?: string | undefined
}

/** The findings of a type; with `failed` there is no verdict, so that its alerts and states stay as they are. */
export type WindowFindings = { type: AlertType; verdicts: WindowVerdict[]; failed: boolean }

type Alert = Selectable<Alerts>
type State = Selectable<AlertStates>

const MOST_MESSAGE = 1_000
const MOST_SAMPLES = 10
const ROWS_AT_ONCE = 500
/** How long the state of a metric is remembered after its subject is gone. */
const FORGOTTEN_MS = 7 * 86_400_000
const COOL_DOWN_LOOK_MS = 24 * 3_600_000

/** What a detector calls itself where it says that it has failed. */
const nameFailure = (type: AlertType) => type.toLowerCase()
const keyOf = ({ metric, workflowId }: { metric: string; workflowId: string | null }) =>
  `${metric} ${workflowId ?? NO_WORKFLOW}`

/**
 * Writes the findings of an hour: opens, updates and resolves alerts, queues the notices, and moves the watch on to the
 * next hour, all in one transaction. Resolves to false, and writes nothing, if the claim on the hour is lost.
 */
export async function noteWindow(
  store: Store,
  window: ClaimedWindow,
  findings: WindowFindings[],
  now = new Date(),
): Promise<boolean> {
  const { teamId, claim, from, to } = window
  return record(store, async (tx) => {
    const { rows } = await sql`select from alert_watches
      where team_id = ${teamId} and claim = ${claim} and next_from = ${from} for update`.execute(tx)
    if (rows.length === 0) return false
    for (const found of findings) await noteType(tx, window, found, now)
    const types = findings.map(({ type }) => type)
    await tx
      .deleteFrom('alertStates')
      .where('teamId', '=', teamId)
      .where((where) =>
        where.or([
          where('windowTo', '<', new Date(to.getTime() - FORGOTTEN_MS)),
          ...(types.length > 0 ? [where('type', 'not in', types)] : []),
        ]),
      )
      .execute()
    await settle(tx, WATCHES, { id: teamId, claim }, sql`next_from = ${to}, attempts = 0, due_at = now()`)
    return true
  })
}

async function noteType(
  tx: Tx,
  window: ClaimedWindow,
  { type, verdicts, failed }: WindowFindings,
  now: Date,
): Promise<void> {
  const { teamId, to } = window
  const known = await readKnown(tx, window, type)
  const said: WindowVerdict[] = failed ? [tellFailure(type)] : fillGaps(verdicts, known, type)
  const states: State[] = []
  for (const verdict of said) {
    const key = keyOf(verdict)
    const before = known.states.get(key)
    const { next, step } = stepAlert(
      before && { ...before, state: before.state as WatchState['state'] },
      verdict,
      to,
      known.alerts.get(key) as (Alert & { severity: AlertSeverity }) | undefined,
    )
    const isSaid = verdicts.includes(verdict) || failed
    states.push({
      ...{ teamId, type, metric: verdict.metric, workflowId: verdict.workflowId ?? NO_WORKFLOW, ...next },
      reason: verdict.reason === undefined ? null : cleanText(verdict.reason, MOST_MESSAGE),
      windowTo: isSaid ? to : (before?.windowTo ?? to),
    })
    if (step === 'OPEN') await openAlert(tx, window, type, verdict)
    if (step === 'UPDATE') await updateAlert(tx, window, known.alerts.get(key)!, verdict.finding!)
    if (step === 'RESOLVE')
      await tx
        .updateTable('alerts')
        .set({ status: 'RESOLVED', resolvedAt: now, updatedAt: sql<Date>`now()` })
        .where('id', '=', known.alerts.get(key)!.id)
        .execute()
  }
  await saveStates(tx, states)
  // A detector that works again has no failure to tell of.
  if (!failed)
    await tx
      .deleteFrom('alertStates')
      .where('teamId', '=', teamId)
      .where('metric', '=', nameFailure(type))
      .where('state', '=', 'FAILED')
      .execute()
}

type KnownAlerts = { states: Map<string, State>; alerts: Map<string, Alert> }

/** The states of a type, and of each metric the alert that is not resolved, else the one that was resolved last. */
async function readKnown(tx: Tx, { teamId, to }: ClaimedWindow, type: AlertType): Promise<KnownAlerts> {
  const states = await tx
    .selectFrom('alertStates')
    .selectAll()
    .where('teamId', '=', teamId)
    .where('type', '=', type)
    .execute()
  const resolved = await tx
    .selectFrom('alerts')
    .selectAll()
    .where('teamId', '=', teamId)
    .where('type', '=', type)
    .where('status', '=', 'RESOLVED')
    .where('resolvedAt', '>', new Date(to.getTime() - COOL_DOWN_LOOK_MS))
    .orderBy('resolvedAt')
    .execute()
  const live = await tx
    .selectFrom('alerts')
    .selectAll()
    .where('teamId', '=', teamId)
    .where('type', '=', type)
    .where('status', '<>', 'RESOLVED')
    .orderBy('id')
    .forUpdate()
    .execute()
  return {
    states: new Map(states.map((state) => [keyOf(state), state])),
    alerts: new Map([...resolved, ...live].map((alert) => [keyOf(alert), alert])),
  }
}

/** A metric that was watched before and is gone now has too little data. */
function fillGaps(
  verdicts: WindowVerdict[],
  { states, alerts }: KnownAlerts,
  type: AlertType,
): WindowVerdict[] {
  const all = new Map(verdicts.map((verdict) => [keyOf(verdict), verdict]))
  const live = [...alerts.values()].filter(({ resolvedAt }) => resolvedAt === null)
  for (const { metric, workflowId } of [...live, ...states.values()]) {
    const gap = { metric, workflowId: workflowId === NO_WORKFLOW ? null : workflowId }
    if (metric === nameFailure(type) || all.has(keyOf(gap))) continue
    all.set(keyOf(gap), { ...gap, state: 'INSUFFICIENT_DATA', reason: 'Nothing was there in the hour' })
  }
  return [...all.values()]
}

function tellFailure(type: AlertType): WindowVerdict {
  const reason = 'The hour could not be evaluated, and was left out after three attempts'
  return { metric: nameFailure(type), workflowId: null, state: 'FAILED', reason }
}

async function openAlert(
  tx: Tx,
  window: ClaimedWindow,
  type: AlertType,
  verdict: WindowVerdict,
): Promise<void> {
  const { teamId, from, to } = window
  const { metric, workflowId } = verdict
  const { severity, message, sampleExecutionIds, ...figures } = verdict.finding!
  const told = cleanText(message, MOST_MESSAGE)
  const row = await tx
    .insertInto('alerts')
    .values({
      ...{ id: uuid(), teamId, type, severity, workflowId, metric, ...figures },
      ...{ windowFrom: from, windowTo: to, message: told },
      sampleExecutionIds: sampleExecutionIds.slice(0, MOST_SAMPLES),
    })
    .onConflict((conflict) => conflict.doNothing())
    .returning('id')
    .executeTakeFirst()
  if (!row) return
  const of = workflowId === null ? 'the team' : `workflow ${workflowId}`
  await queueNotice(tx, {
    ...{ teamId, kind: 'ALERT', subjectId: row.id, workflowId, alertType: type, severity },
    ...{ title: cleanText(`${severity} ${type} alert: ${metric} of ${of}`, 200), message: told },
  })
}

/** An alert goes on as one: its window gets longer, and it may get graver, but not less grave. */
async function updateAlert(
  tx: Tx,
  { to }: ClaimedWindow,
  alert: Alert,
  { severity, message, sampleExecutionIds, ...figures }: WindowFinding,
): Promise<void> {
  await tx
    .updateTable('alerts')
    .set({
      ...figures,
      severity: raiseSeverity(alert.severity as AlertSeverity, severity),
      message: cleanText(message, MOST_MESSAGE),
      sampleExecutionIds: sampleExecutionIds.slice(0, MOST_SAMPLES),
      windowTo: to,
      updatedAt: sql<Date>`now()`,
    })
    .where('id', '=', alert.id)
    .execute()
}

async function saveStates(tx: Tx, states: State[]): Promise<void> {
  for (let at = 0; at < states.length; at += ROWS_AT_ONCE) {
    await tx
      .insertInto('alertStates')
      .values(states.slice(at, at + ROWS_AT_ONCE))
      .onConflict((conflict) =>
        conflict.columns(['teamId', 'metric', 'workflowId']).doUpdateSet((row) => ({
          type: row.ref('excluded.type'),
          state: row.ref('excluded.state'),
          reason: row.ref('excluded.reason'),
          since: row.ref('excluded.since'),
          windowTo: row.ref('excluded.windowTo'),
          quietWindows: row.ref('excluded.quietWindows'),
        })),
      )
      .execute()
  }
}
