import { listOwnItems } from '../kit/items.ts'
import type { NodeContext } from '../kit/node.ts'
import type { Placed } from './matches.ts'

/** The items of each input of a node: from its config's `inputs`, else those of the taken edges. */
export async function readLists({ config, inputs, bindings, evaluator }: NodeContext): Promise<Placed[][]> {
  const given = config.inputs === undefined ? inputs : await evaluator.render(config.inputs, bindings)
  let place = 0
  return (given as unknown[]).map((input) => listOwnItems([input]).map((item) => ({ item, from: [place++] })))
}
