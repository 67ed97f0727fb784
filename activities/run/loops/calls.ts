import type { GraphNode } from '../../../workflows/graph/graph.ts'
import { findItem } from '../../../workflows/input.ts'
import { isObject } from '../../../workflows/json.ts'
import type { Loop } from '../../../workflows/run/frame.ts'
import { itemNodeId } from '../../../workflows/run/plan.ts'
import type { NodeError } from '../../../workflows/run/records.ts'
import { createPacer } from '../../expressions/pace.ts'
import type { NodeResult } from '../../nodes/kit/node.ts'
import { createItemOutput, readCall } from '../items/output.ts'
import type { RunValues } from '../values.ts'
import { gatherNumbered } from './loop.ts'

/** The output of a node that has made a call for each of its items, from the results of the calls. */
export async function gatherCalls(values: RunValues, loop: Loop, node: GraphNode): Promise<NodeResult> {
  const output = createItemOutput(node)
  const pace = createPacer()
  for (const [at, value] of await gatherNumbered(values, loop)) {
    await pace()
    const error = readCallError(value, node.id)
    if (error) output.fail(at, await readLoopItem(values, loop, at), error)
    else output.add(at, undefined, readCall(node, value))
  }
  return output.finish()
}

/** The error in the place of a call's result. No value of a user names the node that works on one item. */
function readCallError(value: unknown, nodeId: string): NodeError | undefined {
  if (!isObject(value) || Object.keys(value).length !== 1 || !isObject(value.error)) return undefined
  return value.error.nodeId === itemNodeId(nodeId) ? (value.error as NodeError) : undefined
}

async function readLoopItem(values: RunValues, { pages }: Loop, at: number): Promise<unknown> {
  const page = pages.findLast(({ from }) => from <= at)
  return page && findItem(values.open, page, at - page.from)
}
