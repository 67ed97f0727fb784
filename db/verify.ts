import { createHash } from 'node:crypto'
import { sql } from 'kysely'
import { type Core, canonical, describeCore, genesisHash, hashDetails, INSTANCE, signHead } from './audit.ts'
import { Fault } from './fault.ts'
import type { Store, Tx } from './scope.ts'

export type Verdict =
  /** Its columns do not hash to what it says of itself. */
  | 'entry_modified'
  /** It does not link to the entry before it. */
  | 'link_broken'
  /** Entries are missing before it. */
  | 'gap'
  /** Two entries stand at its place. */
  | 'fork'
  /** The head says that there were more. */
  | 'tail_truncated'
  /** The head says less, or another hash, than the last entry. */
  | 'head_mismatch'
  | 'head_missing'
  /** The head is not sealed with a key of this installation. */
  | 'head_mac_invalid'
  /** The entry that the caller has noted is not (or no longer) this one. */
  | 'checkpoint_mismatch'
  /** The team is gone without TEAM_DELETED at the end of its chain, or is there although the chain is closed. */
  | 'team_mismatch'

export type Finding = { verdict: Verdict; seq: number | null; message: string }

/** An entry as somebody noted it elsewhere: it shows a chain cut back to an older state, which is sound by itself. */
export type Checkpoint = { seq: number; hash: string }

export type Verification = {
  teamId: string
  /** How many entries were read. */
  entries: number
  /** The last one, to be noted as a checkpoint; null where there is none. */
  last: Checkpoint | null
  /** The team has been deleted, and its chain ends with that. */
  closed: boolean
  /** The first 1,000 of what is wrong, in the order of the chain; none where it is intact. */
  findings: Finding[]
}

type Row = Omit<Core, 'detailsSha256'> & {
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
 * Verifies a team's audit chain against its live columns: every hash made anew, every link, the head and its seal.
 * Reads one snapshot page by page, so that it takes the same memory however long the chain is. Throws NOT_FOUND
 * where there is neither a team nor a chain.
 */
export async function verifyAudit(
  store: Store,
  teamId: string,
  checkpoint?: Checkpoint,
): Promise<Verification> {
  const findings: Finding[] = []
  const find = (verdict: Verdict, seq: number | null, message: string) => {
    if (findings.length < MAX_FINDINGS) findings.push({ verdict, seq, message })
  }
  return store.db
    .transaction()
    .setIsolationLevel('repeatable read')
    .setAccessMode('read only')
    .execute(async (tx) => {
      let entries = 0
      let last: Row | undefined
      let noted = checkpoint === undefined
      for await (const row of readEntries(tx, teamId)) {
        checkPlace(row, last)
        const fault = findFault(row)
        if (fault) find('entry_modified', row.seq, fault)
        if (!row.prev.equals(last?.hash ?? genesisHash(teamId)))
          find('link_broken', row.seq, `Entry ${row.seq} does not link to the one before it`)
        if (row.seq === checkpoint?.seq) noted = row.hash.toString('hex') === checkpoint.hash.toLowerCase()
        entries++
        last = row
      }
      const head = await readHead(tx, teamId)
      const team = await tx.selectFrom('teams').select('id').where('id', '=', teamId).executeTakeFirst()
      if (!team && !head && !last) throw new Fault('NOT_FOUND', 'There is no such team, and never was')
      checkHead(head, last)
      if (!noted)
        find('checkpoint_mismatch', checkpoint!.seq, `Entry ${checkpoint!.seq} is not the one that was noted`)
      const closed = last?.action === 'TEAM_DELETED'
      if (!team && !closed && teamId !== INSTANCE)
        find('team_mismatch', null, 'The team is gone, and the chain does not end with TEAM_DELETED')
      if (team && closed) find('team_mismatch', null, 'The team is there, although its chain is closed')
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
    if (row.seq === before?.seq) find('fork', row.seq, `There are two entries ${row.seq}`)
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
      find('tail_truncated', seq, `The chain ends at entry ${found}, and its head says ${seq} entries`)
    else if (seq < found || !head.hash.equals(last?.hash ?? genesisHash(teamId)))
      find('head_mismatch', seq, `The head is not that of the last entry, ${found}`)
    if (!isSealed(store, teamId, head))
      find('head_mac_invalid', seq, 'The head is not sealed with a key of this installation')
  }
}

/** The teams that have a chain or should have one: those that are there, those of heads, those of entries. */
export async function listChains(store: Store): Promise<string[]> {
  // Steps from team to team in the index, however many entries each has.
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

/** What the columns of an entry say differently from its hash; undefined where they agree. */
function findFault(row: Row): string | undefined {
  const details = readDetails(row)
  if (!details?.equals(row.detailsSha256))
    return `The details of entry ${row.seq} are not those that were hashed`
  const core = describeCore(row)
  const seq = Buffer.alloc(8)
  seq.writeBigInt64BE(BigInt(row.seq))
  const hash = createHash('sha256')
    .update('audit-v1')
    .update(row.prev)
    .update(seq)
    .update(row.tsText)
    .update(createHash('sha256').update(core).digest())
    .digest()
  // The id is the event's, and the stored core only a copy: neither may say anything else.
  if (hash.equals(row.hash) && core === row.core && row.id === row.eventId) return undefined
  return `Entry ${row.seq} is not the one that was hashed`
}

function readDetails(row: Row): Buffer | undefined {
  try {
    const details: unknown = JSON.parse(row.detailsText)
    if (canonical(details) !== row.detailsText) return undefined
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
