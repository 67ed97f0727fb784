import { useCallback, useState } from 'react'
import type { Acts } from './graph/acts.ts'
import type { Target } from './graph/edits.ts'
import { isLoop, type NodeTypes, nameNode } from './graph/kinds.ts'
import type { EditorNode } from './graph/model.ts'
import type { EditorStore } from './graph/store.ts'
import type { Sight } from './sight.ts'

/** Where the node goes that the palette adds: `free` leaves it to what is selected by then. */
export type Wanted = Target | 'free'

/** The palette's place, null while it is closed, and what adds a node there. */
export function useAdding(store: EditorStore, types: NodeTypes, acts: Acts, sight: Sight) {
  const [target, setTarget] = useState<Wanted | null>(null)
  /** Behind the chosen node, into the chosen empty loop, else into the middle of what one sees. */
  const resolve = (wanted: Wanted, type: string): Target => {
    if (wanted !== 'free') return wanted
    const anchor = acts.anchor()
    if (!anchor || types.get(type)?.kind === 'trigger') return { at: sight.centre(), free: true }
    const { nodes } = store.get().draft
    const empty = isLoop(anchor.type) && !nodes.some(({ parentId }) => parentId === anchor.id)
    return empty ? { inside: anchor.id } : { after: acts.freeEnd(anchor) }
  }
  return {
    target,
    ask: setTarget,
    close: useCallback(() => setTarget(null), []),
    add(type: string) {
      sight.reveal(acts.add(type, resolve(target ?? 'free', type)))
      setTarget(null)
    },
  }
}

/** Says where a node is added. */
export function tellTarget(target: Wanted, { anchor, nodeOf }: Acts): string {
  const name = (id: string) => nameNode(nodeOf(id) ?? { id })
  if (target === 'free') {
    const before: EditorNode | undefined = anchor()
    return before ? `After ${nameNode(before)}` : 'Onto the canvas'
  }
  if ('after' in target && target.after) {
    const { id, handle } = target.after
    return `After ${name(id)}${handle ? `, ${handle}` : ''}`
  }
  if ('edge' in target) return `Between ${name(target.edge.source)} and ${name(target.edge.target)}`
  return 'inside' in target ? `Inside ${name(target.inside)}` : 'Onto the canvas'
}
