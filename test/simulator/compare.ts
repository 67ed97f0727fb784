import { isDeepStrictEqual } from 'node:util'
import { createFold } from '../../db/executions/projection/fold.ts'
import type { RunHistory } from '../../db/executions/projection/history.ts'
import type { ProjectedNode } from '../../db/executions/records/projection.ts'
import { type Envelope, itemNodeId } from '../../workflows/run/plan.ts'
import { joinStep, splitStep } from '../../workflows/run/walk.ts'
import type { Sample } from './graphs.ts'
import { callsAtOnce, type Expected, HANDLED } from './interpreter.ts'
import { EXECUTION } from './world.ts'

type Found = {
  sample: Sample
  expected: Expected
  histories: RunHistory[]
  calls: Map<string, number>
  open: (envelope: Envelope) => Promise<unknown>
}

/** What is wrong with the way a run went, in plain words; empty if nothing is. */
export async function findFaults({ sample, expected, histories, calls, open }: Found): Promise<string[]> {
  const faults: string[] = []
  const fold = createFold(EXECUTION)
  for (const history of histories) fold.read(history)
  const { status, errorMessage, nodes } = fold.project()
  const keyOf = ({ nodeId, iteration, step }: ProjectedNode) => `${nodeId}#${joinStep(iteration, step)}`
  const records = new Map(nodes.map((node) => [keyOf(node), node]))
  const last = histories.at(-1)!.events.at(-1)!
  const failure = last.kind === 'closed' ? last.type : null
  const isFatal = expected.fatal.length > 0
  const wasCancelled = status === 'CANCELLED' && (sample.cancelAfterMs !== null || sample.timeoutMs !== null)
  if (!wasCancelled && status !== (isFatal ? 'FAILED' : 'SUCCESS'))
    faults.push(`the run is ${status} (${failure}: ${errorMessage})`)
  if (status === 'FAILED' && failure !== 'NodeFailed')
    faults.push(`the run failed with ${failure}: ${errorMessage}`)
  const isShort = isFatal || wasCancelled
  const mayDiffer = (key: string) => isShort || expected.loose.has(key)

  // A pause of an iteration that has failed is abandoned. It fails too, and a segment may go on from there before
  // the run knows that the iteration is over.
  // The loop then quotes that, instead of what failed first.
  const loops = new Set(sample.graph.nodes.map(({ parentId }) => parentId))
  const abandoned = [...records.values()].filter(
    ({ nodeId, errorMessage }) => !loops.has(nodeId) && /was abandoned/.test(errorMessage ?? ''),
  )
  for (const node of abandoned) if (!mayDiffer(keyOf(node))) faults.push(`${keyOf(node)} was abandoned`)
  const mayDetour = (path: string) =>
    abandoned.some(({ iteration }) => iteration !== '' && `${path}.`.startsWith(`${iteration}.`))

  for (const [key, record] of records) {
    const wanted = expected.nodes.get(key)
    if (!wanted && !mayDetour(record.iteration))
      faults.push(`${key} has a record (${record.status}), but must be skipped`)
    if (!wanted || (record.status === 'CANCELLED' && mayDiffer(key))) continue
    if (mayDiffer(key) && mayDetour(record.iteration)) continue
    if (record.status !== wanted.status) {
      faults.push(`${key} is ${record.status} (${record.errorMessage}), not ${wanted.status}`)
      continue
    }
    const { left } = wanted
    if (!left) {
      if (record.output !== null) faults.push(`${key} has an output, but nothing handles its error`)
      continue
    }
    if (record.handle !== left.handle) faults.push(`${key} leaves by ${record.handle}, not by ${left.handle}`)
    const output = record.output ? blur(await open(record.output)) : undefined
    const hoped = JSON.parse(JSON.stringify(left.output ?? null))
    if (!isDeepStrictEqual(output, hoped) && !(mayDiffer(key) && record.status === 'FAILED'))
      faults.push(`the output of ${key} is ${JSON.stringify(output)}, not ${JSON.stringify(hoped)}`)
  }
  for (const [key, { calls: wanted }] of expected.nodes) {
    if (!records.has(key) && !mayDiffer(key)) faults.push(`${key} has no record`)
    const made = calls.get(key) ?? 0
    if (made > wanted || (made < wanted && !mayDiffer(key)))
      faults.push(`${key} was called ${made} times, not ${wanted}`)
  }
  for (const key of calls.keys()) {
    const [, iteration = ''] = key.split('#')
    if (!expected.nodes.has(key) && !mayDetour(splitStep(iteration).iteration))
      faults.push(`${key} was called`)
  }
  return [...faults, ...findRepeats(histories), ...findDisorder(sample, records, mayDiffer)]
}

