/** The faults that an export can have. Those of the same name as in a chain mean the same. */
export type FileVerdict =
  /** The line is not one of an export: it is too long, no JSON, or written in another way. */
  | 'line_invalid'
  /** The line is not where it belongs, or speaks of something else: another team, another count. */
  | 'file_mismatch'
  /** The file has no last line: it was cut, or it is not complete. */
  | 'file_truncated'
  | 'entry_modified'
  | 'details_missing'
  | 'link_broken'
  | 'gap'
  | 'fork'
  /** The entry has a lower number than the one before it. */
  | 'reordered'
  | 'checkpoint_mismatch'
  | 'checkpoint_invalid'
  /** The end of the chain is not signed, or not with a key that the caller has noted. */
  | 'checkpoint_missing'
  | 'anchor_invalid'
  | 'anchor_missing'

export type FileFinding = { verdict: FileVerdict; line: number; message: string }

/** Findings in the order of the file, of which the first 1,000 are kept; `count` counts all. */
export type FileFindings = { list: FileFinding[]; count: number }

const MAX_FINDINGS = 1_000

export function makeFindings(): FileFindings {
  return { list: [], count: 0 }
}

export function addFinding(
  findings: FileFindings,
  verdict: FileVerdict,
  line: number,
  message: string,
): void {
  findings.count++
  if (findings.list.length < MAX_FINDINGS) findings.list.push({ verdict, line, message })
}
