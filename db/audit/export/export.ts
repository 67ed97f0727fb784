import { type ControlledTransaction, sql } from 'kysely'
import { ACTS } from '../../acts.ts'
import { change, changeInstance, write } from '../../change.ts'
import type { Db } from '../../connection.ts'
import { openSnapshot } from '../../connection.ts'
import { takeExportSlot } from '../../executions/exportslots.ts'
import { Fault } from '../../fault.ts'
import { demandStill } from '../../people/rights.ts'
import type { DB } from '../../schema.ts'
import type { Scope, Store } from '../../scope.ts'
import { checkpointChain, toCheckpoint } from '../checkpoints.ts'
import { isBlank, readEntries, type StoredEntry } from '../entries.ts'
import { streamStandingCheckpoints } from '../proofs/forged.ts'
import { listPublicKeys, type PublicKeyView } from '../proofs/publickeys.ts'
import { type AnchorRow, readAnchors } from '../retention/anchors.ts'
import { canonicalCore, personalText } from '../signing.ts'
import { AUDIT_EXPORT_FORMAT, writeExportLine } from './lines.ts'

/** Numbers of entries, both inclusive. */
export type ExportRange = { from?: number | undefined; to?: number | undefined }

/** Lines of an export. `close` ends it at once, and may be called at any time, and again. */
export type OpenAuditExport = { lines: AsyncGenerator<string>; close: () => Promise<void> }

/**
 * Begins an export of a team's chain, as it is at this moment (ADMIN). The export is an entry itself, and a checkpoint
 * is signed behind it: without `to`, the export ends with it, else with the first checkpoint from there on. If the
 * chain is broken, the entry goes to the instance's chain, there is no checkpoint, and all entries are exported. Throws
 * FORBIDDEN, NOT_FOUND, and UNAVAILABLE if other exports leave no slot for 30 s.
 */
export async function openAuditExport(
  scope: Scope,
  teamId: string,
  { from = 1, to }: ExportRange,
): Promise<OpenAuditExport> {
  await change(scope, 'AUDIT_EXPORTED', teamId, tellExport(teamId, { from, to }))
  const right = { scope, least: ACTS.AUDIT_EXPORTED.role }
  const check = () => write(scope.store, (tx) => demandStill(tx, right, teamId))
  return open(scope.store, teamId, { from, to }, check)
}

/**
 * Begins an export of any chain for the operator: of a team, of the instance, or of a team that is deleted, whose chain
 * takes no more entries: then the entry is in the instance's. Throws FORBIDDEN unless for the operator, and NOT_FOUND
 * if there is no such chain.
 */
export async function openOperatorExport(scope: Scope, chain: string): Promise<OpenAuditExport> {
  const { store } = scope
  if (scope.actor.kind !== 'SYSTEM')
    throw new Fault('FORBIDDEN', 'Only the operator can export every audit chain')
  const { rows } = await sql<{ known: boolean; lives: boolean }>`
    select exists (select from audit_entries where team_id = ${chain}) as known,
      exists (select from teams where id = ${chain}) as lives`.execute(store.db)
  const { known, lives } = rows[0]!
  if (!known && !lives) throw new Fault('NOT_FOUND', 'There is no such audit chain')
  const work = tellExport(chain, { from: 1 })
  await (lives ? change(scope, 'AUDIT_EXPORTED', chain, work) : changeInstance(scope, 'AUDIT_EXPORTED', work))
  return open(store, chain, { from: 1 }, async () => {})
}

const tellExport =
  (chain: string, { from, to = null }: { from: number; to?: number | null | undefined }) =>
  async () => ({ result: undefined, resourceId: chain, details: { from, to } })