/** Where a history settles a node twice: two segments have both done a step, or one was lost on its way. */
function findRepeats(histories: RunHistory[]): string[] {
  const settled = new Set<string>()
  const faults: string[] = []
  for (const { events } of histories) {
    for (const event of events) {
      for (const { status, nodeId, iteration } of event.kind === 'records' ? event.records : []) {
        if (status !== 'SUCCESS' && status !== 'FAILED') continue
        const key = `${nodeId}#${iteration}`
        if (settled.has(key)) faults.push(`${key} was settled twice`)
        settled.add(key)
      }
    }
  }
  return faults
}

/** Where a node began before what it depends on was done. */
function findDisorder(
  { graph }: Sample,
  records: Map<string, ProjectedNode>,
  mayDiffer: (key: string) => boolean,
): string[] {
  const faults: string[] = []
  const calls = graph.nodes.map((node) => ({ ...node, id: itemNodeId(node.id), parentId: node.id }))
  const nodes = [...graph.nodes, ...calls]
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const demand = (before: ProjectedNode | undefined, after: ProjectedNode) => {
    if (!before || (before.completedAt !== null && before.completedAt <= after.startedAt)) return
    const [one, other] = [before, after].map(({ nodeId, iteration }) => `${nodeId}#${iteration}`)
    // What a segment does meanwhile is told after the failure that has cancelled it.
    if (before.status === 'CANCELLED' && mayDiffer(one!)) return
    faults.push(`${other} began before ${one} was done`)
  }
  for (const record of records.values()) {
    const { nodeId, iteration, step } = record
    if (step !== null && step > 1) demand(records.get(`${nodeId}#${joinStep(iteration, step - 1)}`), record)
    const edges = graph.edges.filter(({ target }) => target === nodeId)
    for (const { source } of edges) demand(records.get(`${source}#${iteration}`), record)
    const sources = edges.map(
      ({ source }) => [byId.get(source)!, records.get(`${source}#${iteration}`)] as const,
    )
    const cameHere = sources.some(
      ([source, before]) => source.disabled || (before && before.status !== 'CANCELLED'),
    )
    if (edges.length > 0 && !cameHere) faults.push(`${nodeId}#${iteration} began without any node before it`)
    const { parentId } = byId.get(nodeId)!
    if (parentId === undefined) continue
    const path = iteration.split('.')
    const around = path.slice(0, -1).join('.')
    const loop = records.get(`${parentId}#${around}`)
    if (!loop) faults.push(`${nodeId}#${iteration} began in a loop that has no record`)
    else if (
      // What fails a loop may become known a little before the end of what ran beside it.
      !mayDiffer(`${nodeId}#${iteration}`) &&
      (record.completedAt ?? 0) > (loop.completedAt ?? Number.POSITIVE_INFINITY)
    )
      faults.push(`${nodeId}#${iteration} ended after its loop`)
    const loopNode = byId.get(parentId)!
    const { type, config } = loopNode
    const isOne =
      type === 'REPEAT' ||
      (type === 'HTTP_REQUEST' ? callsAtOnce(loopNode) : Number(config.concurrency)) === 1
    const index = Number(path.at(-1))
    if (!isOne || index === 0) continue
    const previous = [...path.slice(0, -1), index - 1].join('.')
    for (const { id, parentId: its } of nodes)
      if (its === parentId) demand(records.get(`${id}#${previous}`), record)
  }
  return faults
}

/** Replaces errors by a constant: which one of several it is may depend on the order of events. */
function blur(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value ?? null), (key, entry) =>
    key === 'error' && typeof entry === 'object' && entry !== null && 'message' in entry
      ? HANDLED.error
      : entry,
  )
}
