import { isOpen } from '../kit/status.tsx'
import type { VersionGraph } from '../workflows/versions/data.ts'
import type { RecordState } from './records.ts'

/** One pass of a loop's body. */
export type Iteration = {
  number: number
  status: string
  startedAt: string
  completedAt: string | null
  records: RecordState[]
}

/** The records by where they stand: outside of loops, in the iterations of a loop, and under an agent. */
export type Tree = {
  roots: RecordState[]
  /** By `placeOf` the loop's record. */
  loops: ReadonlyMap<string, Iteration[]>
  steps: ReadonlyMap<string, RecordState[]>
  /** The records of a node, but the steps of agents. */
  byNode: ReadonlyMap<string, RecordState[]>
  /** Records and loops, by their place, that failed or hold what failed. */
  failed: ReadonlySet<string>
  parents: ReadonlyMap<string, string | null>
}

/** Names a record but for its step: a loop's is the place of its iterations, an agent's of its steps. */
export function placeOf({ nodeId, iteration }: Pick<RecordState, 'nodeId' | 'iteration'>): string {
  return `${nodeId}#${iteration ?? ''}`
}

/** The status of a node that ran more than once, or of an iteration: the first of these that occurs. */
const WORST = ['FAILED', 'RUNNING', 'PENDING', 'CANCELLED', 'SUCCESS']

export function worstOf(records: readonly { status: string }[]): string | undefined {
  return WORST.find((one) => records.some(({ status }) => status === one))
}

/** Puts records in order. `graph` is missing where the workflow cannot be read: then nothing is in a loop. */
export function plantTree(records: readonly RecordState[], graph: VersionGraph | undefined): Tree {
  const nodes = graph?.nodes ?? []
  const parents = new Map(nodes.map(({ id, parentId }) => [id, parentId ?? null]))
  const order = orderNodes(graph)
  const sorted = [...records].sort(
    (a, b) =>
      (a.startedAt < b.startedAt ? -1 : a.startedAt > b.startedAt ? 1 : 0) ||
      (order.get(a.nodeId) ?? 0) - (order.get(b.nodeId) ?? 0) ||
      (a.step ?? 0) - (b.step ?? 0),
  )
  const own = sorted.filter(({ step }) => step === null)
  const known = new Set(own.map(placeOf))
  const roots: RecordState[] = []
  const bodies = new Map<string, Map<number, RecordState[]>>()
  for (const record of own) {
    const at = findLoop(record, parents)
    if (!at || !known.has(at.place)) roots.push(record)
    else {
      const body = bodies.get(at.place) ?? new Map<number, RecordState[]>()
      bodies.set(at.place, body)
      const group = body.get(at.number)
      if (group) group.push(record)
      else body.set(at.number, [record])
    }
  }
  const loops = new Map(
    [...bodies].map(([place, body]) => [
      place,
      [...body].sort(([a], [b]) => a - b).map(([number, group]) => makeIteration(number, group)),
    ]),
  )
  const steps = Map.groupBy(
    sorted.filter(({ step }) => step !== null),
    placeOf,
  )
  for (const group of steps.values()) group.sort((a, b) => a.step! - b.step!)
  const byNode = Map.groupBy(own, ({ nodeId }) => nodeId)
  return { roots, loops, steps, byNode, failed: findFailed(sorted, parents), parents }
}

/** The iteration of a loop that a record belongs to. */
export function findLoop(
  { nodeId, iteration }: Pick<RecordState, 'nodeId' | 'iteration'>,
  parents: Tree['parents'],
): { place: string; nodeId: string; iteration: string | null; number: number } | null {
  const parent = iteration === null ? null : parents.get(nodeId)
  if (!parent) return null
  const path = iteration!.split('.')
  const outer = path.slice(0, -1).join('.')
  const loop = { nodeId: parent, iteration: outer === '' ? null : outer }
  return { ...loop, place: placeOf(loop), number: Number(path.at(-1)) }
}

function makeIteration(number: number, records: RecordState[]): Iteration {
  const ends = records.map(({ completedAt }) => completedAt)
  const open = records.some(({ status }) => isOpen(status))
  return {
    number,
    status: worstOf(records) ?? 'SUCCESS',
    startedAt: records[0]!.startedAt,
    completedAt: open ? null : ends.reduce((last, end) => (last && end && last > end ? last : end), null),
    records,
  }
}

/** What failed, with all loops around it. */
function findFailed(records: readonly RecordState[], parents: Tree['parents']): Set<string> {
  const failed = new Set<string>()
  for (const record of records) {
    if (record.status !== 'FAILED') continue
    let at: Pick<RecordState, 'nodeId' | 'iteration'> | null = record
    while (at) {
      const place = placeOf(at)
      if (failed.has(place)) break
      failed.add(place)
      at = findLoop(at, parents)
    }
  }
  return failed
}

/** Nodes that began in the same millisecond stand as the graph leads to them. */
function orderNodes(graph: VersionGraph | undefined): Map<string, number> {
  const order = new Map<string, number>()
  if (!graph) return order
  const after = Map.groupBy(graph.edges, ({ source }) => source)
  const waiting = new Map(graph.nodes.map(({ id }) => [id, 0]))
  for (const { target } of graph.edges) waiting.set(target, (waiting.get(target) ?? 0) + 1)
  const ready = [...waiting].flatMap(([id, count]) => (count === 0 ? [id] : []))
  for (const id of ready) {
    order.set(id, order.size)
    for (const { target } of after.get(id) ?? []) {
      const left = (waiting.get(target) ?? 0) - 1
      waiting.set(target, left)
      if (left === 0) ready.push(target)
    }
  }
  return order
}

/** What a row says of a loop: how many iterations have ended, of how many, and how many hold what failed. */
export type LoopCount = { done: number; failed: number; seen: number; total: number | null }

/** `taken`: how many items have no iteration here, because an earlier execution has done them. */
export function countLoop(
  iterations: readonly Iteration[],
  { itemCount, status }: Pick<RecordState, 'itemCount' | 'status'>,
  taken: number,
): LoopCount {
  const failed = iterations.filter(({ status }) => status === 'FAILED').length
  const done = taken + iterations.filter(({ status }) => !isOpen(status)).length
  const total = itemCount ?? (isOpen(status) ? null : iterations.length + taken)
  return { done, failed, seen: iterations.length, total }
}

/** "188 of 200", and "3 failed". */
export function tellLoop({ done, total, failed }: LoopCount): string {
  const count = total === null ? `${done} done` : `${done} of ${Math.max(total, done)}`
  return failed > 0 ? `${count}, ${failed} failed` : count
}

/** A node that was given no name has its type's. */
export function nameRecord({
  nodeName,
  nodeType,
  nodeId,
}: Pick<RecordState, 'nodeName' | 'nodeType' | 'nodeId'>) {
  return nodeName && nodeName !== nodeType ? nodeName : nodeId
}

/** What a record is: a node of a type, or a step of an agent. */
export function describeRecord({
  nodeType,
  step,
  tool,
}: Pick<RecordState, 'nodeType' | 'step' | 'tool'>): string {
  return step === null
    ? nodeType
    : tool === null
      ? `Turn ${step} of the model`
      : `Step ${step}: the tool ${tool}`
}
