import type { Sample } from './graphs.ts'
import type { Sandbox } from './sandbox.ts'
import { judge } from './simulator.ts'

/** How long smaller samples are looked for. */
const MAX_MS = 60_000

/** Leaves out what it can, as long as there is a fault. Seeds are tried too: chance goes another way without it. */
export async function reduceSample(
  sandbox: Sandbox,
  sample: Sample,
): Promise<{ sample: Sample; faults: string[] }> {
  let best = sample
  let { faults } = await judge(sandbox, sample)
  const kind = kindOf(faults[0] ?? '')
  const until = performance.now() + MAX_MS
  for (let goesOn = true; goesOn; ) {
    goesOn = false
    for (const smaller of listSmaller(best)) {
      for (const seed of [best.seed, best.seed + 1_000_003, best.seed + 2_000_003]) {
        if (performance.now() > until) return { sample: best, faults }
        const tried = { ...smaller, seed }
        const verdict = await judge(sandbox, tried)
        if (!verdict.faults.some((fault) => kindOf(fault) === kind)) continue
        best = tried
        faults = verdict.faults
        goesOn = true
        break
      }
      if (goesOn) break
    }
  }
  return { sample: best, faults }
}

/** What a fault says without the names of nodes, so that it is not taken for another one. */
function kindOf(fault: string): string {
  return fault.replace(/\S*#\S*/g, '').slice(0, 25)
}

function* listSmaller(sample: Sample): Generator<Sample> {
  const { graph, trouble } = sample
  for (const { id } of graph.nodes.slice(1)) {
    if (id === 'start') continue
    const gone = new Set([id])
    for (const _ of graph.nodes)
      for (const node of graph.nodes) if (node.parentId && gone.has(node.parentId)) gone.add(node.id)
    const nodes = graph.nodes.filter((node) => !gone.has(node.id))
    const isEmpty = (loop: string) => !nodes.some(({ parentId }) => parentId === loop)
    if (nodes.some(({ id, type }) => (type === 'FOR_EACH' || type === 'REPEAT') && isEmpty(id))) continue
    const edges = graph.edges.filter(({ source, target }) => !gone.has(source) && !gone.has(target))
    yield { ...sample, graph: { nodes, edges } }
  }
  for (const edge of graph.edges) {
    if (graph.edges.filter(({ target }) => target === edge.target).length < 2) continue
    yield { ...sample, graph: { nodes: graph.nodes, edges: graph.edges.filter((other) => other !== edge) } }
  }
  for (const kind of Object.keys(trouble) as (keyof Sample['trouble'])[]) {
    if (trouble[kind] > 0) yield { ...sample, trouble: { ...trouble, [kind]: 0 } }
  }
  if (sample.drainAfter !== null) yield { ...sample, drainAfter: null }
  if (sample.cancelAfterMs !== null) yield { ...sample, cancelAfterMs: null }
  if (sample.timeoutMs !== null) yield { ...sample, timeoutMs: null }
  if (sample.inlineBytes !== null) yield { ...sample, inlineBytes: null }
  if (sample.records < 500) yield { ...sample, records: 500 }
  if (Object.keys(sample.pinned).length > 0) yield { ...sample, pinned: {} }
}
