import { openEnvelope, packOutput, readStored, storeOutput } from '../../db/executions/records/outputs.ts'
import type { WrittenOutput } from '../../db/executions/records/written.ts'
import type { Store } from '../../db/scope.ts'
import { mergeInputs, partOf } from '../../workflows/input.ts'
import type { Result } from '../../workflows/run/frame.ts'
import type { Envelope, ExecutionContext } from '../../workflows/run/plan.ts'
import type { ActivityDeps } from '../deps.ts'
import { createPacer } from '../expressions/pace.ts'
import { NodeFailure } from '../nodes/kit/failure.ts'
import { parseOwnJson } from '../reading/pieces.ts'

type ValueDeps = Pick<ActivityDeps, 'store'>

/** A value of more bytes is parsed in pieces. */
const LARGE_BYTES = 64 * 1024

/** The most that a step may read at once. Each output is bounded, but a join may read hundreds of them. */
const MAX_INPUT_BYTES = 32_000_000

/** Opens each envelope only once. Opened values are shared between steps: never change them. */
export function createRunValues({ store }: ValueDeps, executionId: string) {
  // Keyed by the reference if there is one, because many nodes may pass on the same big value.
  const opened = new Map<Envelope | string, Promise<unknown>>()
  let held = 0
  const hold = (envelope: Envelope, value: Promise<unknown>) => {
    if (!opened.has(keyOf(envelope))) held += envelope.bytes
    opened.set(keyOf(envelope), value)
    // What could not be read is read again by the next who asks.
    value.catch(() => {
      if (opened.get(keyOf(envelope)) === value) forget(envelope)
    })
    return value
  }
  const forget = (envelope: Envelope): void => {
    if (opened.delete(keyOf(envelope))) held -= envelope.bytes
  }
  const open = (envelope: Envelope): Promise<unknown> =>
    opened.get(keyOf(envelope)) ?? hold(envelope, openInTurns(store, executionId, envelope))
  const openPart = async (merged: Extract<Result, { merge: unknown }>['merge'][number]) =>
    merged.part === undefined ? open(merged) : partOf(await open(merged), merged.part)
  return {
    /** The bytes of JSON of all values that were opened or kept, and not forgotten. */
    held: () => held,
    open,
    /** Remembers a value that was just packed, so that it need not be opened. */
    keep(envelope: Envelope, value: unknown): void {
      hold(envelope, Promise.resolve(value))
    },
    forget,
    /** The result of an iteration: of several last nodes, an object of their outputs by id. */
    async readResult(result: Result): Promise<unknown> {
      if ('error' in result) return { error: result.error }
      if ('merge' in result) return mergeInputs(await Promise.all(result.merge.map(openPart)))
      if (!('ends' in result)) return open(result)
      const entries = Object.entries(result.ends).map(async ([id, end]) => [id, await open(end)] as const)
      return Object.fromEntries(await Promise.all(entries))
    },
  }
}

export type RunValues = ReturnType<typeof createRunValues>

/** Parsing a large value at once would hold up all others. */
async function openInTurns(store: Store, executionId: string, envelope: Envelope): Promise<unknown> {
  if ('v' in envelope || envelope.bytes <= LARGE_BYTES) return openEnvelope(store, executionId, envelope)
  return parseOwnJson(await readStored(store, executionId, envelope.ref), createPacer())
}

/** A key that is the same for all envelopes of one value. */
function keyOf(envelope: Envelope): Envelope | string {
  return 'ref' in envelope ? envelope.ref : envelope
}

/** Throws a NodeFailure (InputTooLarge) if a node would read more at once than a worker can hold. */
export function demandInputRoom(envelopes: Envelope[]): void {
  const sizes = new Map(envelopes.map((envelope) => [keyOf(envelope), envelope.bytes]))
  const bytes = [...sizes.values()].reduce((sum, size) => sum + size, 0)
  if (bytes <= MAX_INPUT_BYTES) return
  const message = `The node reads ${bytes} bytes at once; at most ${MAX_INPUT_BYTES} are allowed`
  throw new NodeFailure(message, { type: 'InputTooLarge' })
}

/** Packs a node's output. If the output is the node's only input passed on, it keeps the input's envelope. */
export async function packResult(
  deps: ValueDeps,
  values: RunValues,
  step: { context: ExecutionContext; sources: string[]; find: (nodeId: string) => Envelope | undefined },
  output: unknown,
  inlineBytes: number,
): Promise<Envelope> {
  const [only] = step.sources
  const passed = step.sources.length === 1 ? step.find(only!) : undefined
  if (passed && (await values.open(passed)) === output) return passed
  const packed = await packValue(deps, step.context.id, output, inlineBytes)
  values.keep(packed, output)
  return packed
}

/** Packs an output that another process has written. */
export function packWritten(
  { store }: ValueDeps,
  executionId: string,
  written: WrittenOutput,
): Promise<Envelope> {
  return storeOutput(store, executionId, written)
}

/** Packs a value of the run. Throws a NodeFailure (OutputTooLarge) if it is too big or too deep. */
export async function packValue(
  { store }: ValueDeps,
  executionId: string,
  value: unknown,
  inlineBytes: number,
): Promise<Envelope> {
  try {
    return await packOutput(store, executionId, value, inlineBytes)
  } catch (error) {
    if (error instanceof RangeError) throw new NodeFailure(error.message, { type: 'OutputTooLarge' })
    throw error
  }
}
