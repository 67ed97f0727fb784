import { findItem, mergeInputs } from '../workflows/inputs.ts'
import { type Envelope, INPUT_REF, type Plan } from '../workflows/plan.ts'
import {
  emptyOutcomes,
  endsOf,
  findNode,
  isEntry,
  next,
  type Outcomes,
  sourcesOf,
  stepKey,
} from '../workflows/walk.ts'
import { openEnvelope } from './blobs.ts'
import type { Store } from './scope.ts'
import type { StoredNode } from './shown.ts'

/** Values shown in one answer, in bytes of JSON; what does not fit in is named by its size only. */
const SHOWN_BYTES = 32_000_000
/** Of values that were read, so much is kept while the answer is made. */
const HELD_BYTES = 64_000_000

/** What an iteration, or the run outside of loops, came to by its records. */
type Frame = {
  loopId: string
  iteration: string
  outcomes: Outcomes
  rows: Map<string, Pick<StoredNode, 'output' | 'handle' | 'loop'>>
}

/** Derives the inputs and outputs of node records: nothing but outputs and items is stored. */
export function createValues(store: Store, executionId: string, plan: Plan, rows: StoredNode[]) {
  const frames = readFrames(plan, rows)
  const root = frames.get(stepKey('', '')) ?? createFrame('', '')
  const opened = new Map<string, Promise<unknown>>()
  let left = SHOWN_BYTES
  let held = 0

  const frameOf = (nodeId: string, iteration: string) =>
    frames.get(stepKey(findNode(plan, nodeId)?.parentId ?? '', iteration)) ?? root
  const open = (envelope: Envelope) => {
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

  // What a disabled node passes on is made of the outputs of those before it, however many ways lead to them.
  const origins = new Map<string, Set<string>>()
  const originsOf = (frame: Frame, id: string): Set<string> => {
    const key = `${stepKey(frame.loopId, frame.iteration)} ${id}`
    let found = origins.get(key)
    if (!found) {
      const passing = frame.outcomes[id] && !frame.rows.has(id)
      const before = passing ? sourcesOf(plan, id, frame.outcomes) : []
      found = passing ? new Set(before.flatMap((source) => [...originsOf(frame, source)])) : new Set([id])
      origins.set(key, found)
    }
    return found
  }
  const size = (frame: Frame, ids: string[]) =>
    [...new Set(ids.flatMap((id) => [...originsOf(frame, id)]))].reduce(
      (sum, id) => sum + ((frame.rows.get(id)?.output as Envelope | null)?.bytes ?? 0),
      0,
    )
  const show = async (bytes: number, read: () => Promise<unknown>) => {
    if (bytes > left) return { truncated: true, bytes }
    left -= bytes
    return read()
  }
  // Of an item no size is known; many records show the same one.
  const measured = new WeakMap<object, number>()
  const measure = (value: unknown): number => {
    const known = typeof value === 'object' && value !== null ? measured.get(value) : undefined
    if (known !== undefined) return known
    const bytes = Buffer.byteLength(JSON.stringify(value) ?? '')
    if (typeof value === 'object' && value !== null) measured.set(value, bytes)
    return bytes
  }
  // Disabled nodes pass it on, by however many ways.
  const items = new Map<string, boolean>()
  const isItem = (frame: Frame, id: string): boolean => {
    const node = findNode(plan, id)
    if (frame.loopId === '' || !node) return false
    const key = `${stepKey(frame.loopId, frame.iteration)} ${id}`
    const found =
      items.get(key) ??
      (isEntry(plan, node) ||
        sourcesOf(plan, id, frame.outcomes).some(
          (source) => !frame.rows.has(source) && isItem(frame, source),
        ))
    items.set(key, found)
    return found
  }

  const passed = new Map<string, Promise<unknown>>()
  const value = (frame: Frame, id: string): Promise<unknown> => {
    const envelope = frame.rows.get(id)?.output as Envelope | null | undefined
    if (envelope) return open(envelope)
    // A node that runs alone has the run's own input before it, of which there is no record.
    if (id === plan.triggerNodeId && findNode(plan, id)?.silent) return open({ ref: INPUT_REF, bytes: 0 })
    const key = `${stepKey(frame.loopId, frame.iteration)} ${id}`
    let promise = passed.get(key)
    if (!promise) {
      promise = input(frame, id)
      passed.set(key, promise)
    }
    return promise
  }
  const input = async (frame: Frame, id: string): Promise<unknown> => {
    const node = findNode(plan, id)
    if (node && isEntry(plan, node)) return item(frame)
    const sources = sourcesOf(plan, id, frame.outcomes)
    return sources.length === 0
      ? undefined
      : mergeInputs(await Promise.all(sources.map((source) => value(frame, source))))
  }
  const item = async ({ loopId, iteration }: Frame): Promise<unknown> => {
    const cut = iteration.lastIndexOf('.')
    const at = Number(iteration.slice(cut + 1))
    const around = frameOf(loopId, cut < 0 ? '' : iteration.slice(0, cut))
    const page = around.rows.get(loopId)?.loop?.pages.findLast(({ from }) => from <= at)
    if (page) return findItem(open, page, at - page.from)
    if (at === 0) return input(around, loopId)
    const before = frames.get(stepKey(loopId, iteration.slice(0, cut + 1) + (at - 1)))
    return before ? ends(before) : undefined
  }
  const ends = async (frame: Frame): Promise<unknown> => {
    const ids = endsOf(plan, frame.outcomes, frame.loopId)
    if (ids.length === 1) return value(frame, ids[0]!)
    return Object.fromEntries(await Promise.all(ids.map(async (id) => [id, await value(frame, id)] as const)))
  }

  return {
    output: (id: string, iteration: string) => {
      const frame = frameOf(id, iteration)
      return show(size(frame, [id]), () => value(frame, id))
    },
    async input(id: string, iteration: string): Promise<unknown> {
      const frame = frameOf(id, iteration)
      if (isItem(frame, id)) {
        const item = await input(frame, id)
        return show(measure(item), async () => item)
      }
      return show(size(frame, sourcesOf(plan, id, frame.outcomes)), () => input(frame, id))
    },
    /** The run's output. */
    async ends(): Promise<unknown> {
      const ids = endsOf(plan, root.outcomes)
      // Outputs that are not kept leave no trace of the way.
      if (ids.length === 0) return undefined
      if (ids.length === 1) return show(size(root, ids), () => value(root, ids[0]!))
      const shown: Record<string, unknown> = {}
      for (const id of ids) shown[id] = await show(size(root, [id]), () => value(root, id))
      return shown
    },
  }
}

function createFrame(loopId: string, iteration: string): Frame {
  return { loopId, iteration, outcomes: emptyOutcomes(), rows: new Map() }
}

/** The outcomes that the rows tell; disabled nodes, which leave no row, follow from those before them. */
function readFrames(plan: Plan, rows: StoredNode[]): Map<string, Frame> {
  const frames = new Map<string, Frame>()
  for (const row of rows) {
    const loopId = findNode(plan, row.nodeId)?.parentId ?? ''
    const key = stepKey(loopId, row.iteration)
    const frame = frames.get(key) ?? createFrame(loopId, row.iteration)
    frames.set(key, frame)
    frame.rows.set(row.nodeId, row)
    if (row.output !== null && row.status !== 'RUNNING') frame.outcomes[row.nodeId] = { handle: row.handle }
  }
  for (const { loopId, outcomes } of frames.values()) {
    for (;;) {
      const passing = next(plan, outcomes, new Set(), loopId).filter((node) => node.silent)
      if (passing.length === 0) break
      for (const node of passing) outcomes[node.id] = node.silent!
    }
  }
  return frames
}
