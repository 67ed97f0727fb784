import type { KeyObject } from 'node:crypto'
import { checkpointText } from '../checkpoints.ts'
import { readSpans } from '../erasure/erasures.ts'
import { anchorText } from '../retention/anchors.ts'
import { genesisHash, reopeningHash } from '../signing.ts'
import type { Checkpoint } from '../walk.ts'
import { judgeExportEntry } from './entry.ts'
import { type FileLine, readFileLines } from './filelines.ts'
import {
  addFinding,
  type FileFinding,
  type FileFindings,
  type FileVerdict,
  makeFindings,
} from './findings.ts'
import {
  type ExportAnchor,
  type ExportCheckpoint,
  type ExportEnd,
  type ExportEntry,
  type ExportHeader,
  readExportLine,
} from './lines.ts'
import { type ExportKey, type ExportTrust, makeTrust, type Signer } from './trust.ts'

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

const MAX_BLANK = 2_000_000
/** An entry of the service names far fewer. */
const MAX_NAMED = 10_000
const MAX_ANCHORS = 20_000
const MAX_BREAKS = 1_000

/**
 * Verifies an export without the service: hashes, links, numbers, signatures and its completeness. `keys` are the
 * public keys that the caller has noted: without them those of the export are taken, so that somebody who has written
 * all of it anew is not found out. `noted` is an entry that the caller has noted. Reads line by line, and takes whatever
 * the file says as said by somebody who wants to deceive. Throws only what reading the bytes throws.
 */
export async function verifyExport(
  bytes: AsyncIterable<Uint8Array>,
  options: { keys?: KeyObject[] | undefined; noted?: Checkpoint | undefined } = {},
): Promise<ExportVerification> {
  const verifier = createVerifier(options)
  for await (const line of readFileLines(bytes)) if (!verifier.take(line)) break
  return verifier.end()
}

type Place = { seq: number; hash: string | undefined }
type KnownAnchor = ExportAnchor & { signer: Signer; told: boolean }