/** Reads the chain once there is a slot; `check` says whether the caller still may, because that can take a while. */
async function open(
  store: Store,
  teamId: string,
  { from, to }: { from: number; to?: number | undefined },
  check: () => Promise<unknown>,
): Promise<OpenAuditExport> {
  const checkpoint = await checkpointChain(store, teamId)
  const freeSlot = await takeExportSlot(store.db, teamId)
  let snapshot: ControlledTransaction<DB> | undefined
  let ended: Promise<void> | undefined
  const close = () => {
    ended ??= Promise.resolve(snapshot?.rollback().execute())
      .catch(() => {})
      .then(freeSlot)
    return ended
  }
  try {
    await check()
    const keys = await listPublicKeys(store)
    snapshot = await openSnapshot(store.db)
    // An open snapshot keeps PostgreSQL from removing deleted rows. If this process hangs, the server ends it.
    await sql`set local idle_in_transaction_session_timeout = '1h'`.execute(snapshot)
    const lines = writeLines(snapshot, teamId, { from, to, keys, signed: checkpoint !== null })
    return { lines: closing(lines, close), close }
  } catch (error) {
    await close()
    throw error
  }
}

async function* closing(lines: AsyncGenerator<string>, close: () => Promise<void>): AsyncGenerator<string> {
  try {
    yield* lines
  } finally {
    await close()
  }
}

type ExportedRange = { from: number; to: number | undefined; keys: PublicKeyView[]; signed: boolean }

async function* writeLines(
  db: Db,
  teamId: string,
  { from, to, keys, signed }: ExportedRange,
): AsyncGenerator<string> {
  yield writeExportLine({
    ...{ type: 'header', format: AUDIT_EXPORT_FORMAT, teamId, exportedAt: new Date().toISOString() },
    ...{ from, to: to ?? null, keys },
  })
  const anchors = await readAnchors(db, teamId)
  for (const anchor of anchors) yield writeExportLine(toAnchor(anchor))
  const low = Math.max(from, (anchors.at(-1)?.baseSeq ?? 0) + 1)
  const high = signed ? await readSignedFrom(db, teamId, to) : to
  const checkpoints = streamStandingCheckpoints(db, teamId)
  let next = await checkpoints.next()
  // Those that speak of nothing in the export.
  while (!next.done && next.value.seq < low - 1) next = await checkpoints.next()
  let entries = 0
  let last: StoredEntry | undefined
  /** The checkpoints before an entry, each once. */
  async function* takeCheckpoints(before: number): AsyncGenerator<string> {
    for (; !next.done && next.value.seq < before; next = await checkpoints.next())
      yield writeExportLine({ type: 'checkpoint', ...toCheckpoint(next.value) })
  }
  for await (const row of readEntries(db, teamId, low - 1, high)) {
    yield* takeCheckpoints(row.seq)
    yield writeEntry(row)
    entries++
    last = row
  }
  yield* takeCheckpoints(to === undefined || high === undefined ? Number.POSITIVE_INFINITY : high + 1)
  const end = last ? { seq: last.seq, hash: last.hash.toString('hex') } : null
  yield writeExportLine({ type: 'end', entries, last: end })
}

function toAnchor({ baseHash, signature, ...row }: AnchorRow) {
  const { teamId, baseSeq, baseTs, purgeSeq, cutoff, breaks, createdAt, keyId } = row
  return {
    ...{ type: 'anchor' as const, teamId, baseSeq, baseHash: baseHash.toString('hex'), baseTs, purgeSeq },
    ...{ cutoff, breaks, createdAt, keyId, signature: signature.toString('base64') },
  }
}

/** The texts are made from the columns, so that an altered column is found in the export as well. */
function writeEntry(row: StoredEntry): string {
  const { seq, tsText, prev, hash, detailsSalt, v, detailsText } = row
  const details = isBlank(row) ? null : personalText(v, { ...row, details: detailsText ?? 'null' })
  return writeExportLine({
    ...{ type: 'entry', seq, ts: tsText, prev: prev.toString('hex'), hash: hash.toString('hex') },
    ...{ salt: detailsSalt?.toString('hex') ?? null, core: canonicalCore(row), details },
  })
}

/**
 * The first checkpoint that covers the entry `to`, or the last one. Every part of an export ends with a checkpoint,
 * because an unsigned end could be forged.
 */
async function readSignedFrom(db: Db, teamId: string, to: number | undefined): Promise<number> {
  const { rows } = await sql<{ seq: number }>`
    select coalesce(min(seq) filter (where seq >= ${to ?? null}::bigint), max(seq)) as seq
    from audit_checkpoints where team_id = ${teamId}`.execute(db)
  return rows[0]!.seq
}
