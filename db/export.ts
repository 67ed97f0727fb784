import { setImmediate as breathe } from 'node:timers/promises'
import { type ControlledTransaction, sql } from 'kysely'
import { readRules } from './masking.ts'
import { type Rules, redact } from './redact.ts'
import type { DB } from './schema.ts'
import { change, type Scope, type Tx } from './scope.ts'
import { takeTurn } from './turns.ts'

/** Redacted; times are ISO 8601 in UTC. */
export type ExportedExecution = {
  executionId: string
  workflowId: string
  workflowName: string
  status: string
  trigger: string
  startedAt: string | null
  completedAt: string | null
  durationMs: number | null
}
export type ExportedNode = {
  nodeId: string
  nodeType: string
  nodeName: string
  status: string
  startedAt: string
  completedAt: string | null
  durationMs: number | null
  error: string | null
}
type Each = (execution: ExportedExecution, node: ExportedNode | null) => void

/** As fetched: times in ms since 1970, for Date objects of a million rows are a load. */
type Row = Omit<ExportedExecution, 'startedAt' | 'completedAt' | 'durationMs'> &
  Pick<ExportedNode, 'nodeType' | 'nodeName'> & {
    started: number | null
    completed: number | null
    nodeId: string | null
    nodeStatus: string
    nodeStarted: number
    nodeCompleted: number | null
    nodeError: string | null
  }

/** An export under way. It holds a connection until `read` has answered false or failed, or `close` was called. */
export type Export = {
  /**
   * Shows the next few hundred node records with their executions, the newest first; an execution without any with
   * null. It is the same object for all of its records. False once there are no more.
   */
  read: (each: Each) => Promise<boolean>
  /** Ends it at once, a query under way included. May be called at any time, and again. */
  close: () => Promise<void>
}

const BATCH = 100
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
  const fetch = async (): Promise<Row[]> => {
    try {
      const options = { signal: stop.signal, inflightQueryAbortStrategy: 'cancel query' } as const
      const { rows } = await sql<Row>`fetch ${sql.lit(BATCH)} from export`.execute(plain!, options)
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
    let ahead: Row[] | undefined = await fetch()
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
      ${toMs('e.started_at')} as started, ${toMs('e.completed_at')} as completed, n.node_id as "nodeId",
      n.node_type as "nodeType", n.node_name as "nodeName", n.status as "nodeStatus",
      ${toMs('n.started_at')} as "nodeStarted", ${toMs('n.completed_at')} as "nodeCompleted",
      n.error_message as "nodeError"
    from (
      select * from executions where team_id = ${teamId} and created_at >= ${since}
      order by created_at desc, id desc) e
    left join lateral (
      select * from node_executions where execution_id = e.id
      order by started_at, position, node_id, iteration) n on true`.execute(tx)
}

function toMs(column: string) {
  return sql`(extract(epoch from ${sql.ref(column)}) * 1000)::float8`
}

const SLICE_MS = 10
const CACHED_CHARS = 200_000

/** Shows rows redacted. The same few texts come again and again; what comes once leaves others their turn. */
function createVisit(rules: Rules): (rows: Row[], each: Each) => Promise<void> {
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
  let execution: ExportedExecution | undefined
  return async (rows, each) => {
    let since = performance.now()
    for (const row of rows) {
      if (execution?.executionId !== row.executionId) execution = readExecution(row, mask)
      each(execution, row.nodeId === null ? null : readNode(row, row.nodeId, mask))
      if (performance.now() - since < SLICE_MS) continue
      await breathe()
      since = performance.now()
    }
  }
}

function readExecution(row: Row, mask: (text: string) => string): ExportedExecution {
  const { executionId, workflowId, workflowName, status, trigger, started, completed } = row
  return {
    executionId,
    workflowId,
    workflowName: mask(workflowName),
    status,
    trigger,
    startedAt: toIso(started),
    completedAt: toIso(completed),
    durationMs: completed === null ? null : completed - (started ?? completed),
  }
}

function readNode(row: Row, nodeId: string, mask: (text: string) => string): ExportedNode {
  const { nodeType, nodeName, nodeStatus, nodeStarted, nodeCompleted, nodeError } = row
  return {
    nodeId: mask(nodeId),
    nodeType,
    nodeName: mask(nodeName),
    status: nodeStatus,
    startedAt: toIso(nodeStarted)!,
    completedAt: toIso(nodeCompleted),
    durationMs: nodeCompleted === null ? null : nodeCompleted - nodeStarted,
    error: nodeError === null ? null : mask(nodeError),
  }
}

function toIso(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString()
}
