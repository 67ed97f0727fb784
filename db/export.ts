import { setImmediate as breathe } from 'node:timers/promises'
import { type ControlledTransaction, sql } from 'kysely'
import { durationOf } from './listing.ts'
import { readRules } from './masking.ts'
import { type Rules, redact } from './redact.ts'
import type { DB } from './schema.ts'
import { change, type Scope, type Tx } from './scope.ts'
import { takeTurn } from './turns.ts'

/** One node record with its execution's own fields; `nodeId` is null for an execution without any. Redacted. */
export type ExportRow = {
  executionId: string
  workflowId: string
  workflowName: string
  status: string
  trigger: string
  startedAt: Date | null
  completedAt: Date | null
  durationMs: number | null
  nodeId: string | null
  nodeType: string | null
  nodeName: string | null
  nodeStatus: string | null
  nodeStartedAt: Date | null
  nodeCompletedAt: Date | null
  nodeDurationMs: number | null
  nodeError: string | null
}

type StoredRow = Omit<ExportRow, 'durationMs' | 'nodeDurationMs'>

/** An export under way. It holds a connection until `read` has answered false or failed, or `close` was called. */
export type Export = {
  /**
   * Calls `each` with the next few hundred rows: an execution's stand together, the newest execution first. False
   * once there are no more.
   */
  read: (each: (row: ExportRow) => void) => Promise<boolean>
  /** Ends it at once, a query under way included. May be called at any time, and again. */
  close: () => Promise<void>
}

const BATCH = 500
const DAY_MS = 86_400_000

/**
 * Begins to read the executions of a team's last `days` days with their node records, all as they are at this
 * moment (OPERATOR; noted in the audit chain). Throws UNAVAILABLE where too many exports are under way for long.
 */
export async function openExport(
  scope: Scope,
  teamId: string,
  asked: { days: number; format: string },
): Promise<Export> {
  const since = new Date(Date.now() - asked.days * DAY_MS)
  await change(scope, 'EXECUTIONS_EXPORTED', teamId, async () => ({
    result: undefined,
    resourceId: null,
    details: { ...asked, since },
  }))
  const { db } = scope.store
  const free = await takeTurn(db, teamId)
  const stop = new AbortController()
  let tx: ControlledTransaction<DB> | undefined
  // A plugin would copy the rows.
  let plain: Tx | undefined
  let ended: Promise<void> | undefined
  let finished = false
  // Waits for what is under way, and gives the connection back also where it is broken.
  const rollback = async () => tx?.rollback().execute()
  const end = () => {
    ended ??= rollback()
      .catch(() => {})
      .then(free)
    return ended
  }
  const fetch = async (): Promise<StoredRow[]> => {
    try {
      const options = { signal: stop.signal, inflightQueryAbortStrategy: 'cancel query' } as const
      const { rows } = await sql<StoredRow>`fetch ${sql.lit(BATCH)} from export`.execute(plain!, options)
      if (rows.length < BATCH) {
        finished = true
        await end()
      }
      return rows
    } catch (error) {
      await end()
      throw error
    }
  }
  try {
    tx = await db.startTransaction().setIsolationLevel('repeatable read').setAccessMode('read only').execute()
    plain = tx.withoutPlugins()
    const visit = createVisit(await readRules(tx))
    await declareCursor(tx, teamId, since)
    // At once, so that what does not work is answered as an error, and a small export holds nothing any more.
    let ahead: StoredRow[] | undefined = await fetch()
    return {
      async read(each) {
        stop.signal.throwIfAborted()
        const rows = ahead ?? (finished ? [] : await fetch())
        ahead = undefined
        if (rows.length === 0) return false
        await visit(rows, each)
        // The driver's promises keep each other alive until the next full collection, and these rows with them: the
        // process would grow by 200 MB.
        rows.length = 0
        return true
      },
      close() {
        stop.abort(new Error('The export is closed'))
        return end()
      },
    }
  } catch (error) {
    await end()
    throw error
  }
}

/**
 * The lateral join is carried out as a loop over the executions, so the rows come in this order and the first at
 * once, without a sort of all.
 */
async function declareCursor(tx: ControlledTransaction<DB>, teamId: string, since: Date): Promise<void> {
  // Should this process hang, the server ends the snapshot itself: it holds up the cleaning of what is deleted.
  await sql`set local idle_in_transaction_session_timeout = '1h'`.execute(tx)
  // Compiling would cost more than it saves.
  await sql`set local jit = off`.execute(tx)
  await sql`
    declare export no scroll cursor for
    select e.id as "executionId", e.workflow_id as "workflowId", e.workflow_name as "workflowName", e.status, e.trigger,
      e.started_at as "startedAt", e.completed_at as "completedAt", n.node_id as "nodeId", n.node_type as "nodeType",
      n.node_name as "nodeName", n.status as "nodeStatus", n.started_at as "nodeStartedAt",
      n.completed_at as "nodeCompletedAt", n.error_message as "nodeError"
    from (
      select * from executions where team_id = ${teamId} and created_at >= ${since}
      order by created_at desc, id desc) e
    left join lateral (
      select * from node_executions where execution_id = e.id
      order by started_at, position, node_id, iteration) n on true`.execute(tx)
}

const SLICE_MS = 10
const CACHED_CHARS = 200_000

/** Shows rows redacted. The same few texts come again and again; what comes once leaves others their turn. */
function createVisit(rules: Rules): (rows: StoredRow[], each: (row: ExportRow) => void) => Promise<void> {
  const cache = new Map<string, string>()
  let chars = 0
  const mask = (text: string): string => {
    const known = cache.get(text)
    if (known !== undefined) return known
    const clean = redact(text, { pii: true, rules })
    chars += text.length + clean.length
    if (chars > CACHED_CHARS) {
      cache.clear()
      chars = text.length + clean.length
    }
    cache.set(text, clean)
    return clean
  }
  const maskAny = (text: string | null) => (text === null ? null : mask(text))
  return async (rows, each) => {
    let since = performance.now()
    for (const row of rows) {
      each({
        ...row,
        workflowName: mask(row.workflowName),
        durationMs: durationOf(row.startedAt, row.completedAt),
        nodeId: maskAny(row.nodeId),
        nodeName: maskAny(row.nodeName),
        nodeDurationMs: row.nodeStartedAt && durationOf(row.nodeStartedAt, row.nodeCompletedAt),
        nodeError: maskAny(row.nodeError),
      })
      if (performance.now() - since < SLICE_MS) continue
      await breathe()
      since = performance.now()
    }
  }
}
