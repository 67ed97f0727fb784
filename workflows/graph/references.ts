import { locate } from '../expressions/place.ts'
import { findReferences } from '../expressions/references.ts'
import type { Rules } from '../expressions/rules.ts'
import { nodeType } from '../nodes/nodes.ts'
import type { Problem } from '../problem.ts'
import { askForSimilar } from '../suggest.ts'
import type { Work } from '../turns.ts'
import type { PlacedElement } from './elements.ts'
import { findNodeNames, type GraphNode } from './graph.ts'

/** Every expression is parsed when the graph is saved, which takes about 40 us each. */
const MAX_EXPRESSIONS = 10_000

/** The most units of work for all expressions: more than a graph without `??` and `?:` can have. */
const MAX_PARSING = 1_500_000

/** The faults of a graph, and the warnings about it. */
export type Findings = { problems: Problem[]; warnings: Problem[] }

/**
 * Checks the expressions of all nodes: they must parse under `rules`, and name nodes that come before; without `upstream`
 * it is not known which do. The problems of a node in `kept` are only warnings.
 */
export function* checkExpressions(
  nodes: PlacedElement<GraphNode>[],
  byId: Map<string, GraphNode>,
  upstream: Map<string, Set<string>> | undefined,
  { rules, kept }: { rules: Rules; kept: ReadonlySet<GraphNode> },
): Work<Findings> {
  const expressions = nodes.reduce(
    (sum, { value }) => sum + JSON.stringify(value.config).split('{{').length - 1,
    0,
  )
  if (expressions > MAX_EXPRESSIONS) {
    const message = `must have at most ${MAX_EXPRESSIONS} expressions together, not ${expressions}`
    return { problems: [{ path: 'nodes', message }], warnings: [] }
  }
  const problems: Problem[] = []
  const warnings: Problem[] = []
  const meter = { left: MAX_PARSING }
  const all = [...byId.values()]
  const names = findNodeNames({ nodes: all })
  for (const { value: node, path, configPath = path } of nodes) {
    const { conditions, texts, reads } = nodeType(node.type) ?? {}
    const asked = conditions?.(node.config)
    const found = yield* findReferences(
      node.config,
      configPath,
      asked,
      meter,
      rules,
      true,
      texts?.(node.config),
    )
    for (const { path: key, id } of reads?.(node.config) ?? [])
      found.nodes.push({ id, path: `${configPath}.${key}`, place: () => locate(id, 0, id.length) })
    const own = kept.has(node) ? warnings : problems
    own.push(...found.problems)
    warnings.push(...found.warnings)
    for (const { id: written, path, place, isName } of found.nodes) {
      const id = isName && Object.hasOwn(names, written) ? names[written]! : written
      const named = isName ? all.filter(({ name }) => name === written).map((other) => other.id) : []
      if (named.length > 1 || (byId.has(id) && named.some((other) => other !== id))) {
        const ids = [...new Set([...(byId.has(id) ? [id] : []), ...named])].join('", "')
        const message = `names "${written}", which may be several nodes: "${ids}"; write the id of the one that is meant`
        problems.push({ path, message, ...place() })
      } else if (!byId.has(id)) {
        const question = isName ? suggestName(written, all) : suggestReference(id, byId)
        const message = `names the node "${id}", which is not in this graph${question}`
        problems.push({ path, message, ...place() })
      } else if (upstream && !upstream.get(node.id)?.has(id)) {
        const message = `names the node "${id}", which does not come before "${node.id}"`
        problems.push({ path, message, ...place() })
      }
    }
    if (meter.left < 0) break
  }
  return { problems, warnings }
}

/** The end of a message that asks which node was meant by an id that none has: it may be a name. */
export function suggestNode(given: string, byId: Map<string, GraphNode>): string {
  for (const { id, name } of byId.values()) {
    if (name === given) return `; the node "${name}" has the id "${id}"`
  }
  return askForSimilar(given, byId.keys())
}

/** As suggestNode, where a node may be named by its name. */
function suggestName(given: string, nodes: GraphNode[]): string {
  return askForSimilar(given, new Set(nodes.flatMap(({ id, name }) => [name, id])))
}

/** As suggestNode; an id with a hyphen reads as a subtraction unless it is quoted. */
function suggestReference(given: string, byId: Map<string, GraphNode>): string {
  const whole = [...byId.keys()].filter((id) => id.startsWith(`${given}-`))
  if (whole.length === 1) return `; quote an id that has a hyphen: $nodes.\`${whole[0]}\``
  return suggestNode(given, byId)
}
