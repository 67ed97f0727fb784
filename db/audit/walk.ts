import { createHash } from 'node:crypto'
import type { Keys } from '../seal.ts'
import { findFault, isBlank, type StoredEntry, type StoredRange } from './entries.ts'
import type { IsErased } from './erasure/erasures.ts'
import { isSigned, quoteKey, reopeningHash, signEntry, signRange } from './signing.ts'

/** What can be wrong with a chain. */
export const VERDICTS = [
  /** The entry's columns do not match its hash. */
  'entry_modified',
  /** The entry matches its hash, but not its signature: it was rewritten, and its hash with it. */
  'entry_forged',
  /** Entries have no signature, although it was not a process of an older release that appended them. */
  'entry_unsigned',
  /** Entries without signatures are no longer those of which the note that they have none was signed. */
  'range_modified',
  /** The details of the entry are gone, and no entry says that they were erased. */
  'details_missing',
  /** The entry does not link to the one before it. */
  'link_broken',
  /** Entries are missing before this one. */
  'gap',
  /** Two entries have the same number. */
  'fork',
  /** The head counts more entries than there are. */
  'tail_truncated',
  /** The head counts fewer entries than there are, or its hash is not that of the last entry. */
  'head_mismatch',
  'head_missing',
  /** The head is not signed with a key of this installation. */
  'head_mac_invalid',
  /** Entries before a break are no longer what they were when the chain was reopened. */
  'segment_modified',
  /** There is no entry with the number and hash that the caller noted, or that a checkpoint has signed. */
  'checkpoint_mismatch',
  /** A checkpoint is not signed by this installation. */
  'checkpoint_invalid',
  /** There are fewer checkpoints than were signed, or more: what was signed of their number says so. */
  'checkpoint_missing',
  /** A purge that the chain does not tell of, or that this installation has not signed. */
  'anchor_invalid',
  /** The chain tells of a purge, but what was signed of it is gone. */
  'anchor_missing',
  /** A public key is not the one that this installation has kept. */
  'key_invalid',
  /**
   * The team is gone without TEAM_DELETED at the end of its chain, or exists although the chain is closed.
   */
  'team_mismatch',
] as const
export type Verdict = (typeof VERDICTS)[number]

export type AuditFinding = { verdict: Verdict; seq: number | null; message: string }

/** A break that the entry `seq` has signed when it reopened the chain. `findings` are those before it, now. */
export type AuditBreak = { seq: number; at: string; details: BreakDetails; findings: AuditFinding[] }

/** What the entry that reopens a chain says: what was found, and who reopened it. */
export type BreakDetails = {
  entries: number
  /** The last entry that there was, and the last one before the first finding. */
  last: Checkpoint | null
  lastGood: Checkpoint | null
  head: Checkpoint | null
  /** A hash of all entries that there were. */
  digest: string
  /** What stands for each checkpoint that was forged: they count no more. Left out if there was none. */
  forged?: string[]
  findings: AuditFinding[]
  by: string
  note: string | null
}

export type Checkpoint = { seq: number; hash: string }

const MAX_FINDINGS = 1_000

/** What is known of a chain besides its entries. */
export type WalkAids = {
  /** The ranges of entries without signatures of their own. */
  ranges: StoredRange[]
  /** Where the chain begins after a purge. */
  base: { seq: number; hash: Buffer }
  /** What the chain says of entries whose details were erased. */
  isErased: IsErased
  /** What was found beside the entries, by the numbers of the entries before which it counts. */
  noted: (AuditFinding & { seq: number })[]
}

/**
 * Checks the entries of a chain one by one, in its order: content, signature, place and link. An entry that
 * has reopened the chain begins a segment: what was found before it is a break from then on.
 */
