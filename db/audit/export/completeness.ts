import type { ExportHeader } from './lines.ts'
import { type ExportVerification, findInFile, settleEntries, type Verifying } from './verifying.ts'

/** Finds what is missing now that the file is at its end, and says what the verification has found. */
export function endVerification(verifying: Verifying): ExportVerification {
  const { header, begin, first, last, blank, breaks, anchors, noted, mark } = verifying
  const partial = { before: begin?.partial ?? false, behind: header?.to != null }
  if (header) checkEnd(verifying, header)
  else if (verifying.findings.count === 0)
    findInFile(verifying, 'file_truncated', 'There is nothing in the file')
  const unnamed = partial.behind ? blank.size : 0
  if (partial.behind) blank.clear()
  if (header) settleEntries(verifying, (last?.seq ?? 0) + 1)
  const outside =
    mark === 'missing' &&
    noted !== undefined &&
    (noted.seq <= (begin?.seq ?? 0) || (partial.behind && noted.seq > (last?.seq ?? 0)))
  if (mark === 'missing' && !outside) {
    const message = `There is no entry ${noted!.seq} with the hash that was noted`
    findInFile(verifying, 'checkpoint_mismatch', message)
  }
  return {
    ...{ teamId: header?.teamId ?? null, exportedAt: header?.exportedAt ?? null },
    ...{ entries: verifying.entries, first, last: last ?? null, partial },
    purgedUpTo: anchors.reduce((most, { baseSeq }) => Math.max(most, baseSeq), 0),
    ...{ erased: verifying.erased, unnamed, breaks, signed: verifying.signed, others: verifying.others },
    keys: verifying.trust?.keys ?? [],
    noted: outside ? 'outside' : mark,
    ...{ findings: verifying.findings.list, count: verifying.findings.count },
  }
}

function checkEnd(verifying: Verifying, { to }: ExportHeader): void {
  const { ended, keys, last, signed, breaks, anchors, begin } = verifying
  if (!ended)
    findInFile(
      verifying,
      'file_truncated',
      'The last line of the export is missing: the file is not complete',
    )
  const by = keys ? 'with a key that you have noted' : 'by a checkpoint'
  // A part may be empty; its end must be signed as well, or it could have been forged.
  if (last ? signed?.seq !== last.seq : to === null || keys) {
    const message = `The last entry, ${last?.seq ?? 'none'}, is not signed ${by}`
    findInFile(verifying, 'checkpoint_missing', message)
  }
  for (const { seq, signed: covered } of breaks) {
    const message = `Entry ${seq}, which has reopened the chain, is not signed ${by}`
    if (!covered) findInFile(verifying, 'checkpoint_missing', message)
  }
  const base = anchors.find(({ baseSeq }) => baseSeq === begin?.seq)
  const proven = base?.told && (signed?.seq ?? 0) >= base.purgeSeq
  if (base?.signer === 'other' && !proven) {
    const message = `The purge up to entry ${base.baseSeq} is not signed ${by}`
    findInFile(verifying, 'anchor_invalid', message)
  }
}
