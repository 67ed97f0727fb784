import { createHash, type Hash } from 'node:crypto'
import type { Keys } from '../../seal.ts'
import { findFault, isBlank, type StoredEntry, type StoredRange } from '../entries.ts'
import type { IsErased } from '../erasure/erasures.ts'
import { isSigned, quoteKey, reopeningHash, signEntry, signRange } from '../signing.ts'

/** The faults that a chain can have. */
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
  /** The digest of each checkpoint that was forged, which then no longer counts. Left out if there was none. */
  forged?: string[]
  findings: AuditFinding[]
  by: string
  note: string | null
}

export type Checkpoint = { seq: number; hash: string }

const MAX_FINDINGS = 1_000

/** The facts about a chain that its entries do not contain. */
export type WalkAids = {
  /** The ranges of entries without signatures of their own. */
  ranges: StoredRange[]
  /** Where the chain begins after a purge. */
  base: { seq: number; hash: Buffer }
  /** What the chain says of entries whose details were erased. */
  isErased: IsErased
  /** The findings outside of the entries, by the numbers of the entries before which they count. */
  noted: (AuditFinding & { seq: number })[]
}

/** The state of a walk along a chain after the entries that were read. */
type Walk = {
  readonly keys: Keys
  readonly teamId: string
  readonly isErased: IsErased
  readonly noted: WalkAids['noted']
  /** How many of `noted` were found so far. */
  seen: number
  /** The ranges that this installation has signed: others vouch for nothing. The one to come is at `at`. */
  readonly unsigned: StoredRange[]
  at: number
  readonly digest: Hash
  readonly breaks: AuditBreak[]
  /** The findings since the last break. */
  findings: AuditFinding[]
  entries: number
  erased: number
  last: StoredEntry | undefined
  lastGood: StoredEntry | undefined
  /** The first of the entries without a signature that nothing has vouched for yet. */
  bare: number | undefined
  /** The entry before the next one, or where the chain begins. */
  place: WalkAids['base']
}

/**
 * Checks the entries of a chain one by one, in its order: content, signature, place and link. An entry that
 * has reopened the chain begins a segment: what was found before it is a break from then on.
 */
export function walkChain(keys: Keys, teamId: string, { ranges, base, isErased, noted }: WalkAids) {
  const unsigned = ranges.filter((range) =>
    isSigned(keys, range, (id) => signRange(keys, id, { ...range, teamId })),
  )
  const walk: Walk = {
    ...{ keys, teamId, isErased, noted, seen: 0, unsigned, at: 0, digest: createHash('sha256') },
    ...{ breaks: [], findings: [], entries: 0, erased: 0, last: undefined, lastGood: undefined },
    ...{ bare: undefined, place: base },
  }
  return {
    add: (row: StoredEntry) => addEntry(walk, row),
    find: (verdict: Verdict, seq: number | null, message: string) => addFound(walk, verdict, seq, message),
    /** Ends the walk. `vouched`: the head is signed, and so are the entries behind the last signed one. */
    end(vouched: boolean) {
      findNoted(walk, Number.POSITIVE_INFINITY)
      endBare(walk, vouched)
      if (walk.findings.length === 0) walk.lastGood = walk.last
      const { entries, erased, last, lastGood, breaks, findings } = walk
      return { entries, erased, last, lastGood, breaks, findings, digest: readDigest(walk) }
    },
  }
}

function addFound({ findings }: Walk, verdict: Verdict, seq: number | null, message: string): void {
  if (findings.length < MAX_FINDINGS) findings.push({ verdict, seq, message })
}

function addEntry(walk: Walk, row: StoredEntry): void {
  const { keys, place } = walk
  const fault = findFault(row)
  const signed = row.mac !== null && isEntrySigned(keys, row)
  findNoted(walk, row.seq)
  if (row.seq > place.seq && signed && !fault && isReopening(walk, row)) reopen(walk, row)
  else {
    checkPlace(walk, row)
    if (fault) addFound(walk, 'entry_modified', row.seq, fault)
    else if (row.mac && !signed) addFound(walk, 'entry_forged', row.seq, describeForged(keys, row))
    if (!row.prev.equals(place.hash))
      addFound(walk, 'link_broken', row.seq, `Entry ${row.seq} does not link to the entry before it`)
    checkRange(walk, row)
    if (!fault && isBlank(row)) checkErased(walk, row.seq)
  }
  walk.digest.update(describe(row))
  walk.entries++
  walk.last = row
  walk.place = row
  if (walk.findings.length === 0 && walk.bare === undefined) walk.lastGood = row
}

function checkErased(walk: Walk, seq: number): void {
  walk.erased++
  const lost = `The details of entry ${seq} are gone, and no entry says that they were erased`
  if (!walk.isErased(seq)) addFound(walk, 'details_missing', seq, lost)
}

/** Finds what was noted of what lies before an entry, in the order of the chain. */
function findNoted(walk: Walk, before: number): void {
  const { noted } = walk
  for (; walk.seen < noted.length && noted[walk.seen]!.seq < before; walk.seen++) {
    const { verdict, seq, message } = noted[walk.seen]!
    addFound(walk, verdict, seq, message)
  }
}

function isReopening({ teamId }: Walk, row: StoredEntry): boolean {
  return row.action === 'AUDIT_REOPENED' && row.prev.equals(reopeningHash(teamId, row.seq))
}

function reopen(walk: Walk, row: StoredEntry): void {
  const details = JSON.parse(row.detailsText!) as BreakDetails
  const same = details.digest === readDigest(walk)
  endBare(walk, same)
  walk.breaks.push({ seq: row.seq, at: row.tsText, details, findings: walk.findings })
  walk.findings = []
  const altered = `Entries before ${row.seq} have been altered since it reopened the chain`
  if (!same) addFound(walk, 'segment_modified', row.seq, altered)
}

function checkPlace(walk: Walk, { seq }: StoredEntry): void {
  const expected = walk.place.seq + 1
  if (seq === walk.last?.seq) addFound(walk, 'fork', seq, `There are two entries with the number ${seq}`)
  else if (seq !== expected) addFound(walk, 'gap', seq, `Entries ${expected} to ${seq - 1} are missing`)
}

/**
 * An entry without a signature must be of version 1, and in a range, or at the end, where the head vouches for it:
 * all that have written version 2 have signed it.
 */
function checkRange(walk: Walk, { seq, hash, mac, v }: StoredEntry): void {
  const { unsigned } = walk
  while (unsigned[walk.at] && unsigned[walk.at]!.toSeq < seq) walk.at++
  const range = unsigned[walk.at]
  const altered = `Entries ${range?.fromSeq} to ${seq} have been altered since they were noted`
  if (range?.toSeq === seq && !range.hash.equals(hash)) addFound(walk, 'range_modified', seq, altered)
  if (mac !== null) endBare(walk, false)
  else if (v !== 1) {
    endBare(walk, false)
    const message = `Entry ${seq} has no signature, although it was written with one`
    addFound(walk, 'entry_unsigned', seq, message)
  } else if (!range || range.fromSeq > seq) walk.bare ??= seq
}

function endBare(walk: Walk, vouched: boolean): void {
  const { bare } = walk
  const lost = `Entry ${bare} has no signature, and no release without signatures wrote it`
  if (bare !== undefined && !vouched) addFound(walk, 'entry_unsigned', bare, lost)
  walk.bare = undefined
}

function readDigest({ digest }: Walk): string {
  return digest.copy().digest('hex')
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
