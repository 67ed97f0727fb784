import type { Completion, CompletionContext, CompletionResult } from '@codemirror/autocomplete'
import type { EditorView } from '@codemirror/view'
import { isAsked } from '../kit/code/completing.ts'
import { type listBefore, nodePath, type ReadPlace, readSource } from '../nodeform/run.ts'
import { FUNCTIONS } from './functions.ts'
import { isInside, isQuoted } from './language.ts'

export type Reach = {
  mode: 'template' | 'whole'
  language: 'text' | 'sql' | 'javascript'
  place: ReadPlace | undefined
  before: ReturnType<typeof listBefore>
  /** The list whose items `$item` is, or true in a loop. */
  items: string | true | undefined
  /** The fields that a variable has in every run. */
  foresee: (root: string) => Record<string, unknown>
}

/** `$nodes.fetch.body[0].na`: a root, its steps, and the word that is being written. */
const PATH = /(?<![\w$])(?:\$\w*|[A-Za-z_]\w*|`[^`]*`)(?:\.(?:\w*|`[^`]*`?)|\[\d+\])*$/
/** Words of the language, which no field's name replaces while they are typed. */
const WORDS = new Set(['true', 'false', 'null', 'and', 'or', 'in', 'function'])
const STEP = /\.(?:(\w+)|`([^`]*)`)|\[(\d+)\]/g

/** Variables, nodes, the keys of the last run's data at every depth, and functions. */
export async function complete(context: CompletionContext, reach: Reach): Promise<CompletionResult | null> {
  const text = context.state.doc.toString()
  if (!isInside(text, context.pos, reach.mode) || isQuoted(text, context.pos)) return null
  const line = context.state.doc.lineAt(context.pos)
  const written = PATH.exec(text.slice(line.from, context.pos))?.[0] ?? ''
  const asked = isAsked(context.state)
  if (!asked && (written === '' || WORDS.has(written))) return null
  const dot = lastStep(written)
  const word = written.slice(dot + 1)
  const from = context.pos - word.length
  if (dot < 0) {
    const isScript = reach.language === 'javascript'
    // The names of a program's own variables are not known.
    if (isScript && !word.startsWith('$') && !asked) return null
    const fields = word.startsWith('$') || isScript ? [] : listKeys(await readRoot('$input', reach))
    // Programs have the functions of JavaScript.
    const bare = isScript ? [] : [...fields, ...listFunctions()]
    return { from, options: [...listVariables(reach), ...bare], validFor: /^\$?\w*$/ }
  }
  const options = await listSteps(written.slice(0, dot), reach)
  return options.length > 0 ? { from, options, validFor: /^[^`.[\]()]*$/ } : null
}

/** The place of the dot before the last word, outside of backticks. */
function lastStep(written: string): number {
  let quoted = false
  let found = -1
  for (const [at, char] of [...written].entries()) {
    if (char === '`') quoted = !quoted
    else if (char === '.' && !quoted) found = at
  }
  return found
}

async function listSteps(path: string, reach: Reach): Promise<Completion[]> {
  const [root = ''] = /^(\$\w*|[A-Za-z_]\w*|`[^`]*`)/.exec(path) ?? []
  const steps = [...path.slice(root.length).matchAll(STEP)].map(
    ([, plain, quoted, at]) => plain ?? quoted ?? Number(at),
  )
  if (root === '$nodes') {
    if (steps.length === 0) return reach.before.map((node) => tellNode(node))
    const node = reach.before.find(({ id }) => id === steps[0])
    return node ? listKeys(follow(await readRoot(nodePath(node.id), reach), steps.slice(1))) : []
  }
  if (root.startsWith('$')) return listKeys(follow(await readRoot(root, reach), steps))
  return listKeys(follow(await readRoot('$input', reach), [root.replaceAll('`', ''), ...steps]))
}

/** What a variable was in the last run, with what it has in every run. */
async function readRoot(root: string, reach: Reach): Promise<unknown> {
  const known = reach.foresee(root)
  const value = await readLast(root, reach)
  const bare = value === undefined || value === null
  return bare || (typeof value === 'object' && !Array.isArray(value)) ? { ...known, ...value } : value
}

async function readLast(root: string, { place, items }: Reach): Promise<unknown> {
  if (!place) return undefined
  if (root === '$json') return readSource(place, '$input')
  if (root === '$item' && typeof items === 'string') return readSource(place, `$append([], ${items})[0]`)
  return readSource(place, root)
}

/** What a path leads to; a step over a list is one over its items, as in JSONata. */
function follow(value: unknown, steps: readonly (string | number)[]): unknown {
  let now = value
  for (const step of steps) {
    if (typeof step === 'number') now = Array.isArray(now) ? now[step] : undefined
    else now = fold(now)[step]
  }
  return now
}

/** How many items of a list are looked at for their keys. */
const LOOKED_AT = 20

function fold(value: unknown): Record<string, unknown> {
  const items = Array.isArray(value) ? value.slice(0, LOOKED_AT) : [value]
  const objects = items.filter(
    (one): one is object => typeof one === 'object' && one !== null && !Array.isArray(one),
  )
  return Object.fromEntries(objects.flatMap((one) => Object.entries(one)))
}

function listKeys(value: unknown): Completion[] {
  return Object.entries(fold(value)).map(([key, inner]) => {
    const text = JSON.stringify(inner) ?? ''
    const plain = /^[A-Za-z_]\w*$/.test(key)
    return {
      label: key,
      // The backticks that were typed are replaced with the word.
      apply: plain ? key : `\`${key}\``,
      type: 'property',
      detail: text.length > 40 ? `${text.slice(0, 40)}…` : text,
      boost: 2,
    }
  })
}

const VARIABLES: readonly (readonly [label: string, hint: string])[] = [
  ['$input', 'What comes into this node'],
  ['$nodes', 'The outputs of nodes before it'],
  ['$trigger', 'What the execution was started with'],
  ['$vars', 'The variables of the team'],
  ['$execution', 'This execution: id, workflowName, startedAt …'],
]
const OF_ITEMS: typeof VARIABLES = [
  ['$item', 'The item of this turn'],
  ['$index', 'Its number, from 0'],
]

function listVariables({ items }: Reach): Completion[] {
  const all = items === undefined ? VARIABLES : [...VARIABLES, ...OF_ITEMS]
  return all.map(([label, detail]) => ({ label, detail, type: 'variable', boost: 3 }))
}

function tellNode({ id, name, type }: Reach['before'][number]): Completion {
  return { label: nodePath(id).slice('$nodes.'.length), detail: name || type, type: 'class', boost: 2 }
}

function listFunctions(): Completion[] {
  return FUNCTIONS.map(([call, info]) => {
    const name = call.slice(0, call.indexOf('('))
    return { label: name, detail: call.slice(name.length), info, type: 'function', apply: applyCall }
  })
}

/** The cursor is between the parentheses after it. */
function applyCall(view: EditorView, { label }: Completion, from: number, to: number): void {
  view.dispatch({
    changes: { from, to, insert: `${label}()` },
    selection: { anchor: from + label.length + 1 },
    userEvent: 'input.complete',
  })
}