function createVerifier({ keys, noted }: { keys?: KeyObject[] | undefined; noted?: Checkpoint | undefined }) {
  let header: ExportHeader | undefined
  let trust: ExportTrust | undefined
  let findings: FileFindings = makeFindings()
  const breaks: FileBreak[] = []
  const anchors: KnownAnchor[] = []
  const anchorOf = new Map<number, KnownAnchor>()
  const blank = new Set<number>()
  /** Where the entries begin, and where they are; undefined until the first one. */
  let begin: (Place & { partial: boolean }) | undefined
  let place: Place | undefined
  let last: Checkpoint | undefined
  let first: number | null = null
  let ended: ExportEnd | undefined
  let signed: ExportVerification['signed'] = null
  const counts = { entries: 0, erased: 0, others: 0, lines: 0 }
  let mark: 'found' | 'missing' | null = noted ? 'missing' : null

  const find = (verdict: FileVerdict, message: string) => addFinding(findings, verdict, counts.lines, message)

  /** Takes the next line. Returns false if there is no point in reading on. */
  function take({ number, text, fault }: FileLine): boolean {
    counts.lines = number
    const line = text === undefined ? undefined : readExportLine(text)
    if (!line) {
      find('line_invalid', `Line ${number} ${fault ?? 'is not written as exports are'}`)
      return header !== undefined
    }
    if (!header || !trust) {
      if (line.type === 'header') {
        header = line
        trust = makeTrust(line, keys)
        return true
      }
      find('file_mismatch', 'The file does not begin with the first line of an export')
      return false
    }
    if (ended) find('file_mismatch', `Line ${number} is behind the last line of the export`)
    else if (line.type === 'header') find('file_mismatch', `Line ${number} begins another export`)
    else if (line.type === 'end') takeEnd(line)
    else if (line.type === 'entry') takeEntry(header, line)
    else if (line.teamId !== header.teamId) find('file_mismatch', `Line ${number} is about another team`)
    else if (line.type === 'anchor') takeAnchor(trust, line)
    else takeCheckpoint(header, trust, line)
    return true
  }

  function takeAnchor({ judge }: ExportTrust, line: ExportAnchor): void {
    if (place) {
      find('file_mismatch', `Line ${counts.lines} must be before the entries`)
      return
    }
    const { type: _type, signature, keyId, ...row } = line
    const signer = judge(keyId, anchorText({ ...row, baseHash: Buffer.from(row.baseHash, 'hex') }), signature)
    if (signer !== 'nobody' && anchors.length < MAX_ANCHORS) {
      const anchor = { ...line, signer, told: false }
      anchors.push(anchor)
      anchorOf.set(line.purgeSeq, anchor)
    } else find('anchor_invalid', `The anchor of the purge up to entry ${row.baseSeq} is not signed`)
  }

  /** Where the entries begin: behind the last purge, at the very first, or where the export was asked to. */
  function start({ teamId, from }: ExportHeader): Place {
    if (place) return place
    const purged = anchors.toSorted((a, b) => a.baseSeq - b.baseSeq).at(-1)
    const base = purged
      ? { seq: purged.baseSeq, hash: purged.baseHash }
      : { seq: 0, hash: genesisHash(teamId).toString('hex') }
    const partial = from > base.seq + 1
    begin = partial ? { seq: from - 1, hash: undefined, partial } : { ...base, partial }
    place = { seq: begin.seq, hash: begin.hash }
    if (noted && noted.seq === place.seq && noted.hash.toLowerCase() === place.hash) mark = 'found'
    return place
  }

  function takeEntry(asked: ExportHeader, line: ExportEntry): void {
    const { seq, hash, prev, ts } = line
    const before = start(asked)
    const judged = judgeExportEntry(asked.teamId, line)
    const reopens =
      !judged.fault && judged.action === 'AUDIT_REOPENED' && seq > before.seq && breaks.length < MAX_BREAKS
    if (reopens && prev === reopeningHash(asked.teamId, seq).toString('hex')) {
      settle(seq)
      breaks.push({ seq, at: ts, signed: false, findings: findings.list })
      findings = makeFindings()
    } else {
      checkPlace(before, seq)
      if (judged.fault !== undefined) find('entry_modified', judged.fault)
      if (before.hash !== undefined && prev !== before.hash)
        find('link_broken', `Entry ${seq} does not link to the entry before it`)
    }
    if (judged.fault === undefined) {
      if (judged.blank) noteBlank(seq)
      if (judged.action === 'AUDIT_DETAILS_ERASED') noteErasure(seq, judged.details)
      if (judged.action === 'AUDIT_PURGED') notePurge(seq, judged.details)
    }
    if (noted?.seq === seq && noted.hash.toLowerCase() === hash) mark = 'found'
    first ??= seq
    counts.entries++
    place = { seq, hash }
    last = { seq, hash }
  }

  function checkPlace(before: Place, seq: number): void {
    const expected = before.seq + 1
    if (seq === expected) return
    if (seq === before.seq) find('fork', `There are two entries with the number ${seq}`)
    else if (seq > expected) find('gap', `Entries ${expected} to ${seq - 1} are missing`)
    else find('reordered', `Entry ${seq} comes behind entry ${before.seq}`)
  }

  function noteBlank(seq: number): void {
    counts.erased++
    if (blank.size < MAX_BLANK) blank.add(seq)
    else find('details_missing', `The details of entry ${seq} are gone, as those of too many others`)
  }

  function noteErasure(seq: number, details: unknown): void {
    const spans = readSpans(details, seq)
    const named = spans.reduce((sum, [from, to]) => sum + to - from + 1, 0)
    if (named > MAX_NAMED) return
    for (const [from, to] of spans) for (let at = from; at <= to; at++) blank.delete(at)
  }

  function notePurge(seq: number, details: unknown): void {
    const { toSeq, lastHash } = (details ?? {}) as { toSeq?: unknown; lastHash?: unknown }
    if (toSeq === undefined || toSeq === null) return
    const anchor = anchorOf.get(seq)
    if (!anchor) find('anchor_missing', `Entry ${seq} tells of a purge, but its anchor is missing`)
    else anchor.told = anchor.baseSeq === toSeq && anchor.baseHash === lastHash
  }

  /** Finds what no entry before `end` has told of. */
  function settle(end: number): void {
    for (const { purgeSeq, baseSeq, told } of anchors) {
      if (told || first === null || purgeSeq < first || purgeSeq >= end) continue
      if (breaks.some(({ seq }) => seq > purgeSeq)) continue
      find('anchor_invalid', `There is no entry ${purgeSeq} that tells of the purge up to entry ${baseSeq}`)
    }
    for (const seq of blank)
      find('details_missing', `The details of entry ${seq} are gone, and no entry says that they were erased`)
    blank.clear()
  }

  function takeCheckpoint(asked: ExportHeader, { judge }: ExportTrust, line: ExportCheckpoint): void {
    const { seq, hash, at, keyId, signature } = line
    const before = start(asked)
    const signer = judge(keyId, checkpointText({ ...line, hash: Buffer.from(hash, 'hex') }), signature)
    if (signer === 'nobody') {
      find('checkpoint_invalid', `The checkpoint of entry ${seq} is not signed`)
      return
    }
    // What a checkpoint has signed is where a partial export begins.
    if (begin!.partial && first === null && seq === before.seq) before.hash ??= hash
    if (first === null && seq < before.seq) return
    if (seq !== before.seq || hash !== before.hash)
      find('checkpoint_mismatch', `There is no entry ${seq} here with the hash that a checkpoint has signed`)
    else if (signer === 'other') counts.others++
    else if (first !== null) {
      signed = { seq, at, keyId }
      for (const found of breaks) found.signed = true
    }
  }

  function takeEnd(line: ExportEnd): void {
    ended = line
    if (line.entries !== counts.entries || line.last?.seq !== last?.seq || line.last?.hash !== last?.hash)
      find('file_mismatch', `The last line counts ${line.entries} entries, but there are ${counts.entries}`)
  }

  function end(): ExportVerification {
    const partial = { before: begin?.partial ?? false, behind: header?.to != null }
    if (header) checkEnd(header)
    else if (findings.count === 0) find('file_truncated', 'There is nothing in the file')
    const unnamed = partial.behind ? blank.size : 0
    if (partial.behind) blank.clear()
    if (header) settle((last?.seq ?? 0) + 1)
    const outside =
      mark === 'missing' &&
      noted !== undefined &&
      (noted.seq <= (begin?.seq ?? 0) || isBehind(noted.seq, partial))
    if (mark === 'missing' && !outside)
      find('checkpoint_mismatch', `There is no entry ${noted!.seq} with the hash that was noted`)
    return {
      ...{ teamId: header?.teamId ?? null, exportedAt: header?.exportedAt ?? null },
      ...{ entries: counts.entries, first, last: last ?? null, partial },
      ...{
        purgedUpTo: anchors.reduce((most, { baseSeq }) => Math.max(most, baseSeq), 0),
        erased: counts.erased,
        unnamed,
      },
      ...{
        breaks,
        signed,
        others: counts.others,
        keys: trust?.keys ?? [],
        noted: outside ? 'outside' : mark,
      },
      ...{ findings: findings.list, count: findings.count },
    }
  }

  function isBehind(seq: number, { behind }: ExportVerification['partial']): boolean {
    return behind && seq > (last?.seq ?? 0)
  }

  function checkEnd({ to }: ExportHeader): void {
    if (!ended) find('file_truncated', 'The last line of the export is missing: the file is not complete')
    const whose = keys ? 'with a key that you have noted' : 'by a checkpoint'
    // A part may be empty; what it has must be signed as well, or its end could be written by anybody.
    if (last ? signed?.seq !== last.seq : to === null || keys)
      find('checkpoint_missing', `The last entry, ${last?.seq ?? 'none'}, is not signed ${whose}`)
    for (const { seq, signed: covered } of breaks)
      if (!covered)
        find('checkpoint_missing', `Entry ${seq}, which has reopened the chain, is not signed ${whose}`)
    const base = anchors.find(({ baseSeq }) => baseSeq === begin?.seq)
    const proven = base?.told && (signed?.seq ?? 0) >= base.purgeSeq
    if (base?.signer === 'other' && !proven)
      find('anchor_invalid', `The purge up to entry ${base.baseSeq} is not signed ${whose}`)
  }

  return { take, end }
}
