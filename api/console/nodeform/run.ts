import { useQuery } from '@tanstack/react-query'
import { api, queries, read } from '../data/client.ts'
import { isRefused } from '../data/refusal.ts'
import type { GraphEdge, GraphNode } from './contract.ts'

/** What an expression is read with: the last execution, and the node in it. */
export type ReadPlace = {
  teamId: string
  workflowId: string
  executionId: string
  /** Not given where that execution did not know the node yet; then `input` is what comes into it. */
  nodeId?: string
  input: unknown
  status: string
  at: string | null
}

/** What came of it; the console has errors of its own too, such as that the service is away. */
export type Evaluation = { value: unknown; error: { message: string } | null; warnings: string[] }
type Asked = { expression: string; as?: 'value' | 'condition'; data?: unknown }

/** Evaluates as the node would, in the last execution; without one, with nothing to read. */
export async function evaluate(
  place: Omit<ReadPlace, 'input' | 'status' | 'at'>,
  asked: Asked,
  signal?: AbortSignal,
): Promise<Evaluation> {
  const { teamId, workflowId, executionId, nodeId } = place
  const json = { teamId, workflowId, executionId, ...(nodeId ? { nodeId } : {}), ...asked }
  return read(api.api.expressions.evaluate.$post({ json }, signal ? { init: { signal } } : {}))
}

/** `$nodes.fetch`, or with backticks where the id is no plain name. */
export function nodePath(id: string): string {
  return `$nodes.${/^[A-Za-z_]\w*$/.test(id) ? id : `\`${id}\``}`
}

/** The nodes whose outputs a node may read: those before it, and those before the loop it is in; nearest first. */
export function listBefore(node: GraphNode, graph: { nodes: GraphNode[]; edges: GraphEdge[] }): GraphNode[] {
  const byId = new Map(graph.nodes.map((one) => [one.id, one]))
  const found = new Set<string>()
  let turn = [node.id]
  while (turn.length > 0) {
    const next: string[] = []
    for (const id of turn) {
      const parent = byId.get(id)?.parentId
      const sources = graph.edges.filter(({ target }) => target === id).map(({ source }) => source)
      for (const source of sources) {
        if (found.has(source) || source === node.id) continue
        found.add(source)
        next.push(source)
      }
      // The loop around it has no output yet, but the nodes before the loop have.
      if (parent && parent !== node.id && !turn.includes(parent)) next.push(parent)
    }
    turn = next
  }
  return [...found].flatMap((id) => byId.get(id) ?? [])
}

async function readLast(workflowId: string) {
  const { content } = await read(api.api.executions.$get({ query: { workflowId, page: '0', size: '1' } }))
  return content[0] ?? null
}

/** The newest execution of the workflow, and the node's input there; null without an execution. */
export function usePlace(
  teamId: string,
  workflowId: string | undefined,
  node: GraphNode,
  edges: GraphEdge[],
) {
  const before = edges.filter(({ target }) => target === node.id).map(({ source }) => source)
  const last = useQuery({
    queryKey: ['executions', 'last', workflowId],
    queryFn: () => readLast(workflowId!),
    enabled: workflowId !== undefined,
    staleTime: 5_000,
  })
  const run = last.data
  return useQuery({
    queryKey: ['executions', 'place', run?.id, run?.status, node.id, before.join(' ')],
    queryFn: () =>
      findPlace({ teamId, workflowId: workflowId!, executionId: run!.id }, node.id, before, run!),
    enabled: run !== undefined && run !== null,
    staleTime: Number.POSITIVE_INFINITY,
  })
}

type Run = { status: string; startedAt: string | null }

async function findPlace(
  given: { teamId: string; workflowId: string; executionId: string },
  nodeId: string,
  before: string[],
  { status, startedAt: at }: Run,
): Promise<ReadPlace> {
  try {
    const found = await evaluate({ ...given, nodeId }, { expression: '$input' })
    return { ...given, nodeId, input: found.value, status, at }
  } catch (error) {
    if (!isRefused(error, 404)) throw error
  }
  // The node is newer than the execution: what the nodes before it put out would come into it.
  const inputs: unknown[] = []
  for (const id of before) {
    const found = await evaluate(given, { expression: nodePath(id) })
    if (found.value !== null) inputs.push(found.value)
  }
  return { ...given, input: merge(inputs), status, at }
}

/** If there are several inputs, objects are merged; if one is not an object, they are put into an array. */
function merge(inputs: unknown[]): unknown {
  if (inputs.length < 2) return inputs[0] ?? null
  return inputs.every((one) => typeof one === 'object' && one !== null && !Array.isArray(one))
    ? Object.assign({}, ...inputs)
    : inputs
}

function sourceQuery(place: ReadPlace, expression: string) {
  return {
    queryKey: ['executions', 'value', place.executionId, place.status, place.nodeId ?? '', expression],
    queryFn: async () =>
      expression === '$input' ? place.input : (await evaluate(place, { expression, ...dataOf(place) })).value,
    staleTime: Number.POSITIVE_INFINITY,
  }
}

/** The input is given where the execution does not know the node. */
export function dataOf(place: ReadPlace): { data?: unknown } {
  return place.nodeId === undefined ? { data: place.input } : {}
}

/** What a variable such as `$input` or `$nodes.fetch` was in the last execution. */
export function useSource(place: ReadPlace, expression: string, enabled: boolean) {
  return useQuery({ ...sourceQuery(place, expression), enabled })
}

/** The same, once: undefined where it cannot be read. */
export async function readSource(place: ReadPlace, expression: string): Promise<unknown> {
  return queries.fetchQuery(sourceQuery(place, expression)).catch(() => undefined)
}
