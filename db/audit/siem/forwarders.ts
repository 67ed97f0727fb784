import { createHash } from 'node:crypto'
import { sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import { change } from '../../change.ts'
import type { Db, Tx } from '../../connection.ts'
import { demandCredential } from '../../credentials/references.ts'
import { invalid } from '../../fault.ts'
import { demandRoom, findOwned } from '../../owned.ts'
import { demandTeam, type Scope } from '../../scope.ts'
import { bidFarewell } from './farewell.ts'

export const FORWARDER_TYPES = ['SYSLOG', 'HTTPS'] as const
type ForwarderType = (typeof FORWARDER_TYPES)[number]

/** Where entries are sent. SYSLOG has a `host` and a `port`, HTTPS has a `url`; what is of the other type is null. */
export type ForwarderTarget = {
  type: ForwarderType
  host: string | null
  port: number | null
  /** PEM: the only authorities that the receiver's certificate may be from; null for those that Node.js knows. */
  caCertificate: string | null
  url: string | null
  /** What the requests are signed in with: a credential of the team that can be used for HTTP. */
  credentialId: string | null
}

/** A forwarder as the API shows it. */
export type Forwarder = ForwarderTarget & {
  id: string
  teamId: string
  name: string
  enabled: boolean
  /** The last entry that the receiver has taken. */
  after: number
  /** How many entries there are behind it. */
  waiting: number
  /** How many entries were purged before they were sent. */
  missed: number
  lastSentAt: Date | null
  lastError: string | null
  lastErrorAt: Date | null
  /** How often it has failed since something was sent. */
  failures: number
  /** When it is tried again; null unless it has just failed. */
  nextTryAt: Date | null
  createdAt: Date
  updatedAt: Date
}

export type ForwarderInput = ForwarderTarget & {
  name: string
  enabled?: boolean | undefined
  /** Send what follows this entry. */
  after?: number | undefined
}

/** How many forwarders a team may have. */
export const MAX_FORWARDERS = 5

/** The forwarders of a team, the oldest first (ADMIN). Throws FORBIDDEN, and NOT_FOUND if there is no such team. */
export async function listForwarders(scope: Scope, teamId: string): Promise<Forwarder[]> {
  await demandTeam(scope, teamId, 'ADMIN')
  return select(scope.store.db, teamId).orderBy('f.createdAt').orderBy('f.id').execute()
}

/** One forwarder of a team (ADMIN). Throws as listForwarders, and NOT_FOUND if the team has none of this id. */
export async function readForwarder(scope: Scope, teamId: string, id: string): Promise<Forwarder> {
  await demandTeam(scope, teamId, 'ADMIN')
  return find(scope.store.db, teamId, id)
}

/**
 * Adds a forwarder (ADMIN). Without `after` it begins with the next entry, which is the one of its creation. Throws as
 * `change`, BAD_REQUEST for a credential that it cannot use, and CONFLICT if the team has too many.
 */
export async function createForwarder(
  scope: Scope,
  teamId: string,
  input: ForwarderInput,
): Promise<Forwarder> {
  return change(scope, 'AUDIT_FORWARDER_CREATED', teamId, async (tx) => {
    await demandRoom(tx, 'audit_forwarders', teamId, MAX_FORWARDERS, sql`ends_at is null`)
    const { name, enabled = true, after, ...target } = input
    const head = await readHead(tx, teamId)
    demandPlace(after, head)
    await demandTarget(tx, teamId, target)
    const sentSeq = after ?? head
    const row = { id: uuid(), teamId, name, enabled, sentSeq, ...target }
    await tx.insertInto('auditForwarders').values(row).execute()
    const result = await find(tx, teamId, row.id)
    return { result, resourceId: row.id, details: describe(result) }
  })
}

/**
 * Changes a forwarder (ADMIN), which is tried at once: a process that is sending for it stops. If it stops, or sends
 * elsewhere, the receiver until now gets the entry of that, too. `enabled` and `after` stay as they are if they are not
 * given. Throws as createForwarder.
 */
export async function updateForwarder(
  scope: Scope,
  teamId: string,
  id: string,
  input: ForwarderInput,
): Promise<Forwarder> {
  return change(scope, 'AUDIT_FORWARDER_UPDATED', teamId, async (tx) => {
    await lock(tx, teamId, id)
    const before = await find(tx, teamId, id)
    const { name, enabled = before.enabled, after = before.after, ...target } = input
    demandPlace(input.after, await readHead(tx, teamId))
    await demandTarget(tx, teamId, target)
    if (before.enabled && (!enabled || isElsewhere(before, target))) await bidFarewell(tx, teamId, id)
    await tx
      .updateTable('auditForwarders')
      .set({ name, enabled, sentSeq: after, ...target })
      .set({ failures: 0, lastError: null, lastErrorAt: null, lease: null, leaseUntil: null })
      .set({ dueAt: sql<Date>`now()`, updatedAt: sql<Date>`now()` })
      .where('id', '=', id)
      .execute()
    const result = await find(tx, teamId, id)
    return { result, resourceId: id, details: { before: describe(before), after: describe(result) } }
  })
}

/** Deletes a forwarder (ADMIN); its receiver gets the entry of that. Throws as `change`, and NOT_FOUND. */
export async function deleteForwarder(scope: Scope, teamId: string, id: string): Promise<void> {
  await change(scope, 'AUDIT_FORWARDER_DELETED', teamId, async (tx) => {
    await lock(tx, teamId, id)
    const known = await find(tx, teamId, id)
    if (known.enabled) await bidFarewell(tx, teamId, id)
    await tx.deleteFrom('auditForwarders').where('id', '=', id).execute()
    return { result: undefined, resourceId: id, details: describe(known) }
  })
}

/**
 * Notes that a forwarder was tried, and what came of it (ADMIN), even if it was changed or deleted meanwhile. Throws as
 * `change`.
 */
export async function noteForwarderTest(
  scope: Scope,
  { id, teamId, name }: Forwarder,
  said: { status: 'SUCCESS' | 'FAILED'; message: string },
): Promise<void> {
  await change(scope, 'AUDIT_FORWARDER_TESTED', teamId, async () => ({
    result: undefined,
    resourceId: id,
    details: { name, ...said },
  }))
}

function select(db: Db, teamId: string) {
  return db
    .selectFrom('auditForwarders as f')
    .leftJoin('auditHeads as h', 'h.teamId', 'f.teamId')
    .where('f.teamId', '=', teamId)
    .where('f.endsAt', 'is', null)
    .select(['f.id', 'f.teamId', 'f.name', 'f.enabled', 'f.host', 'f.port', 'f.caCertificate', 'f.url'])
    .select(['f.credentialId', 'f.sentSeq as after', 'f.missed', 'f.lastSentAt', 'f.lastError'])
    .select(['f.lastErrorAt', 'f.failures', 'f.createdAt', 'f.updatedAt'])
    .select(sql<ForwarderType>`f.type`.as('type'))
    .select(sql<number>`greatest(0, coalesce(h.seq, 0) - f.sent_seq)`.as('waiting'))
    .select(sql<Date | null>`case when f.enabled and f.failures > 0 then f.due_at end`.as('nextTryAt'))
}

const find = (db: Db, teamId: string, id: string): Promise<Forwarder> =>
  findOwned(select(db, teamId).where('f.id', '=', id), 'audit forwarder')

/** Whether the entries go to another receiver from now on. */
function isElsewhere(before: ForwarderTarget, after: ForwarderTarget): boolean {
  const keys = ['type', 'host', 'port', 'url'] as const
  return keys.some((key) => before[key] !== after[key])
}

async function lock(tx: Tx, teamId: string, id: string): Promise<void> {
  const found = tx.selectFrom('auditForwarders').select('id').where('id', '=', id)
  await found.where('teamId', '=', teamId).where('endsAt', 'is', null).forUpdate().execute()
}

async function readHead(db: Db, teamId: string): Promise<number> {
  const head = await db.selectFrom('auditHeads').select('seq').where('teamId', '=', teamId).executeTakeFirst()
  return head?.seq ?? 0
}

/** With a number beyond the newest entry, the entries up to it would be left out without a word. */
function demandPlace(after: number | undefined, head: number): void {
  if (after !== undefined && after > head)
    throw invalid([{ path: 'after', message: `must be at most ${head}, the number of the newest entry` }])
}

/** What the audit says of a forwarder. */
function describe({ name, type, enabled, after, host, port, caCertificate, url, credentialId }: Forwarder) {
  const caSha256 = caCertificate === null ? null : createHash('sha256').update(caCertificate).digest('hex')
  const target = type === 'SYSLOG' ? { host, port, caSha256 } : { url, credentialId }
  return { name, type, enabled, after, ...target }
}

async function demandTarget(tx: Tx, teamId: string, { credentialId }: Pick<ForwarderTarget, 'credentialId'>) {
  if (credentialId !== null)
    await demandCredential(tx, { teamId, credentialId, use: 'HTTP', purpose: 'HTTP' })
}
