import { sql } from 'kysely'
import type { Db } from '../connection.ts'
import { LASTING_ACTIONS } from './erasure/erasures.ts'
import { type AuditCore, canonicalCore, hashLink, hashPersonal } from './signing.ts'
import { timeText } from './times.ts'

/** An entry as it is stored. `mac` and `keyId` are null if a process of an older release has appended it. */
export type StoredEntry = AuditCore & {
  id: string
  seq: number
  /** `seq` in digits: a number that an intruder has written may be too great for JavaScript. */
  seqText: string
  prev: Buffer
  hash: Buffer
  tsText: string
  actorName: string | null
  userAgent: string | null
  /** Both null if what is personal was erased. */
  detailsText: string | null
  detailsSalt: Buffer | null
  core: string
  mac: Buffer | null
  keyId: string | null
}

/** An export reads them on the thread that serves all requests: a page is some 10 ms of work. */
const PAGE = 200
const NO_ID = '00000000-0000-0000-0000-000000000000'
const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

/** All entries of a chain behind `base` in its order, page by page; up to entry `to`, if there is one. */
export async function* readEntries(
  db: Db,
  teamId: string,
  base: number,
  to?: number,
): AsyncGenerator<StoredEntry> {
  // Where nothing was purged, number 0 is read too, which there should not be.
  let after = { seqText: base === 0 ? '-1' : String(base), id: base === 0 ? NO_ID : LAST_ID }
  for (;;) {
    const { rows } = await sql<StoredEntry>`
      select id, seq, seq::text as seq_text, prev, hash, ${timeText('ts')} as ts_text,
        team_id, event_id, actor_kind, actor_id, actor_role, actor_name, action, resource_type, resource_id, outcome,
        request_id, src_ip, details::text as details_text, details_salt, details_sha256, core, mac, key_id,
        v, user_id, user_agent, access_id
      from audit_entries where team_id = ${teamId} and (seq, id) > (${after.seqText}::bigint, ${after.id}::uuid)
        and (${to ?? null}::bigint is null or seq <= ${to ?? null}::bigint)
      order by seq, id limit ${PAGE}`.execute(db)
    yield* rows
    if (rows.length < PAGE) return
    after = rows.at(-1)!
  }
}

export type StoredRange = { fromSeq: number; toSeq: number; hash: Buffer; mac: Buffer; keyId: string }

/** The ranges of entries that an older release has appended. */
export async function readUnsigned(db: Db, teamId: string): Promise<StoredRange[]> {
  const { rows } = await sql<StoredRange>`
    select from_seq, to_seq, hash, mac, key_id from audit_unsigned where team_id = ${teamId}
    order by to_seq`.execute(db)
  return rows
}

const SALT_BYTES = 16

/**
 * Says how the columns of an entry differ from its hash; undefined if they agree. The details are hashed as they are
 * stored, without being parsed: the column takes only JSON, so that no other texts make the same one together.
 */
export function findFault(row: StoredEntry): string | undefined {
  const { teamId, seq, prev, tsText: ts, v, detailsText: details, detailsSalt: salt } = row
  if (!Number.isSafeInteger(seq) || (v !== 1 && v !== 2))
    return `Entry ${row.seqText} cannot have been written by this service`
  if (!isBlank(row)) {
    if (salt === null || details === null) return `The details of entry ${seq} are missing`
    const personal = hashPersonal(salt, v, { ...row, details })
    if (salt.length !== SALT_BYTES || !personal.equals(row.detailsSha256))
      return `The details of entry ${seq} do not match their hash`
  }
  const core = canonicalCore(row)
  const hash = hashLink({ teamId, seq, prev, ts, core })
  // The hash covers neither the row's id nor the stored core, nor in version 1 what it does not have: these have to
  // agree with what it covers.
  const others = v === 2 || (row.userId === null && row.userAgent === null && row.accessId === null)
  // Without a signature there is no key either.
  const unkeyed = row.mac !== null || row.keyId === null
  if (hash.equals(row.hash) && core === row.core && row.id === row.eventId && others && unkeyed)
    return undefined
  return `Entry ${seq} does not match its hash`
}

/** Whether an entry is as `eraseDetails` leaves it. Another entry must name it. */
export function isBlank(row: StoredEntry): boolean {
  const { v, actorName, srcIp, userAgent, detailsText, detailsSalt } = row
  const gone = [actorName, srcIp, userAgent, detailsText, detailsSalt].every((value) => value === null)
  return gone && v === 2 && !LASTING_ACTIONS.includes(row.action)
}
