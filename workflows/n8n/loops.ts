import { MAX_LOOP_DEPTH } from '../graph/graph.ts'
import type { SourceLink, SourceNode } from './document.ts'
import { plainText } from './texts.ts'

/** A Loop Over Items node, and the nodes that n8n executes for each of its batches. */
export type LoopBlock = {
  node: SourceNode
  members: Set<string>
  /** The name of the Loop Over Items node around it. */
  within: string | undefined
}

/** The outputs of a Loop Over Items node (splitInBatches): version 3 swapped them. */
export function readLoopOutputs({ version }: SourceNode): { loop: number; done: number } {
  return version >= 3 ? { loop: 1, done: 0 } : { loop: 0, done: 1 }
}

/** How many items a batch of a Loop Over Items node has. Throws an Error that says why it cannot become a loop here. */
export function readBatchSize(node: SourceNode): number {
  const { batchSize = 1, options } = node.parameters
  const size = Number(plainText(batchSize))
  if (!Number.isInteger(size) || size < 1)
    throw new Error('the size of its batches is not known before it is executed')
  const { reset = false } = Object(options)
  if (reset !== false && !resetsWhenDone(node))
    throw new Error('it begins again in the middle of its loop ("reset")')
  return size
}

/** Whether a loop begins again when it is over and comes to items once more, as each does here. */
export function resetsWhenDone({ name, parameters }: SourceNode): boolean {
  const read =
    /^=\s*\{\{\s*\$(?:node\[|\()\s*(["'])(.*?)\1\s*[\])]\.context(?:\.done|\[\s*["']done["']\s*\])\s*;?\s*\}\}\s*$/
  return read.exec(String(Object(parameters.options).reset))?.[2] === name
}

/** Why no loop can begin with this node, whatever is connected to it. */
function findStop(node: SourceNode): string | undefined {
  if (node.version < 2) return 'its first version loops with an If node on noItemsLeft: loop with FOR_EACH'
  try {
    readBatchSize(node)
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}

/** The loops of a workflow, by the name of their node; and why others cannot become one. */
export function findLoops(
  nodes: SourceNode[],
  links: SourceLink[],
): { loops: Map<string, LoopBlock>; refused: Map<string, string> } {
  const loops = new Map<string, LoopBlock>()
  const refused = new Map<string, string>()
  const outward = Map.groupBy(links, ({ from }) => from)
  const reach = (from: SourceLink[], stop: string) => {
    const found = new Set(from.map(({ to }) => to).filter((name) => name !== stop))
    for (const name of found) for (const { to } of outward.get(name) ?? []) if (to !== stop) found.add(to)
    return found
  }
  for (const node of nodes.filter(({ type }) => type === 'splitInBatches')) {
    const { loop, done } = readLoopOutputs(node)
    const own = outward.get(node.name) ?? []
    const members = reach(
      own.filter(({ output }) => output === loop),
      node.name,
    )
    const after = reach(
      own.filter(({ output }) => output === done),
      node.name,
    )
    const isEntered = links.some(
      ({ from, to }) => members.has(to) && !members.has(from) && from !== node.name,
    )
    const comesBack = links.some(({ from, to }) => members.has(from) && to === node.name)
    const stop = findStop(node)
    if (stop !== undefined) refused.set(node.name, stop)
    else if ([...after].some((name) => members.has(name)))
      refused.set(node.name, 'the nodes behind its output "done" are also in the loop: loop with FOR_EACH')
    else if (isEntered)
      refused.set(node.name, 'a connection leads from outside into its loop: loop with FOR_EACH')
    else if (!comesBack && members.size > 0)
      refused.set(node.name, 'nothing leads back to it from its loop, so that n8n executes only one batch')
    else loops.set(node.name, { node, members, within: undefined })
  }
  for (const [name, loop] of loops) {
    const around = [...loops].filter(([, other]) => other.members.has(name) && other !== loop)
    const [inner] = around.sort(([, a], [, b]) => a.members.size - b.members.size)
    if (inner && [...loop.members].some((member) => !inner[1].members.has(member))) {
      loops.delete(name)
      refused.set(name, 'its loop and another one overlap: loop with FOR_EACH')
    } else loop.within = inner?.[0]
  }
  for (const name of loops.keys()) {
    const around = [...loops.values()].filter(({ members }) => members.has(name))
    if (around.length < MAX_LOOP_DEPTH) continue
    refused.set(name, `it is in ${MAX_LOOP_DEPTH} loops already, and more are not allowed`)
  }
  for (const name of refused.keys()) loops.delete(name)
  return { loops, refused }
}
