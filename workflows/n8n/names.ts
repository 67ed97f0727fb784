import type { SourceNode } from './document.ts'
import { type Code, fail, type Names } from './javascript.ts'
import type { Layout, Loop } from './layout.ts'
import { type Built, itemNode, type Mapper, outputOf } from './mapper.ts'

/** Nodes that put out the items they get, or some of them. */
const KEEPS = new Set(['filter', 'sort', 'limit', 'removeDuplicates', 'splitInBatches'])

/** How the expressions of one node read items and other nodes. */
export function createNames({
  layout,
  built,
  node,
  current,
  mapperOf,
}: {
  layout: Layout
  built: ReadonlyMap<string, Built>
  node: SourceNode
  current: string
  mapperOf: (node: SourceNode) => Mapper
}): Names {
  const unknown = (text: string): Code => ({ text, hint: 'unknown' })
  const loop = layout.loopOf(node.name)

  function isAround(name: string): boolean {
    for (let around = loop; around; around = around.within) if (around.own?.name === name) return true
    return false
  }

  /** The current item of the loop around this node that goes through another node's output, as it was handed on. */
  function findItem(name: string): Code | undefined {
    for (let around = loop; around; around = around.within) {
      if (!isFedBy(around, name)) continue
      if (around === loop) return unknown('$item')
      return around.own && unknown(outputOf(itemNode(around)))
    }
  }

  function isFedBy(around: Loop, name: string): boolean {
    let at: string | undefined = around.own ? around.own.name : around.source
    for (let steps = 0; at !== undefined && steps < 500; steps++) {
      if (at === name) return true
      const here: SourceNode = built.get(at)!.source
      if (!KEEPS.has(here.type) && !mapperOf(here).same) return false
      const before: string[] = layout
        .inputsOf(at)
        .flat()
        .map(({ link }) => link.from)
      at = before.length === 1 ? before[0] : undefined
    }
    return false
  }

  return {
    current: () => unknown(current),
    index: () => (loop ? { text: '$index', hint: 'number' } : { text: '0', hint: 'number' }),
    ran: (name) => ({ text: `$exists(${reach(name).text})`, hint: 'boolean' }),
    other(name, which) {
      // In its body a splitInBatches has put out the batch alone.
      const whole = which === 'all' || (which !== 'item' && !isAround(name))
      const item = whole ? undefined : findItem(name)
      const { text, card } = reach(name)
      if (item) return item
      if (card === 'one') return which === 'all' ? fail(`reads all items of "${name}"`) : unknown(text)
      if (which === 'first' || which === 'last') return unknown(`${text}[${which === 'first' ? 0 : -1}]`)
      return fail(
        `reads ${which === 'all' ? 'all items' : 'the paired item'} of "${name}", which puts out a list`,
      )
    },
  }

  function reach(name: string): { text: string; card: 'one' | 'many' } {
    const other = built.get(name)
    if (!other || !layout.upstreamOf(node.name).has(name)) {
      return fail(`reads the node "${name}", which does not come before it`)
    }
    const theirs = layout.loopOf(name)
    let around = loop
    while (around && around !== theirs) around = around.within
    if (theirs && !around) return fail(`reads the node "${name}", which runs once for each item of a loop`)
    const { output } = layout.flowOf(name)
    return { text: outputOf(other.exit, output.path), card: output.card }
  }
}
