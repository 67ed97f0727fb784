import { randomBytes } from 'node:crypto'
import { v7 as uuid } from 'uuid'
import { ACCOUNT_ACTS, ACTS, type AccountAct, type Act } from '../acts.ts'
import type { Tx } from '../connection.ts'
import { Fault } from '../fault.ts'
import { redact } from '../redaction/redact.ts'
import { readRecentRules } from '../redaction/rules.ts'
import type { Scope, Store } from '../scope.ts'
import { cleanText } from '../text.ts'
import { endAlarm, raiseAlarm } from './alarm.ts'
import { type EntryBody, extendChain, openChain } from './chain.ts'
import { canonicalJson, hashPersonal, INSTANCE_CHAIN } from './signing.ts'

/** What an entry says in addition: the id of the resource, and details, to be redacted and hashed. */
export type AuditEntry = { resourceId: string | null; details?: Record<string, unknown> }

type AnyAct = Act | AccountAct

type AuditedAct = { resource: string; urgent?: true; outcome?: 'FAILURE' | 'DENIED' }

const KINDS: Record<AnyAct, AuditedAct> = { ...ACTS, ...ACCOUNT_ACTS }

const MAX_DETAIL_BYTES = 32_000

/** The version of the entries that are appended; entries of version 1 stay as they are. */
const ENTRY_VERSION = 2

/**
 * Appends an entry to the team's chain. It must be the last step of the transaction that did the act, because the head
 * row stays locked until the commit. Throws AUDIT_CHAIN_BROKEN if the chain was altered. An act that is `urgent` goes
 * on even then: its entry goes to the instance's chain, or, if that is broken too, into the log.
 */
export async function appendAudit(
  tx: Tx,
  scope: Scope,
  act: AnyAct,
  teamId: string,
  { resourceId, details = {} }: AuditEntry,
): Promise<void> {
  const { store } = scope
  if (act === 'TEAM_CREATED') await openChain(tx, store.keys, teamId)
  const rules = await readRecentRules(store.db, tx)
  const clean = shrink(cleanDeep(redact(plainJson(details), { rules })))
  const role = scope.roles.get(teamId) ?? null
  const body = makeBody(scope, act, { chain: teamId, role, resourceId, details: clean })
  if (await extend(tx, store, body)) return
  if (!KINDS[act].urgent) throw brokenChain(teamId)
  const noted = { ...(clean as object), brokenChain: teamId }
  const moved = makeBody(scope, act, { chain: INSTANCE_CHAIN, role, resourceId, details: noted })
  if (teamId !== INSTANCE_CHAIN && (await extend(tx, store, moved))) return
  const { detailsSalt: _salt, detailsSha256: _sha256, ...unaudited } = moved
  raiseAlarm(store, { teamId: INSTANCE_CHAIN, why: 'it cannot take an entry', unaudited })
}

/** Whether the chain was intact and the entry is appended. */
async function extend(tx: Tx, store: Store, body: EntryBody): Promise<boolean> {
  const why = await extendChain(tx, store.keys, body)
  if (why === undefined) endAlarm(store, body.teamId)
  else raiseAlarm(store, { teamId: body.teamId, why })
  return why === undefined
}

/** An entry for a chain; `details` must be clean. */
export function makeBody(
  scope: Scope,
  act: AnyAct,
  entry: { chain: string; role: string | null; resourceId: string | null; details: unknown },
): EntryBody {
  const { chain, role, resourceId, details } = entry
  const detailsSalt = randomBytes(16)
  const personal = {
    actorName: cleanText(scope.actor.name, 320),
    srcIp: scope.ip === null ? null : cleanText(scope.ip, 64),
    userAgent: scope.userAgent === null ? null : cleanText(scope.userAgent, 500),
    details: canonicalJson(details),
  }
  return {
    v: ENTRY_VERSION,
    teamId: chain,
    eventId: uuid(),
    actorKind: scope.actor.kind,
    actorId: scope.actor.id,
    actorRole: role,
    // An act of the service or its operator on a person's behalf is not that person's act.
    userId: scope.actor.kind === 'SYSTEM' ? null : scope.userId,
    accessId: scope.access?.id ?? null,
    action: act,
    resourceType: KINDS[act].resource,
    resourceId,
    outcome: KINDS[act].outcome ?? 'SUCCESS',
    requestId: scope.requestId === null ? null : cleanText(scope.requestId, 200),
    ...personal,
    detailsSalt,
    detailsSha256: hashPersonal(detailsSalt, ENTRY_VERSION, personal),
  }
}

function brokenChain(teamId: string): Fault {
  const whose = teamId === INSTANCE_CHAIN ? "the instance's audit chain" : 'the audit chain of this team'
  return new Fault(
    'AUDIT_CHAIN_BROKEN',
    `Nothing was done, because ${whose} does not verify, so that nothing can be added to it: the operator must look into it (npx perdure audit verify ${teamId}) and reopen it`,
    { retryAfter: 60 },
  )
}

function plainJson(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value))
}

function cleanDeep(value: unknown): unknown {
  if (typeof value === 'string') return cleanText(value)
  if (Array.isArray(value)) return value.map(cleanDeep)
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [cleanText(key), cleanDeep(item)]))
}

function shrink(details: unknown): unknown {
  const bytes = Buffer.byteLength(JSON.stringify(details))
  return bytes <= MAX_DETAIL_BYTES ? details : { omitted: true, bytes }
}
