/** Something in an n8n workflow that is not the same after the import. */
export type ImportProblem = {
  /** The node's name; null for the workflow itself. */
  node: string | null
  /** Where in the document, or inside of the node: parameters.url */
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

export type ImportReport = {
  /** By node: `type` is its type in n8n; `id` and `as` are its id and its type here. */
  mapped: { node: string; type: string; id: string; as: string }[]
  problems: ImportProblem[]
  /** How many notes on the canvas were left out. */
  stickyNotes: number
}

/** Adds a problem of one node, or of the workflow, to the report. */
export type ProblemReporter = (kind: ProblemKind, path: string, message: string, original: unknown) => void

/** Reports that n8n has an option, the last key of `path`, that Perdure does not have. */
export function reportMissingOption(report: ProblemReporter, path: string, value: unknown): void {
  const name = path.split('.').at(-1)
  const message =
    `Perdure has no option like n8n's "${name}" for this node, so it was left out: check that the node ` +
    'works without it.'
  report('parameter', path, message, value)
}
