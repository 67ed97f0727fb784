import { createHash } from 'node:crypto'
import { sql } from 'kysely'
import type { Tx } from '../connection.ts'
import { readSnapshot } from '../connection.ts'
import { Fault } from '../fault.ts'
import type { Store } from '../scope.ts'
import {
  type AuditCore,
  canonicalCore,
  canonicalJson,
  genesisHash,
  hashDetails,
  INSTANCE_CHAIN,
  signHead,
} from './audit.ts'

export type Verdict =
  /** The entry's columns do not match its hash. */
  | 'entry_modified'
  /** The entry does not link to the one before it. */
  | 'link_broken'
  /** Entries are missing before this one. */
  | 'gap'
  /** Two entries have the same number. */
  | 'fork'
  /** The head counts more entries than there are. */
  | 'tail_truncated'
  /** The head counts fewer entries than there are, or its hash is not that of the last entry. */
  | 'head_mismatch'
  | 'head_missing'
  /** The head is not signed with a key of this installation. */
  | 'head_mac_invalid'
  /** There is no entry with the number and hash that the caller noted. */
  | 'checkpoint_mismatch'
  /**
   * The team is gone without TEAM_DELETED at the end of its chain, or exists although the chain is closed.
   */
  | 'team_mismatch'

export type AuditFinding = { verdict: Verdict; seq: number | null; message: string }

/** An entry that was noted elsewhere. It reveals a chain that was cut back to an older, intact state. */
export type Checkpoint = { seq: number; hash: string }

export type AuditVerification = {
  teamId: string
  /** How many entries were read. */
  entries: number
  /** The last entry, to be noted as a checkpoint; null if there is no entry. */
  last: Checkpoint | null
  /** Whether the chain ends with TEAM_DELETED. */
  closed: boolean
  /** The first 1,000 findings, in the order of the chain; empty if it is intact. */
  findings: AuditFinding[]
}

type Row = Omit<AuditCore, 'detailsSha256'> & {
  id: string
  seq: number
  prev: Buffer
  hash: Buffer
  tsText: string
  actorName: string
  detailsText: string
  detailsSalt: Buffer
  detailsSha256: Buffer
  core: string
}

const PAGE = 500
const MAX_FINDINGS = 1_000

/**
 * Verifies a team's audit chain: computes every hash from the columns, and checks every link, the head and
 * its signature. Reads one snapshot page by page, so the memory does not depend on the length of the chain.
 * Throws NOT_FOUND if there is neither a team nor a chain.
 */
export async function verifyAudit(
  store: Store,
  teamId: string,
  checkpoint?: Checkpoint,
): Promise<AuditVerification> {
  const findings: AuditFinding[] = []
  const find = (verdict: Verdict, seq: number | null, message: string) => {
    if (findings.length < MAX_FINDINGS) findings.push({ verdict, seq, message })
  }
  return readSnapshot(store.db).execute(async (tx) => {
    let entries = 0
    let last: Row | undefined
    let noted = checkpoint === undefined
    for await (const row of readEntries(tx, teamId)) {
      checkPlace(row, last)
      const fault = findFault(row)
      if (fault) find('entry_modified', row.seq, fault)
      if (!row.prev.equals(last?.hash ?? genesisHash(teamId)))
        find('link_broken', row.seq, `Entry ${row.seq} does not link to the entry before it`)
      if (row.seq === checkpoint?.seq) noted = row.hash.toString('hex') === checkpoint.hash.toLowerCase()
      entries++
      last = row
    }
    const head = await readHead(tx, teamId)
    const team = await tx.selectFrom('teams').select('id').where('id', '=', teamId).executeTakeFirst()
    if (!team && !head && !last)
      throw new Fault('NOT_FOUND', 'There is no such team, nor an audit chain of it')
    checkHead(head, last)
    if (!noted)
      find(
        'checkpoint_mismatch',
        checkpoint!.seq,
        `There is no entry ${checkpoint!.seq} with the hash that was noted`,
      )
    const closed = last?.action === 'TEAM_DELETED'
    if (!team && !closed && teamId !== INSTANCE_CHAIN)
      find('team_mismatch', null, 'The team is gone, but its chain does not end with TEAM_DELETED')
    if (team && closed) find('team_mismatch', null, 'The team exists, but its chain ends with TEAM_DELETED')
    return {
      teamId,
      entries,
      last: last ? { seq: last.seq, hash: last.hash.toString('hex') } : null,
      closed,
      findings,
    }
  })

  function checkPlace(row: Row, before: Row | undefined): void {
    const expected = (before?.seq ?? 0) + 1
    if (row.seq === before?.seq) find('fork', row.seq, `There are two entries with the number ${row.seq}`)
    else if (row.seq !== expected) find('gap', row.seq, `Entries ${expected} to ${row.seq - 1} are missing`)
  }

  function checkHead(head: Head | undefined, last: Row | undefined): void {
    if (!head) {
      find('head_missing', null, 'The chain has no head')
      return
    }
    const { seq } = head
    const found = last?.seq ?? 0
    if (seq > found)
      find('tail_truncated', seq, `The chain ends at entry ${found}, but its head counts ${seq} entries`)
    else if (seq < found || !head.hash.equals(last?.hash ?? genesisHash(teamId)))
      find('head_mismatch', seq, `The head does not match the last entry, ${found}`)
    if (!isSealed(store, teamId, head))
      find('head_mac_invalid', seq, 'The head is not signed with a key of this installation')
  }
}

