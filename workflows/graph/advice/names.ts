import type { PlacedElement } from '../elements.ts'
import type { GraphNode } from '../graph.ts'

const ACRONYMS = new Set(['HTTP', 'CSV', 'JSON', 'XML', 'HTML', 'LLM', 'AI'])

/**
 * Names the nodes that have no name (an empty string) after their type and the first number that is free: "Set 2".
 * A node that is in `known` keeps the name that it was given so there.
 */
export function nameUnnamed(nodes: PlacedElement<GraphNode>[], known: GraphNode[]): void {
  const names = new Map(known.map(({ id, type, name }) => [`${type} ${id}`, name]))
  const taken = new Set(nodes.map(({ value }) => value.name))
  const unnamed = nodes.filter(({ value }) => value.name === '')
  for (const { value } of unnamed) {
    const name = names.get(`${value.type} ${value.id}`)
    if (name === undefined || !isGiven(name, value.type)) continue
    value.name = name
    taken.add(name)
  }
  const counts = new Map<string, number>()
  for (const { value } of unnamed) {
    if (value.name !== '') continue
    const title = titleOf(value.type)
    let number = (counts.get(title) ?? 0) + 1
    while (taken.has(`${title} ${number}`)) number++
    counts.set(title, number)
    value.name = `${title} ${number}`
    taken.add(value.name)
  }
}

/** Whether a node of this type got its name because it had none. Earlier releases gave it that of its type. */
function isGiven(name: string, type: string): boolean {
  const title = titleOf(type)
  return name === type || (name.startsWith(`${title} `) && /^[1-9]\d*$/.test(name.slice(title.length + 1)))
}

/** HTTP_REQUEST -> HTTP request */
function titleOf(type: string): string {
  const words = type
    .split('_')
    .map((word) => (ACRONYMS.has(word) ? word : word.toLowerCase()))
    .join(' ')
  return words.slice(0, 1).toUpperCase() + words.slice(1)
}