export function walkChain(keys: Keys, teamId: string, { ranges, base, isErased, noted }: WalkAids) {
  const digest = createHash('sha256')
  // A range that this installation has not signed vouches for nothing.
  const unsigned = ranges.filter((range) =>
    isSigned(keys, range, (id) => signRange(keys, id, { ...range, teamId })),
  )
  const breaks: AuditBreak[] = []
  let findings: AuditFinding[] = []
  let entries = 0
  let erased = 0
  let last: StoredEntry | undefined
  let lastGood: StoredEntry | undefined
  // The first of the entries without a signature that nothing has vouched for yet, and the range to come.
  let bare: number | undefined
  let at = 0
  let place = base
  let seen = 0

  const find = (verdict: Verdict, seq: number | null, message: string) => {
    if (findings.length < MAX_FINDINGS) findings.push({ verdict, seq, message })
  }

  function add(row: StoredEntry): void {
    const fault = findFault(row)
    const signed = row.mac !== null && isEntrySigned(keys, row)
    findNoted(row.seq)
    if (row.seq > place.seq && signed && !fault && isReopening(row)) reopen(row)
    else {
      checkPlace(row)
      if (fault) find('entry_modified', row.seq, fault)
      else if (row.mac && !signed) find('entry_forged', row.seq, describeForged(keys, row))
      if (!row.prev.equals(place.hash))
        find('link_broken', row.seq, `Entry ${row.seq} does not link to the entry before it`)
      checkRange(row)
      if (!fault && isBlank(row)) checkErased(row.seq)
    }
    digest.update(describe(row))
    entries++
    last = row
    place = row
    if (findings.length === 0 && bare === undefined) lastGood = row
  }

  function checkErased(seq: number): void {
    erased++
    const lost = `The details of entry ${seq} are gone, and no entry says that they were erased`
    if (!isErased(seq)) find('details_missing', seq, lost)
  }

  /** Finds what was noted of what lies before an entry, in the order of the chain. */
  function findNoted(before: number): void {
    for (; seen < noted.length && noted[seen]!.seq < before; seen++) {
      const { verdict, seq, message } = noted[seen]!
      find(verdict, seq, message)
    }
  }

  function isReopening(row: StoredEntry): boolean {
    return row.action === 'AUDIT_REOPENED' && row.prev.equals(reopeningHash(teamId, row.seq))
  }

  function reopen(row: StoredEntry): void {
    const details = JSON.parse(row.detailsText!) as BreakDetails
    const same = details.digest === readDigest()
    endBare(same)
    breaks.push({ seq: row.seq, at: row.tsText, details, findings })
    findings = []
    const altered = `Entries before ${row.seq} have been altered since it reopened the chain`
    if (!same) find('segment_modified', row.seq, altered)
  }

  function checkPlace(row: StoredEntry): void {
    const expected = place.seq + 1
    if (row.seq === last?.seq) find('fork', row.seq, `There are two entries with the number ${row.seq}`)
    else if (row.seq !== expected) find('gap', row.seq, `Entries ${expected} to ${row.seq - 1} are missing`)
  }

  /**
   * An entry without a signature must be of version 1, and in a range, or at the end, where the head vouches for it:
   * all that have written version 2 have signed it.
   */
  function checkRange({ seq, hash, mac, v }: StoredEntry): void {
    while (unsigned[at] && unsigned[at]!.toSeq < seq) at++
    const range = unsigned[at]
    const altered = `Entries ${range?.fromSeq} to ${seq} have been altered since they were noted`
    if (range?.toSeq === seq && !range.hash.equals(hash)) find('range_modified', seq, altered)
    if (mac !== null) endBare(false)
    else if (v !== 1) {
      endBare(false)
      find('entry_unsigned', seq, `Entry ${seq} has no signature, although it was written with one`)
    } else if (!range || range.fromSeq > seq) bare ??= seq
  }

  function endBare(vouched: boolean): void {
    const lost = `Entry ${bare} has no signature, and no release without signatures wrote it`
    if (bare !== undefined && !vouched) find('entry_unsigned', bare, lost)
    bare = undefined
  }

  function readDigest(): string {
    return digest.copy().digest('hex')
  }

  return {
    add,
    find,
    /** Ends the walk. `vouched`: the head is signed, and so are the entries behind the last signed one. */
    end(vouched: boolean) {
      findNoted(Number.POSITIVE_INFINITY)
      endBare(vouched)
      if (findings.length === 0) lastGood = last
      return { entries, erased, last, lastGood, breaks, findings, digest: readDigest() }
    },
  }
}

/** Whether this installation has signed the entry, which has a signature. */
function isEntrySigned(keys: Keys, { teamId, seq, tsText, core, mac, keyId }: StoredEntry): boolean {
  return isSigned(keys, { mac: mac!, keyId: keyId ?? '' }, (id) =>
    signEntry(keys, id, { teamId, seq, ts: tsText, core }),
  )
}

function describeForged(keys: Keys, { seq, keyId }: StoredEntry): string {
  return keys.byId.has(keyId ?? '')
    ? `Entry ${seq} is not signed by this installation`
    : `Entry ${seq} is signed with the key ${quoteKey(keyId)}, which is not known here`
}

/** All that is stored of an entry. Digests of it are signed into chains, so that its form must stay. */
function describe(row: StoredEntry): string {
  const hex = (bytes: Buffer | null) => bytes?.toString('hex') ?? null
  return JSON.stringify([
    ...[
      row.id,
      row.seqText,
      hex(row.prev),
      hex(row.hash),
      row.tsText,
      row.teamId,
      row.eventId,
      row.actorKind,
    ],
    ...[row.actorId, row.actorRole, row.actorName, row.action, row.resourceType, row.resourceId, row.outcome],
    ...[row.requestId, row.srcIp, row.detailsText, hex(row.detailsSalt), hex(row.detailsSha256), row.core],
    ...[hex(row.mac), row.keyId],
    ...(isOld(row) ? [] : [row.v, row.userId, row.userAgent, row.accessId]),
  ])
}

/** Whether it is an entry as releases before version 2 have written it. */
function isOld({ v, userId, userAgent, accessId }: StoredEntry): boolean {
  return v === 1 && userId === null && userAgent === null && accessId === null
}
