import { sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import { write } from '../change.ts'
import type { Tx } from '../connection.ts'
import { claim, postpone, type Queue, selectByTurns, settle } from '../queue.ts'
import { redactText } from '../redaction/redact.ts'
import type { Store } from '../scope.ts'
import { type Keys, seal, unseal } from '../seal.ts'
import { durationOf } from './list.ts'
import { readExecutionOutput } from './records/records.ts'

/** Where to POST the end of an execution, and the secret of the signature. */
export type CallbackTarget = { url: string; secret: string }

/** A callback that is to be written with its execution. */
export type NewCallback = { id: string; target: Buffer; shownUrl: string }

/** WAITING for the end of the execution, PENDING until it is DELIVERED, or FAILED for good. */
export const CALLBACK_STATUSES = ['WAITING', 'PENDING', 'DELIVERED', 'FAILED'] as const

/** What an execution shows of its callback. `nextAttemptAt` is null unless it is PENDING. */
export type CallbackView = {
  id: string
  url: string
  status: (typeof CALLBACK_STATUSES)[number]
  attempts: number
  nextAttemptAt: Date | null
  deliveredAt: Date | null
  lastError: string | null
}

/** A claimed callback. `attempts` counts this one too; one that is `old` is not tried again. */
export type DueCallback = CallbackTarget & {
  id: string
  executionId: string
  teamId: string
  attempts: number
  old: boolean
}

/** How long a callback that cannot be delivered is tried again. */
export const CALLBACK_HOURS = 24

const PURPOSE = 'callback'

const CALLBACKS: Queue = {
  table: 'callbacks',
  id: 'id',
  open: sql`q.status = 'PENDING'`,
  due: 'due_at',
  tries: 'attempts',
}

/** Makes the callback that is to be written with an execution. Its target is stored sealed. */
export function makeCallback(keys: Keys, { url, secret }: CallbackTarget): NewCallback {
  const id = uuid()
  const target = seal(keys, PURPOSE, id, Buffer.from(JSON.stringify({ url, secret })))
  return { id, target, shownUrl: redactText(url, { secrets: [secret] }) }
}

/** Writes the callback of an execution, in the transaction that accepts it. */
export async function insertCallback(
  tx: Tx,
  execution: { executionId: string; teamId: string },
  { id, target, shownUrl }: NewCallback,
): Promise<void> {
  await tx
    .insertInto('callbacks')
    .values({ id, target, shownUrl, ...execution })
    .execute()
}

/** The callback of the execution in `executions`, for `showCallback`; null if it has none. */
export const CALLBACK_AS_JSON = sql<Record<string, string> | null>`(select json_build_object('id', c.id,
  'url', c.shown_url, 'status', c.status, 'attempts', c.attempts, 'lastError', c.last_error,
  'dueAt', c.due_at, 'settledAt', c.settled_at) from callbacks c where c.execution_id = executions.id)`

/** What CALLBACK_AS_JSON has read, as an execution shows it. */
export function showCallback(row: Record<string, unknown> | null): CallbackView | null {
  if (!row) return null
  const { dueAt, settledAt, ...view } = row as CallbackView & { dueAt: string; settledAt: string }
  return {
    ...view,
    nextAttemptAt: view.status === 'PENDING' ? new Date(dueAt) : null,
    deliveredAt: view.status === 'DELIVERED' ? new Date(settledAt) : null,
  }
}

/**
 * Claims up to `limit` due callbacks for `leaseMs`, at most `ofTeam` of one team. The teams take turns, and the
 * `busy` ones are left out. If the process dies, they are due again when the lease ends: a callback is delivered
 * at least once. One whose key is lost is given up.
 */
export async function claimCallbacks(
  store: Store,
  { limit, ofTeam, leaseMs, busy }: { limit: number; ofTeam: number; leaseMs: number; busy: string[] },
): Promise<DueCallback[]> {
  type Row = Omit<DueCallback, 'url' | 'secret'> & { target: Buffer }
  const held = new Map(busy.map((teamId) => [teamId, ofTeam]))
  const rows = await write(store, (tx) =>
    claim<Row>(tx, CALLBACKS, {
      chosen: selectByTurns(CALLBACKS, { limit, ofTeam, busy: held }),
      leaseMs,
      returning: sql`id, execution_id, team_id, attempts, target,
        ended_at < now() - ${CALLBACK_HOURS} * interval '1 hour' as old`,
    }),
  )
  const claimed: DueCallback[] = []
  for (const { target, ...row } of rows) {
    try {
      const opened = unseal(store.keys, PURPOSE, row.id, target).toString()
      claimed.push({ ...row, ...(JSON.parse(opened) as CallbackTarget) })
    } catch {
      await settleCallback(store, row.id, 'Its URL was sealed with a key that this service does not have')
    }
  }
  return claimed
}

/** Notes that a callback was delivered, or, with the `error`, that it is given up. */
export async function settleCallback(store: Store, id: string, error: string | null = null): Promise<void> {
  const status = error === null ? 'DELIVERED' : 'FAILED'
  await write(store, (tx) =>
    settle(tx, CALLBACKS, { id }, sql`status = ${status}, settled_at = now(), last_error = ${error}`),
  )
}

/** Makes a callback that failed due again after `delayMs`. */
export async function postponeCallback(
  store: Store,
  id: string,
  delayMs: number,
  error: string,
): Promise<void> {
  await write(store, (tx) => postpone(tx, CALLBACKS, { id }, delayMs, sql`last_error = ${error}`))
}

/** What a callback tells of an execution that has ended: as its own route shows it, but its nodes. */
export async function readEndedExecution(store: Store, id: string) {
  const row = await store.db
    .selectFrom('executions')
    .select(['id', 'teamId', 'workflowId', 'workflowName', 'workflowVersion', 'status', 'trigger'])
    .select(['errorMessage', 'createdAt', 'startedAt', 'completedAt', 'triggerNodeId', 'onlyNode'])
    .where('id', '=', id)
    .executeTakeFirst()
  if (!row) return undefined
  const { teamId: _, triggerNodeId: __, onlyNode: ___, ...shown } = row
  const output = row.status === 'SUCCESS' ? await readExecutionOutput(store, row) : undefined
  return { shown: { ...shown, durationMs: durationOf(row.startedAt, row.completedAt) }, output }
}
