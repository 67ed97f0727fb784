import { MAX_LOOP_DEPTH } from '../graph/graph.ts'
import type { SourceLink, SourceNode } from './document.ts'
import type { LoopBlock } from './loops.ts'
import { isTrigger } from './nodetypes.ts'
import { findSides, type Readers } from './readers.ts'

/**
 * Nodes that n8n repeats because a connection leads back to the first of them: the way of polling, of trying again, and
 * of asking for one page after the other.
 */
export type CircleBlock = {
  /** The node by which all rounds begin, the only one that is reached from outside. */
  head: string
  members: Set<string>
  /** Members that lead nowhere back: they hang on an output that also leads round, and are executed in each round. */
  beside: string[]
}

/** Node types that read their inputs one by one. */
export const SEVERAL_INPUTS = new Set(['merge', 'compareDatasets'])

type Blocks = { loops: ReadonlyMap<string, LoopBlock>; refused: ReadonlyMap<string, string> }

/**
 * The circles that a REPEAT can go round, inner ones too, by the name of their head. All others are left out: those
 * that are entered at several nodes, and those that overlap a loop. The connections that end a batch of a Loop Over
 * Items node make no circle.
 */
export function findCircles(
  nodes: SourceNode[],
  links: SourceLink[],
  blocks: Blocks,
): Map<string, CircleBlock> {
  const byName = new Map(nodes.map((node) => [node.name, node]))
  const { loops } = blocks
  const forward = links.filter(({ from, to }) => !loops.get(to)?.members.has(from) && byName.has(to))
  const found = new Map<string, CircleBlock>()
  const search = (names: Set<string>, inner: SourceLink[]) => {
    for (const part of findParts(names, inner)) {
      const circle = readCircle(part, forward, byName, blocks)
      if (!circle) continue
      found.set(circle.head, circle)
      const rest = inner.filter(
        ({ from, to }) => circle.members.has(from) && circle.members.has(to) && to !== circle.head,
      )
      search(circle.members, rest)
    }
  }
  search(new Set(byName.keys()), forward)
  for (const [head] of found) {
    const around = [...loops.values(), ...found.values()].filter(({ members }) => members.has(head))
    if (around.length > MAX_LOOP_DEPTH) found.delete(head)
  }
  return found
}

/** Whether one end of a connection lies in the block, and the other does not. */
const leads = ({ from, to }: SourceLink, members: Set<string>, way: 'in' | 'out') =>
  way === 'in' ? members.has(to) && !members.has(from) : members.has(from) && !members.has(to)

function readCircle(
  part: Set<string>,
  links: SourceLink[],
  byName: Map<string, SourceNode>,
  { loops, refused }: Blocks,
): CircleBlock | undefined {
  const members = new Set(part)
  const outward = Map.groupBy(links, ({ from }) => from)
  const outputOf = ({ from, output }: SourceLink) => JSON.stringify([from, output])
  for (const name of members) for (const one of loops.get(name)?.members ?? []) members.add(one)
  // What hangs on an output that also leads round is done in every round.
  const staying = new Set(links.filter(({ from, to }) => part.has(from) && part.has(to)).map(outputOf))
  for (const link of links.filter((one) => leads(one, members, 'out') && staying.has(outputOf(one))))
    members.add(link.to)
  for (const name of members) {
    if (part.has(name)) continue
    for (const { to } of outward.get(name) ?? []) members.add(to)
  }
  const heads = new Set(links.filter((link) => leads(link, members, 'in')).map(({ to }) => to))
  const [head, ...more] = heads
  if (head === undefined || more.length > 0 || !part.has(head)) return undefined
  if (SEVERAL_INPUTS.has(byName.get(head)!.type)) return undefined
  const isPossible = [...members].every((name) => !isTrigger(byName.get(name)!) && !refused.has(name))
  if (!isPossible || overlaps(members, loops)) return undefined
  const isInLoop = (name: string) =>
    [...loops.values()].some((loop) => loop.members.has(name) && !loop.members.has(head))
  return { head, members, beside: [...members].filter((name) => !part.has(name) && !isInLoop(name)) }
}

/** Whether a loop lies neither within the members, nor around them, nor beside them. */
function overlaps(members: Set<string>, loops: ReadonlyMap<string, LoopBlock>): boolean {
  return [...loops].some(([name, loop]) => {
    const all = [name, ...loop.members]
    const isWithin = all.every((one) => members.has(one))
    const isAround = [...members].every((one) => loop.members.has(one))
    return !isWithin && !isAround && all.some((one) => members.has(one))
  })
}

/** The largest sets of nodes of which each leads to all others, and single ones that lead to themselves. */
function findParts(names: Set<string>, links: SourceLink[]): Set<string>[] {
  const inside = links.filter(({ from, to }) => names.has(from) && names.has(to))
  const ends = (of: 'from' | 'to') => {
    const grouped = Map.groupBy(inside, (link) => link[of])
    return (name: string) => (grouped.get(name) ?? []).map((link) => link[of === 'from' ? 'to' : 'from'])
  }
  const next = ends('from')
  const order = visitAll([...names], next, new Set()).flat()
  const parts = visitAll(order.reverse(), ends('to'), new Set())
  return parts
    .filter((part) => part.length > 1 || next(part[0]!).includes(part[0]!))
    .map((part) => new Set(part))
}

/** For each name that no earlier one has reached, the nodes that it reaches, each after those behind it. */
function visitAll(names: string[], next: (name: string) => string[], seen: Set<string>): string[][] {
  return names.flatMap((first) => {
    if (seen.has(first)) return []
    seen.add(first)
    const done: string[] = []
    const stack = [{ name: first, left: next(first) }]
    for (let top = stack.at(-1); top; top = stack.at(-1)) {
      const name = top.left.shift()
      if (name === undefined) {
        done.push(top.name)
        stack.pop()
      } else if (!seen.has(name)) {
        seen.add(name)
        stack.push({ name, left: next(name) })
      }
    }
    return [done]
  })
}

/** The nodes whose last output is read behind their circle or loop and not in it. In a loop, those that lead back. */
export function findReadBehind(
  circles: ReadonlyMap<string, CircleBlock>,
  loops: ReadonlyMap<string, LoopBlock>,
  links: SourceLink[],
  readers: Readers,
): Set<string> {
  const found = new Set<string>()
  const inward = Map.groupBy(links, ({ to }) => to)
  const blocks = [...[...loops].map(([head, { members }]) => ({ head, members })), ...circles.values()]
  for (const { head, members } of blocks) {
    const inner = [...circles.values(), ...loops.values()].filter(
      (block) => block.members.size < members.size,
    )
    const kept = loops.has(head) && !members.has(head) ? findLeadingTo(head, members, inward) : members
    for (const name of kept) {
      const { inside, outside } = findSides(readers, name, members)
      const isOwn = !loops.has(name) && !inner.some((block) => block.members.has(name))
      if (outside && !inside && isOwn) found.add(name)
    }
  }
  return found
}

/** The members from which a way leads to a node. */
function findLeadingTo(
  name: string,
  members: ReadonlySet<string>,
  inward: ReadonlyMap<string, SourceLink[]>,
): Set<string> {
  const found = new Set<string>()
  const add = (to: string) => {
    for (const { from } of inward.get(to) ?? []) if (members.has(from)) found.add(from)
  }
  add(name)
  for (const one of found) add(one)
  return found
}
