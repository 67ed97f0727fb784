import { findItem, joinItems, mergeInputs, valueAlong } from '../../../workflows/input.ts'
import { type Envelope, INPUT_REF, type Plan } from '../../../workflows/run/plan.ts'
import { endsOf, findNode, isEntry, nodesIn, sourcesOf, takenInto } from '../../../workflows/run/walk.ts'
import type { Store } from '../../scope.ts'
import { type Iteration, type Iterations, originsOf, readIterations, takesItem } from './iterations.ts'
import { openEnvelope } from './outputs.ts'
import type { StoredNode } from './stored.ts'

/** One response shows values up to this many bytes of JSON in total; beyond it, only their size. */
const SHOWN_BYTES = 32_000_000

/** How many bytes of values are kept in memory while the response is made. */
const HELD_BYTES = 64_000_000

/**
 * Derives the inputs and outputs that node records show: only outputs and loop items are stored. A value
 * beyond the bytes that one response can show becomes `{truncated: true, bytes}`.
 */
export function deriveValues(store: Store, executionId: string, plan: Plan, rows: StoredNode[]) {
  const iterations = readIterations(plan, rows)
  const { root } = iterations
  const source: Source = { plan, iterations, open: createOpener(store, executionId), passed: new Map() }
  const show = createBudget(SHOWN_BYTES)
  const measure = createMeasure()
  const sizeOf = (iteration: Iteration, ids: string[]) => {
    const origins = new Set(ids.flatMap((id) => [...originsOf(plan, iteration, id)]))
    return [...origins].reduce((sum, id) => sum + (outputOf(iteration, id)?.bytes ?? 0), 0)
  }
  return {
    /** A value that a record names itself. */
    own: (envelope: Envelope): Promise<unknown> => show(envelope.bytes, () => source.open(envelope)),
    output(id: string, path: string): Promise<unknown> {
      const iteration = iterations.around(id, path)
      return show(sizeOf(iteration, [id]), () => readValue(source, iteration, id))
    },
    async input(id: string, path: string): Promise<unknown> {
      const iteration = iterations.around(id, path)
      if (takesItem(plan, iteration, id)) {
        const item = await readInput(source, iteration, id)
        return show(measure(item), async () => item)
      }
      const bytes = sizeOf(iteration, sourcesOf(plan, id, iteration.outcomes))
      return show(bytes, () => readInput(source, iteration, id))
    },
    /** The item of the iteration that a node is in at `path`; undefined outside of loops. */
    async item(id: string, path: string): Promise<unknown> {
      const iteration = iterations.around(id, path)
      return iteration.loopId === '' ? undefined : readItem(source, iteration)
    },
    /** The execution's output; undefined if its outputs are not kept. */
    async ends(): Promise<unknown> {
      const ids = endsOf(plan, root.outcomes)
      if (ids.length === 0) return undefined
      if (ids.length === 1) return show(sizeOf(root, ids), () => readValue(source, root, ids[0]!))
      const shown: Record<string, unknown> = {}
      for (const id of ids) shown[id] = await show(sizeOf(root, [id]), () => readValue(source, root, id))
      return shown
    },
  }
}

/**
 * Derives the results of the iterations of a FOR_EACH outside of loops from records. `rows` are those of the loop
 * itself and of its body, of as many iterations as are asked for.
 */
export function deriveIterations(store: Store, executionId: string, plan: Plan, rows: StoredNode[]) {
  const iterations = readIterations(plan, rows)
  const source: Source = { plan, iterations, open: createOpener(store, executionId), passed: new Map() }
  return {
    /** The item and the result of an iteration; undefined unless all of its nodes are settled. */
    async read(loopId: string, at: number): Promise<{ item: unknown; result: unknown } | undefined> {
      const iteration = iterations.find(loopId, String(at))
      const isDone = iteration && nodesIn(plan, loopId).every(({ id }) => iteration.outcomes[id])
      if (!isDone) return undefined
      return { item: await readItem(source, iteration), result: await readResult(source, iteration) }
    },
  }
}

export type RecordValues = ReturnType<typeof deriveValues>

