import type { KeyObject } from 'node:crypto'
import { genesisHash } from '../signing.ts'
import type { Checkpoint } from '../verify/walk.ts'
import {
  addFinding,
  type FileFinding,
  type FileFindings,
  type FileVerdict,
  makeFindings,
} from './findings.ts'
import type { ExportAnchor, ExportEnd, ExportHeader } from './lines.ts'
import type { ExportKey, ExportTrust, Signer } from './trust.ts'

/** An entry that has reopened the chain. `signed`: a trusted checkpoint behind it covers it. */
type FileBreak = { seq: number; at: string; signed: boolean; findings: FileFinding[] }

export type ExportVerification = {
  /** Null if the file does not begin as an export. */
  teamId: string | null
  exportedAt: string | null
  entries: number
  first: number | null
  last: Checkpoint | null
  /** The export was asked for from a later entry, or up to an earlier one: nothing is known of the others. */
  partial: { before: boolean; behind: boolean }
  /** Entries up to this one were purged; 0 if none were. */
  purgedUpTo: number
  erased: number
  /** Entries without details, of which an entry behind the end of a partial export may tell. */
  unnamed: number
  breaks: FileBreak[]
  /** The last entry that a trusted checkpoint covers; null if none does. */
  signed: { seq: number; at: string; keyId: string } | null
  /** Checkpoints that are signed with keys of the export which the caller has not noted. */
  others: number
  keys: ExportKey[]
  noted: 'found' | 'missing' | 'outside' | null
  /** The first 1,000 findings since the last break, in the order of the file, of `count`. */
  findings: FileFinding[]
  count: number
}

/** An entry's number and hash; where a partial export begins, the hash is not known. */
export type EntryPlace = { seq: number; hash: string | undefined }

/** A purge's anchor. `told`: the entry of the purge tells the same. */
type KnownAnchor = ExportAnchor & { signer: Signer; told: boolean }

/** The state of the verification after the lines that were read. */
export type Verifying = {
  /** What the caller has noted; see verifyExport. */
  readonly keys: KeyObject[] | undefined
  readonly noted: Checkpoint | undefined
  /** Whether the noted entry was found; null if none was noted. */
  mark: 'found' | 'missing' | null
  /** The number of the line that was read last. */
  line: number
  header: ExportHeader | undefined
  trust: ExportTrust | undefined
  /** The findings since the last break; earlier ones are with the breaks. */
  findings: FileFindings
  readonly breaks: FileBreak[]
  readonly anchors: KnownAnchor[]
  /** The anchors by the numbers of the entries of their purges. */
  readonly anchorOf: Map<number, KnownAnchor>
  /** The entries without details of which no entry has told yet. */
  readonly blank: Set<number>
  /** Where the entries begin, and where they are; undefined until the first one. */
  begin: (EntryPlace & { partial: boolean }) | undefined
  place: EntryPlace | undefined
  first: number | null
  last: Checkpoint | undefined
  ended: ExportEnd | undefined
  signed: ExportVerification['signed']
  entries: number
  erased: number
  /** How many checkpoints are signed with keys of the export which the caller has not noted. */
  others: number
}

export function createVerifying({ keys, noted }: Partial<Pick<Verifying, 'keys' | 'noted'>>): Verifying {
  return {
    ...{ keys, noted, mark: noted ? 'missing' : null, line: 0, header: undefined, trust: undefined },
    ...{ findings: makeFindings(), breaks: [], anchors: [], anchorOf: new Map(), blank: new Set() },
    ...{ begin: undefined, place: undefined, first: null, last: undefined, ended: undefined, signed: null },
    ...{ entries: 0, erased: 0, others: 0 },
  }
}

/** Notes what was found at the line that was read last. */
export function findInFile({ findings, line }: Verifying, verdict: FileVerdict, message: string): void {
  addFinding(findings, verdict, line, message)
}

/** Where the entries begin: behind the last purge, at the very first, or where the export was asked to. */
export function startEntries(verifying: Verifying, { teamId, from }: ExportHeader): EntryPlace {
  if (verifying.place) return verifying.place
  const { anchors, noted } = verifying
  const purged = anchors.toSorted((a, b) => a.baseSeq - b.baseSeq).at(-1)
  const base = purged
    ? { seq: purged.baseSeq, hash: purged.baseHash }
    : { seq: 0, hash: genesisHash(teamId).toString('hex') }
  const partial = from > base.seq + 1
  const begin = partial ? { seq: from - 1, hash: undefined, partial } : { ...base, partial }
  const place = { seq: begin.seq, hash: begin.hash }
  Object.assign(verifying, { begin, place })
  if (noted && noted.seq === place.seq && noted.hash.toLowerCase() === place.hash) verifying.mark = 'found'
  return place
}

/** Finds what no entry before `end` has told of. */
export function settleEntries(verifying: Verifying, end: number): void {
  const { anchors, first, breaks, blank } = verifying
  for (const { purgeSeq, baseSeq, told } of anchors) {
    if (told || first === null || purgeSeq < first || purgeSeq >= end) continue
    if (breaks.some(({ seq }) => seq > purgeSeq)) continue
    const message = `There is no entry ${purgeSeq} that tells of the purge up to entry ${baseSeq}`
    findInFile(verifying, 'anchor_invalid', message)
  }
  for (const seq of blank) {
    const message = `The details of entry ${seq} are gone, and no entry says that they were erased`
    findInFile(verifying, 'details_missing', message)
  }
  blank.clear()
}
