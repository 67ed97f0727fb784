import type { ItemAnalysis } from './items/analysis.ts'

/**
 * Gives every n8n node an id that is close to its name and needs no backticks in expressions. Also sets the
 * ids of the loops.
 */
export function nameNodes({ order, loops }: ItemAnalysis): Map<string, string> {
  const taken = new Set<string>()
  const take = (wanted: string) => {
    let id = wanted
    for (let i = 2; taken.has(id); i++) id = `${wanted}_${i}`
    taken.add(id)
    return id
  }
  const ids = new Map(order.map(({ name }) => [name, take(writeId(name))]))
  for (const loop of loops) {
    loop.id = loop.loopNode ? ids.get(loop.source)! : take(`each_${ids.get([...loop.members][0]!)}`)
  }
  return ids
}

function writeId(name: string): string {
  const plain = name
    .replace(/[^A-Za-z0-9]+/g, '_')
    .replace(/^_+|_+$/g, '')
    .slice(0, 60)
  // A graph refuses these words as ids. It also refuses `__proto__`, which has lost its underscores here.
  const isAllowed = /^[A-Za-z]/.test(plain) && plain !== 'constructor' && plain !== 'prototype'
  return isAllowed ? plain : `node_${plain}`
}

/** The id of the node from which inner loops read the item of a loop: `$item` is their own item. */
export function nameItemNode({ id }: { id: string }): string {
  return `${id}__item`
}