/** The ids of all teams that have a chain or should have one: from the teams, the heads and the entries. */
export async function listChains(store: Store): Promise<string[]> {
  // Steps from team to team in the index: the number of their entries does not matter.
  const { rows } = await sql<{ id: string }>`
    with recursive steps as (
      (select team_id from audit_entries order by team_id limit 1)
      union all
      select (select team_id from audit_entries e where e.team_id > s.team_id order by team_id limit 1)
      from steps s where s.team_id is not null)
    select team_id as id from steps where team_id is not null
    union select team_id from audit_heads union select id from teams order by id`.execute(store.db)
  return rows.map((row) => row.id)
}

async function* readEntries(tx: Tx, teamId: string): AsyncGenerator<Row> {
  let after = { seq: -1, id: '00000000-0000-0000-0000-000000000000' }
  for (;;) {
    const { rows } = await sql<Row>`
      select id, seq, prev, hash, to_char(ts at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as ts_text,
        team_id, event_id, actor_kind, actor_id, actor_role, actor_name, action, resource_type, resource_id, outcome,
        request_id, src_ip, details::text as details_text, details_salt, details_sha256, core
      from audit_entries where team_id = ${teamId} and (seq, id) > (${after.seq}, ${after.id}::uuid)
      order by seq, id limit ${PAGE}`.execute(tx)
    yield* rows
    if (rows.length < PAGE) return
    after = rows.at(-1)!
  }
}

/** Says how the columns of an entry differ from its hash; undefined if they agree. */
function findFault(row: Row): string | undefined {
  const details = readDetails(row)
  if (!details?.equals(row.detailsSha256)) return `The details of entry ${row.seq} do not match their hash`
  const core = canonicalCore(row)
  const seq = Buffer.alloc(8)
  seq.writeBigInt64BE(BigInt(row.seq))
  const hash = createHash('sha256')
    .update('audit-v1')
    .update(row.prev)
    .update(seq)
    .update(row.tsText)
    .update(createHash('sha256').update(core).digest())
    .digest()
  // The hash covers neither the row's id nor the stored core: these have to agree with what it covers.
  if (hash.equals(row.hash) && core === row.core && row.id === row.eventId) return undefined
  return `Entry ${row.seq} does not match its hash`
}

function readDetails(row: Row): Buffer | undefined {
  try {
    const details: unknown = JSON.parse(row.detailsText)
    if (canonicalJson(details) !== row.detailsText) return undefined
    return hashDetails(row.detailsSalt, row.actorName, details)
  } catch {
    return undefined
  }
}

type Head = { seq: number; hash: Buffer; mac: Buffer; keyId: string }

async function readHead(tx: Tx, teamId: string): Promise<Head | undefined> {
  const head = await tx
    .selectFrom('auditHeads')
    .select(['seq', 'hash', 'mac', 'keyId'])
    .where('teamId', '=', teamId)
    .executeTakeFirst()
  return head && { ...head, seq: Number(head.seq) }
}

function isSealed({ keys }: Store, teamId: string, head: Head): boolean {
  if (!keys.byId.has(head.keyId)) return false
  return signHead(keys, head.keyId, teamId, head.seq, head.hash).equals(head.mac)
}
