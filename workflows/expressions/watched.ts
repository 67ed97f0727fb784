import type { Syntax } from './expressions.ts'

/**
 * A path that an expression reads: the variable that it begins with (undefined for its context), and the names and
 * fixed positions after it, as far as they are plain. Without `whole`, something else follows them.
 */
export type ReadPath = { root: string | undefined; steps: (string | number)[]; whole: boolean }

/** In these, an expression asks whether something is there: nothing is no mistake in them. */
const ASKING = new Set(['exists', 'not', 'boolean'])

/** The variables of the scope: what else there is, the expression has bound itself. */
const SCOPE = new Set(['input', 'nodes', 'trigger', 'vars', 'execution', 'item', 'index'])

const MAX_PATHS = 200

/**
 * The watched parts of an expression: the paths that it may read in its scope, and the nodes of its tree that only ask
 * whether something is there: the arguments of `$exists`, `$not` and `$boolean`, the condition of `? :`, and all of
 * `?:` and `??`. Nothing that is found there is in `paths`.
 */
export function watchTree(tree: Syntax): { paths: ReadPath[]; asking: Set<object> } {
  const paths = new Map<string, ReadPath>()
  const asking = new Set<object>()
  const seen = new Set<object>()
  // A stack, since a long sum makes the tree too deep to recurse.
  const open: { node: unknown; context: Context; asks: boolean }[] = []
  const add = (node: unknown, context: Context, asks: boolean) => void open.push({ node, context, asks })
  add(tree, { root: undefined, steps: [] }, false)
  while (open.length > 0) {
    const { node: next, context, asks } = open.pop()!
    if (typeof next !== 'object' || next === null || seen.has(next)) continue
    seen.add(next)
    if (asks) asking.add(next)
    if (Array.isArray(next)) {
      for (const entry of next) add(entry, context, asks)
      continue
    }
    const node = next as Syntax
    if (node.type === 'path') {
      const steps = node.steps as Syntax[]
      const path = placePath(readSteps(steps), context)
      if (path && !asks && paths.size < MAX_PATHS) paths.set(JSON.stringify(path), path)
      for (const [at, { stages, predicate, ...step }] of steps.entries()) {
        const isPlain = step.type === 'name' || (at === 0 && step.type === 'variable')
        if (!isPlain) add(steps[at], at === 0 ? context : findContext(steps.slice(0, at), context), asks)
        else
          for (const part of [stages, predicate])
            add(part, findContext(steps.slice(0, at + 1), context), asks)
      }
      add(node.group, findContext(steps, context), asks)
    } else if (node.type === 'condition') {
      const whole = asks || isAlternative(node)
      add(node.condition, context, true)
      add(node.then, context, whole)
      add(node.else, context, whole)
    } else if (node.type === 'function' && isAsking(node.procedure)) add(node.arguments, context, true)
    else if (node.type === 'apply' && isAsking(node.rhs)) add(node.lhs, context, true)
    else {
      const path = node.type === 'variable' && !asks ? placePath(readSteps([node]), context) : undefined
      if (path && paths.size < MAX_PATHS) paths.set(JSON.stringify(path), path)
      for (const [field, child] of Object.entries(node)) {
        const within = field === 'predicate' || field === 'stages' || field === 'group'
        if (field !== 'ancestor' && field !== 'slot') add(child, within ? undefined : context, asks)
      }
    }
  }
  return { paths: [...paths.values()].reverse(), asking }
}

/** The steps of a path as far as they are names and fixed positions. */
export function readSteps(nodes: Syntax[]): ReadPath {
  const steps: ReadPath['steps'] = []
  const [first] = nodes
  const root = first?.type === 'variable' ? String(first.value) : undefined
  for (const [at, node] of nodes.entries()) {
    if (node.type !== 'name' && !(at === 0 && root !== undefined)) return { root, steps, whole: false }
    if (node.type === 'name') steps.push(String(node.value))
    const stages = [...((node.stages as Syntax[]) ?? []), ...((node.predicate as Syntax[]) ?? [])]
    for (const { type, expr } of stages) {
      const position = readPosition(expr as Syntax)
      if (type !== 'filter' || position === undefined) return { root, steps, whole: false }
      steps.push(position)
    }
    if (node.focus || node.index || node.group || node.tuple) return { root, steps, whole: false }
  }
  return { root, steps, whole: true }
}

/** The context in which names without a variable are read: a path of the scope, or unknown. */
type Context = Omit<ReadPath, 'whole'> | undefined

/** A path with those of its context before it; undefined if it does not begin in the scope. */
function placePath(path: ReadPath, context: Context): ReadPath | undefined {
  const { root, steps } = path
  if (root !== undefined && root !== '') return SCOPE.has(root) || root === '$' ? path : undefined
  if (!context || (root === undefined && steps.length === 0)) return undefined
  return context.steps.length === 0 && context.root === undefined
    ? path
    : { ...path, root: context.root, steps: [...context.steps, ...steps] }
}

/** The context after these steps. Elements that a step leaves out of a list are not looked at. */
function findContext(nodes: Syntax[], context: Context): Context {
  const names = nodes.filter(({ type }) => type === 'name').map(({ value }) => String(value))
  const [first] = nodes
  const root = first?.type === 'variable' ? String(first.value) : undefined
  if (names.length + (root === undefined ? 0 : 1) < nodes.length) return undefined
  if (root === undefined || root === '') return context && { ...context, steps: [...context.steps, ...names] }
  return SCOPE.has(root) || root === '$' ? { root, steps: names } : undefined
}

function readPosition(node: Syntax | undefined): number | undefined {
  if (node?.type !== 'number') return undefined
  return Number.isInteger(node.value) ? (node.value as number) : undefined
}

/** Whether it is one of these functions, or a call of it, as after `~>`. */
function isAsking(node: unknown): boolean {
  const { type, value, procedure } = Object(node) as Syntax
  if (type === 'function') return isAsking(procedure)
  return type === 'variable' && ASKING.has(String(value))
}

/** Whether it was written with `?:` or `??`, of which JSONata makes a condition that has the left side twice. */
function isAlternative({ condition, then }: Syntax): boolean {
  const { type, arguments: given } = condition as Syntax
  const place = findPlace(then as Syntax)
  if (place === undefined) return false
  if (findPlace(condition as Syntax) === place) return true
  return type === 'function' && findPlace((given as Syntax[])[0]) === place
}

/** Where in its source a node begins. */
function findPlace(node: Syntax | undefined): number | undefined {
  for (let at = node; at; ) {
    if (typeof at.position === 'number') return at.position
    const { steps, lhs, condition, expressions } = at as Record<string, Syntax | Syntax[] | undefined>
    const next: Syntax | Syntax[] | undefined = steps ?? lhs ?? condition ?? expressions
    at = Array.isArray(next) ? next[0] : next
  }
  return undefined
}
