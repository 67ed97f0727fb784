import { readSpans } from '../erasure/erasures.ts'
import { reopeningHash } from '../signing.ts'
import { judgeExportEntry } from './entry.ts'
import { makeFindings } from './findings.ts'
import type { ExportEntry, ExportHeader } from './lines.ts'
import { type EntryPlace, findInFile, settleEntries, startEntries, type Verifying } from './verifying.ts'

const MAX_BLANK = 2_000_000
/** An entry of the service names far fewer. */
const MAX_NAMED = 10_000
const MAX_BREAKS = 1_000

/** Takes an entry: judges its content, its place and its link, and notes what it tells of others. */
export function takeEntry(verifying: Verifying, asked: ExportHeader, line: ExportEntry): void {
  const { seq, hash, prev, ts } = line
  const { breaks, noted } = verifying
  const before = startEntries(verifying, asked)
  const judged = judgeExportEntry(asked.teamId, line)
  const reopens =
    !judged.fault && judged.action === 'AUDIT_REOPENED' && seq > before.seq && breaks.length < MAX_BREAKS
  if (reopens && prev === reopeningHash(asked.teamId, seq).toString('hex')) {
    settleEntries(verifying, seq)
    breaks.push({ seq, at: ts, signed: false, findings: verifying.findings.list })
    verifying.findings = makeFindings()
  } else {
    checkPlace(verifying, before, seq)
    if (judged.fault !== undefined) findInFile(verifying, 'entry_modified', judged.fault)
    if (before.hash !== undefined && prev !== before.hash)
      findInFile(verifying, 'link_broken', `Entry ${seq} does not link to the entry before it`)
  }
  if (judged.fault === undefined) {
    if (judged.blank) noteBlank(verifying, seq)
    if (judged.action === 'AUDIT_DETAILS_ERASED') noteErasure(verifying, seq, judged.details)
    if (judged.action === 'AUDIT_PURGED') notePurge(verifying, seq, judged.details)
  }
  if (noted?.seq === seq && noted.hash.toLowerCase() === hash) verifying.mark = 'found'
  verifying.first ??= seq
  verifying.entries++
  verifying.place = { seq, hash }
  verifying.last = { seq, hash }
}

function checkPlace(verifying: Verifying, before: EntryPlace, seq: number): void {
  const expected = before.seq + 1
  if (seq === expected) return
  if (seq === before.seq) findInFile(verifying, 'fork', `There are two entries with the number ${seq}`)
  else if (seq > expected) findInFile(verifying, 'gap', `Entries ${expected} to ${seq - 1} are missing`)
  else findInFile(verifying, 'reordered', `Entry ${seq} comes behind entry ${before.seq}`)
}

function noteBlank(verifying: Verifying, seq: number): void {
  verifying.erased++
  if (verifying.blank.size < MAX_BLANK) verifying.blank.add(seq)
  else {
    const message = `The details of entry ${seq} are gone, as those of too many others`
    findInFile(verifying, 'details_missing', message)
  }
}

function noteErasure({ blank }: Verifying, seq: number, details: unknown): void {
  const spans = readSpans(details, seq)
  const named = spans.reduce((sum, [from, to]) => sum + to - from + 1, 0)
  if (named > MAX_NAMED) return
  for (const [from, to] of spans) for (let at = from; at <= to; at++) blank.delete(at)
}

function notePurge(verifying: Verifying, seq: number, details: unknown): void {
  const { toSeq, lastHash } = (details ?? {}) as { toSeq?: unknown; lastHash?: unknown }
  if (toSeq === undefined || toSeq === null) return
  const anchor = verifying.anchorOf.get(seq)
  if (anchor) anchor.told = anchor.baseSeq === toSeq && anchor.baseHash === lastHash
  else {
    const message = `Entry ${seq} tells of a purge, but its anchor is missing`
    findInFile(verifying, 'anchor_missing', message)
  }
}
