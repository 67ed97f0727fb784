import { isDeepStrictEqual } from 'node:util'
import { readSucceeded } from '../../../db/executions/records/earlier.ts'
import { Fault } from '../../../db/fault.ts'
import type { Frame } from '../../../workflows/run/frame.ts'
import type { SegmentInput } from '../../../workflows/run/messages.ts'
import type { Envelope, LoopNode, Plan } from '../../../workflows/run/plan.ts'
import type { TakenIterations } from '../../../workflows/run/records.ts'
import { findNode, sourcesOf } from '../../../workflows/run/walk.ts'
import type { ActivityDeps } from '../../deps.ts'
import { createPacer } from '../../expressions/pace.ts'
import { CHUNK_BYTES, type NumberedResult, packChunk } from './loop.ts'

/** The ranges travel with the state of the run, so there are only so many; other iterations are done again. */
const MAX_RANGES = 500

/** With more results than this, in characters of JSON, the loop's output would be too large anyway. */
const MAX_CHARS = 16_000_000

/**
 * What a loop outside of loops takes over from the execution that this one retries: the results of iterations
 * that succeeded there and have the same item here. Undefined if there is nothing: then all is done again, as it
 * is if anything before the loop is. Loops without side effects are not worth it.
 */
export async function takeOverIterations(
  { deps, segment, root }: { deps: ActivityDeps; segment: SegmentInput; root: Frame },
  node: LoopNode,
  items: unknown[],
): Promise<TakenIterations | undefined> {
  const { plan, context } = segment
  const { retryOf } = context
  if (retryOf === undefined || node.parentId !== undefined || node.loop.pure) return undefined
  if (!isSameBefore(plan, node.id, root)) return undefined
  const entries: NumberedResult[] = []
  let chars = 0
  const pace = createPacer()
  try {
    for await (const { at, item, result } of readSucceeded(deps.store, retryOf, plan, node.id)) {
      await pace()
      if (at >= items.length || !isDeepStrictEqual(plain(items[at]), plain(item))) continue
      chars += JSON.stringify(result ?? null).length
      if (chars > MAX_CHARS) break
      entries.push([at, result])
    }
  } catch (error) {
    // Its outputs are deleted with it, and it may be deleted meanwhile.
    if (error instanceof Fault && error.code === 'NOT_FOUND') return undefined
    throw error
  }
  entries.sort(([a], [b]) => a - b)
  const { ranges, fitting } = findRanges(entries)
  if (ranges.length === 0) return undefined
  return { ranges, chunks: await packChunks(deps, context.id, fitting) }
}

/** Whether everything before a node has the outputs that it had in the execution that is retried. */
function isSameBefore(plan: Plan, nodeId: string, { outcomes }: Frame): boolean {
  const seen = new Set<string>()
  const isSame = (id: string): boolean =>
    sourcesOf(plan, id, outcomes).every((source) => {
      if (seen.has(source)) return true
      seen.add(source)
      const { kind, given, silent } = findNode(plan, source)!
      return kind === 'trigger' || given !== undefined || (silent !== undefined && isSame(source))
    })
  return isSame(nodeId)
}

function plain(value: unknown): unknown {
  return typeof value === 'object' && value !== null ? JSON.parse(JSON.stringify(value)) : (value ?? null)
}

/** The ranges that the entries make up, which are in ascending order, and the entries in them. */
function findRanges(entries: NumberedResult[]): {
  ranges: TakenIterations['ranges']
  fitting: NumberedResult[]
} {
  const ranges: TakenIterations['ranges'] = []
  const fitting: NumberedResult[] = []
  for (const entry of entries) {
    const [at] = entry
    const last = ranges.at(-1)
    if (last?.[1] === at - 1) last[1] = at
    else if (ranges.length < MAX_RANGES) ranges.push([at, at])
    else break
    fitting.push(entry)
  }
  return { ranges, fitting }
}

async function packChunks(
  deps: ActivityDeps,
  executionId: string,
  entries: NumberedResult[],
): Promise<Envelope[]> {
  const chunks: Envelope[] = []
  let from = 0
  let bytes = 0
  for (const [place, [, value]] of entries.entries()) {
    bytes += JSON.stringify(value ?? null).length
    if (bytes <= CHUNK_BYTES && place < entries.length - 1) continue
    chunks.push(await packChunk(deps, executionId, entries.slice(from, place + 1)))
    from = place + 1
    bytes = 0
  }
  return chunks
}
