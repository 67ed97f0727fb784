import type { NeededCredential } from './signins/needed.ts'

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
  'trigger',
  'expression',
  'parameter',
  'credential',
  'secret',
  'moved',
  'setting',
  'connection',
  'items',
  'pinned',
  'note',
] as const
type ProblemKind = (typeof PROBLEM_KINDS)[number]

export type ImportReport = {
  /** By node: `type` is its type in n8n; `id` and `as` are its id and its type here. */
  mapped: MappedReport[]
  problems: ImportProblem[]
  /** How many notes of the canvas have come along. */
  stickyNotes: number
  totals: { nodes: number; works: number; noted: number; stopped: number }
  groups: ProblemGroup[]
  credentials: CredentialReport[]
}

/**
 * One of n8n's credentials, which never come along. `key` names it in the request of the import, `credentialId` is the
 * one of ours that the request names. `as` is the type of ours to make for it, if there is one, with `data` and what
 * `enter` says; `accepts` are all that will do. `nodes` need it, by their names in n8n.
 */
export type CredentialReport = Pick<
  NeededCredential,
  'key' | 'id' | 'name' | 'type' | 'as' | 'data' | 'enter' | 'nodes' | 'credentialId'
> & { accepts: string[] }

/** `state`: it does what it did in n8n, it does but there is a note about it, or it stops the execution. */
type MappedReport = {
  node: string
  type: string
  id: string
  as: string
  state: (typeof NODE_STATES)[number]
}
export const NODE_STATES = ['works', 'noted', 'stopped'] as const

/** Problems that the same thing has to be done about; reports of the releases before have no causes. */
type ProblemGroup = {
  kind: ProblemKind
  action: string
  nodes: string[]
  count: number
  causes?: ProblemCause[]
}

/** Problems that differ only in names: `types` are those of their nodes in n8n, `cause` says what is wrong, and the way out. */
type ProblemCause = { cause: string; types: string[]; nodes: string[]; count: number }

const ACTIONS: Record<ProblemKind, string> = {
  node: 'Replace these nodes: they stop the execution.',
  trigger: 'Start the workflow in another way: Perdure has no such trigger.',
  expression: 'Write these expressions anew: the nodes fail when they need them.',
  credential: 'Set what the services and callers of these nodes need: credentials are not imported.',
  secret: 'Set these secrets again: they are not exported.',
  moved: 'Nothing has to be done: secrets that were written into these nodes are in credentials now.',
  parameter: 'Check that these nodes work without the options that were left out.',
  setting: 'Check the settings that were left out.',
  connection: 'Connect these nodes in another way.',
  items: 'Check the nodes that work on items in another way.',
  pinned: 'Pass the pinned data when you try the workflow out.',
  note: 'Read the notes.',
}

/** Kinds that change nothing in what a node does. */
const SILENT: ReadonlySet<ProblemKind> = new Set(['pinned', 'moved'])

/** Adds the totals and the groups to a report, and each node's state. */
export function completeReport(report: Omit<ImportReport, 'totals' | 'groups'>): ImportReport {
  const noted = new Set(report.problems.filter(({ kind }) => !SILENT.has(kind)).map(({ node }) => node))
  const stopped = new Set(report.problems.filter(({ kind }) => kind === 'node').map(({ node }) => node))
  const mapped = report.mapped.map((one) => {
    const state = stopped.has(one.node) ? 'stopped' : noted.has(one.node) ? 'noted' : one.state
    return { ...one, state }
  })
  const count = (state: MappedReport['state']) => mapped.filter((one) => one.state === state).length
  const totals = {
    nodes: mapped.length,
    works: count('works'),
    noted: count('noted'),
    stopped: count('stopped'),
  }
  const groups = PROBLEM_KINDS.flatMap((kind) => {
    const problems = report.problems.filter((problem) => problem.kind === kind)
    if (problems.length === 0) return []
    const causes = listCauses(problems, report.mapped)
    return [{ kind, action: ACTIONS[kind], nodes: listNodes(problems), count: problems.length, causes }]
  })
  return { ...report, mapped, totals, groups }
}

const listNodes = (problems: ImportProblem[]) => [...new Set(problems.flatMap(({ node }) => node ?? []))]

/** A message without the names in it: problems with equal ones have one cause. */
export function nameCause(message: string): string {
  return message.replaceAll(/"[^"]*"/g, '"..."')
}

/** The causes of problems of one kind, those of the most problems first. */
function listCauses(problems: ImportProblem[], mapped: MappedReport[]): ProblemCause[] {
  const typeOf = new Map(mapped.map(({ node, type }) => [node, type]))
  const alike = Map.groupBy(problems, ({ message }) => nameCause(message))
  const causes = [...alike].map(([general, own]) => {
    const nodes = listNodes(own)
    const isSame = own.every(({ message }) => message === own[0]!.message)
    return {
      cause: isSame ? own[0]!.message : general,
      types: [...new Set(nodes.flatMap((node) => typeOf.get(node) ?? []))],
      nodes,
      count: own.length,
    }
  })
  return causes.sort((a, b) => b.count - a.count)
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
