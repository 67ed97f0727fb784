import { MAX_ITEMS } from '../../../workflows/graph/compile.ts'
import type { GraphNode } from '../../../workflows/graph/graph.ts'
import { itemsOf } from '../../../workflows/input.ts'
import { createPacer } from '../../expressions/pace.ts'
import { isTurnedAway } from '../../fairness/turns.ts'
import { NodeFailure } from '../../nodes/kit/failure.ts'
import type { NodeContext, NodeResult, NodeRunner } from '../../nodes/kit/node.ts'
import { isInfrastructure } from '../failures.ts'
import { createBatch } from './batch.ts'
import { createItemOutput } from './output.ts'

/** How many items of a node are worked on together. */
const CHUNK = 5_000

/**
 * Has a node's runner work on each of the items that come to the node. Outputs {items, from} and, for handles
 * other than the main one, `handles`; leaves by all handles with items. A failure is that of the first item that
 * fails, unless onError says that failed items go on.
 */
export async function runPerItem(
  node: GraphNode,
  context: NodeContext,
  runner: NodeRunner,
): Promise<NodeResult> {
  const items = readItems(node, context)
  const output = createItemOutput(node)
  const pace = createPacer()
  for (let from = 0; from < items.length; from += CHUNK) {
    const results = await runChunk(context, runner, items, from)
    for (const [place, result] of results.entries()) {
      await pace()
      const at = from + place
      const isFailure = result instanceof NodeFailure
      if (isFailure && node.onError === 'FAIL') throw items.length === 1 ? result : nameItem(at, result)
      if (result.notes) context.notes.add(result.notes)
      if (isFailure) output.fail(at, items[at], result)
      else output.add(at, items[at], result)
    }
  }
  return output.finish()
}

/** Has a node's runner work once on all items that come to the node. Without items it does not run. */
export async function runOnAll(
  node: GraphNode,
  context: NodeContext,
  runner: NodeRunner,
): Promise<NodeResult> {
  const items = readItems(node, context)
  const output = createItemOutput(node)
  if (items.length === 0) return output.finish()
  const input = { items }
  const bindings = { ...context.bindings, input }
  let result: NodeResult
  try {
    result = await runner({ ...context, input, inputs: [input], bindings })
  } catch (error) {
    const goesOn = node.itemOptions?.errors !== undefined && node.onError !== 'FAIL'
    if (!goesOn || !(error instanceof NodeFailure) || isInfrastructure(error) || isTurnedAway(error))
      throw error
    if (error.notes) context.notes.add(error.notes)
    const passes = node.itemOptions?.errors === 'pass'
    for (const [at, item] of (passes ? items : [{}]).entries()) output.fail(at, item, error)
    return output.finish()
  }
  // What another process has written stays as it is: it is one item.
  if (result.written || result.pause) return result
  if (result.notes) context.notes.add(result.notes)
  output.addAll(items, result)
  return output.finish()
}

function readItems({ itemOptions }: GraphNode, { inputs }: NodeContext): unknown[] {
  const all = inputs.flatMap(itemsOf)
  const items = itemOptions?.firstOnly ? all.slice(0, 1) : all
  if (items.length <= MAX_ITEMS) return items
  const message = `${items.length} items come to the node; at most ${MAX_ITEMS} are allowed`
  throw new NodeFailure(message, { type: 'TooManyItems' })
}

/** The results of up to CHUNK items, or their failures. Throws what is no failure of the node. */
async function runChunk(
  context: NodeContext,
  runner: NodeRunner,
  items: unknown[],
  from: number,
): Promise<(NodeResult | NodeFailure)[]> {
  const chunk = items.slice(from, from + CHUNK)
  const batch = createBatch(context.evaluator, context.bindings)
  for (const _ of chunk) batch.begin()
  const pace = createPacer()
  const running: Promise<NodeResult | NodeFailure | Thrown>[] = []
  for (const [place, item] of chunk.entries()) {
    await pace()
    const bindings = batch.bind({ item, index: from + place })
    const own = { ...context, input: item, inputs: [item], bindings, evaluator: batch.evaluator }
    running.push(runner(own).catch(keepFailure).finally(batch.done))
  }
  const results = await Promise.all(running)
  const thrown = results.find((result) => 'thrown' in result)
  if (thrown) throw thrown.thrown
  return results as (NodeResult | NodeFailure)[]
}

/** An error that is not a failure of an item. It is thrown when all others are done. */
type Thrown = { thrown: unknown }

function keepFailure(error: unknown): NodeFailure | Thrown {
  if (!(error instanceof NodeFailure) || isInfrastructure(error) || isTurnedAway(error))
    return { thrown: error }
  return error
}

function nameItem(
  at: number,
  { message, type, retryable, retryAfterMs, notes, cause }: NodeFailure,
): NodeFailure {
  const more = {
    ...(notes === undefined ? {} : { notes }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    ...(cause === undefined ? {} : { cause }),
  }
  return new NodeFailure(`Item ${at}: ${message}`, { type, retryable, ...more })
}
