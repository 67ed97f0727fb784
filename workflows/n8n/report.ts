/** What of a foreign workflow could not be taken over as it was. */
export type ImportProblem = {
  /** The node's display name; null for the workflow itself. */
  node: string | null
  /** Where in the foreign document, or in the node: parameters.url */
  path: string
  kind: ProblemKind
  message: string
  original: unknown
}

export const PROBLEM_KINDS = [
  'node',
  'expression',
  'parameter',
  'credential',
  'secret',
  'setting',
  'connection',
  'items',
  'pinned',
  'note',
] as const
export type ProblemKind = (typeof PROBLEM_KINDS)[number]

/** `mapped`: which node became which. */
export type ImportReport = {
  mapped: { node: string; type: string; id: string; as: string }[]
  problems: ImportProblem[]
  /** Notes on the canvas, which are left out. */
  stickyNotes: number
}

/** Notes one problem of one node. */
export type Complain = (kind: ProblemKind, path: string, message: string, original: unknown) => void