/** What values are derived from. `passed` holds what disabled nodes pass on, by iteration and node. */
type Source = {
  plan: Plan
  iterations: Iterations
  open: (envelope: Envelope) => Promise<unknown>
  passed: Map<string, Promise<unknown>>
}

function outputOf(iteration: Iteration, id: string): Envelope | null | undefined {
  return iteration.rows.get(id)?.output as Envelope | null | undefined
}

function readValue(source: Source, iteration: Iteration, id: string): Promise<unknown> {
  const { plan, open, passed } = source
  const envelope = outputOf(iteration, id)
  if (envelope) return open(envelope)
  // Before a node that is executed alone comes the execution's own input, which has no record.
  if (id === plan.triggerNodeId && findNode(plan, id)?.silent) return open({ ref: INPUT_REF, bytes: 0 })
  const key = `${iteration.loopId}#${iteration.path} ${id}`
  let value = passed.get(key)
  if (!value) {
    value = readInput(source, iteration, id)
    passed.set(key, value)
  }
  return value
}

async function readInput(source: Source, iteration: Iteration, id: string): Promise<unknown> {
  const { plan } = source
  const node = findNode(plan, id)
  if (node && isEntry(plan, node)) return readItem(source, iteration)
  const taken = takenInto(plan, id, iteration.outcomes)
  if (taken.length === 0) return undefined
  const along = taken.map(async (edge) => valueAlong(edge, await readValue(source, iteration, edge.source)))
  const values = await Promise.all(along)
  return node?.items ? joinItems(values) : mergeInputs(values)
}

/** The item of a FOR_EACH's iteration, or what a REPEAT's iteration gets from the one before it. */
async function readItem(source: Source, { loopId, path }: Iteration): Promise<unknown> {
  const { iterations, open } = source
  const cut = path.lastIndexOf('.')
  const at = Number(path.slice(cut + 1))
  const around = iterations.around(loopId, cut < 0 ? '' : path.slice(0, cut))
  const page = around.rows.get(loopId)?.loop?.pages.findLast(({ from }) => from <= at)
  if (page) return findItem(open, page, at - page.from)
  if (at === 0) return readInput(source, around, loopId)
  const before = iterations.find(loopId, path.slice(0, cut + 1) + (at - 1))
  return before && readResult(source, before)
}

async function readResult(source: Source, iteration: Iteration): Promise<unknown> {
  const ids = endsOf(source.plan, iteration.outcomes, iteration.loopId)
  if (ids.length === 1) return readValue(source, iteration, ids[0]!)
  const values = ids.map(async (id) => [id, await readValue(source, iteration, id)] as const)
  return Object.fromEntries(await Promise.all(values))
}

/** Opens envelopes. Stored values are kept in memory, up to HELD_BYTES, so that most are read only once. */
function createOpener(store: Store, executionId: string): (envelope: Envelope) => Promise<unknown> {
  const opened = new Map<string, Promise<unknown>>()
  let held = 0
  return (envelope) => {
    if (!('ref' in envelope)) return Promise.resolve(envelope.v)
    let value = opened.get(envelope.ref)
    if (!value) {
      held += envelope.bytes
      if (held > HELD_BYTES) {
        opened.clear()
        held = envelope.bytes
      }
      value = openEnvelope(store, executionId, envelope)
      opened.set(envelope.ref, value)
    }
    return value
  }
}

/** Reads values as long as all of them together fit into `left` bytes. */
function createBudget(left: number): (bytes: number, read: () => Promise<unknown>) => Promise<unknown> {
  let rest = left
  return async (bytes, read) => {
    if (bytes > rest) return { truncated: true, bytes }
    rest -= bytes
    return read()
  }
}

/** Measures an item, whose size is not stored. Sizes are cached, as many records show the same item. */
function createMeasure(): (value: unknown) => number {
  const measured = new WeakMap<object, number>()
  return (value) => {
    const known = typeof value === 'object' && value !== null ? measured.get(value) : undefined
    if (known !== undefined) return known
    const bytes = Buffer.byteLength(JSON.stringify(value) ?? '')
    if (typeof value === 'object' && value !== null) measured.set(value, bytes)
    return bytes
  }
}
