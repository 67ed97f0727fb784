import type { Rules } from '../expressions/rules.ts'
import { nameType, type Problem } from '../problem.ts'
import { checkLiterals } from '../secrets/literals.ts'
import type { Work } from '../turns.ts'
import { findInertKeys } from './advice/inert.ts'
import { createKeeper } from './advice/kept.ts'
import { nameUnnamed } from './advice/names.ts'
import { findForbiddenKeys } from './advice/unknown.ts'
import { findUnsigned } from './advice/unsigned.ts'
import { checkStructure } from './check.ts'
import { type PlacedElement, readEdge, readNode } from './elements.ts'
import { type Graph, type GraphEdge, type GraphNode, MAX_EDGES, MAX_GRAPH_BYTES, MAX_NODES } from './graph.ts'
import type { Findings } from './references.ts'

/** The units of work for checking a node or edge, and each character of its config. */
const NODE_WORK = 50
const CHARACTER_WORK = 0.01

/** The most warnings that a response has. */
const MAX_WARNINGS = 100

/** A graph from outside. */
export type GivenGraph = {
  nodes?: unknown
  edges?: unknown
  expressions?: Rules | undefined
  strict?: boolean | undefined
  known?: Graph | undefined
  /** It is being imported: secrets that are written into it are moved into credentials, rather than refused. */
  imported?: boolean | undefined
}

/**
 * Reads a graph from outside into its stored form and names everything that is wrong with it. The graph is
 * valid only if there are no problems. A node's `data` is used if it has no `config`; `makeId` makes ids for
 * nodes without one. Its texts are read under the rules `expressions`, which are 1 if missing. `known` is the stored
 * graph that it changes: what is wrong with an element alone that is the same there is only a warning, and so is a
 * secret that is written into it there.
 */
export function* readGraph(input: GivenGraph, makeId: () => string): Work<{ graph: Graph } & Findings> {
  const problems: Problem[] = []
  const warnings: Problem[] = []
  const keeper = createKeeper(input.known)
  const rawNodes = readList(input.nodes, 'nodes', MAX_NODES, problems)
  const rawEdges = readList(input.edges, 'edges', MAX_EDGES, problems)
  // If one list is not an array or too long, checking the other against it would only give false problems.
  const whole = problems.length === 0
  const nodes: PlacedElement<GraphNode>[] = []
  const kept = new Set<GraphNode>()
  const knownById = new Map(input.known?.nodes.map((node) => [node.id, node]))
  let characters = 0
  for (const [at, raw] of rawNodes.entries()) {
    const { length } = JSON.stringify(raw ?? null)
    characters += length
    yield NODE_WORK + CHARACTER_WORK * length
    const own: Problem[] = []
    const [read] = readNode(raw, `nodes[${at}]`, makeId, own)
    const stored = keeper.findNode(raw, read)
    if (read && stored && own.length > 0) read.value = stored
    if (read && stored) kept.add(read.value)
    if (read) nodes.push(read)
    ;(stored ? warnings : problems).push(...own)
    if (read) {
      // The raw node is compared, since such keys are gone from the node that was read.
      const { type, config, data } = Object(raw)
      const place = read.configPath ?? `nodes[${at}].config`
      const before = knownById.get(read.value.id)?.config
      problems.push(...findForbiddenKeys(type, config ?? data, place, before))
    }
    // Secrets of tools are not moved.
    if (!read || (input.imported && read.value.type !== 'AI_AGENT')) continue
    const { value, configPath = `nodes[${at}].config` } = read
    const literals = checkLiterals(value, configPath, input.expressions ?? 1, knownById.get(value.id))
    problems.push(...literals.problems)
    warnings.push(...literals.warnings)
  }
  nameUnnamed(nodes, input.known?.nodes ?? [])

  const edges: PlacedElement<GraphEdge>[] = []
  for (const [at, raw] of rawEdges.entries()) {
    yield NODE_WORK
    const own: Problem[] = []
    const path = `edges[${at}]`
    const read = readEdge(raw, path, own)
    const stored = own.length > 0 ? keeper.findEdge(raw) : undefined
    edges.push(...(stored ? [{ value: stored, path }] : read))
    ;(stored ? warnings : problems).push(...own)
  }
  if (whole) {
    const found = yield* checkStructure(nodes, edges, input.expressions ?? 1, kept)
    problems.push(...found.problems)
    warnings.push(...found.warnings)
  }
  for (const { value, path, configPath = `${path}.config` } of nodes)
    warnings.push(...findInertKeys(value, path, configPath), ...findUnsigned(value, configPath))
  yield CHARACTER_WORK * characters

  const { expressions, strict } = input
  const graph: Graph = {
    nodes: nodes.map(({ value }) => value),
    edges: edges.map(({ value }) => value),
    ...(expressions === undefined ? {} : { expressions }),
    ...(strict === undefined ? {} : { strict }),
  }
  const bytes = new TextEncoder().encode(JSON.stringify(graph)).length
  if (bytes > MAX_GRAPH_BYTES) {
    problems.push({
      path: 'nodes',
      message: `has ${bytes} bytes with the edges; at most ${MAX_GRAPH_BYTES} are allowed`,
    })
  }
  return { graph, problems, warnings: warnings.slice(0, MAX_WARNINGS) }
}

function readList(input: unknown, path: string, max: number, problems: Problem[]): unknown[] {
  if (input === undefined || input === null) return []
  if (!Array.isArray(input)) problems.push({ path, message: `must be an array, not ${nameType(input)}` })
  else if (input.length <= max) return input
  else problems.push({ path, message: `has ${input.length} entries; at most ${max} are allowed` })
  return []
}
