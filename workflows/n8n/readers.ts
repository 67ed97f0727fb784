import { TURN_UNITS, type Work } from '../turns.ts'
import type { SourceWorkflow } from './document.ts'

/** For names of nodes, the nodes whose parameters have the name: they may read the node. */
export type Readers = ReadonlyMap<string, ReadonlySet<string>>

/** The units of work for looking through a character for a name. */
const CHARACTER_WORK = 0.001

/** Looks through the parameters of all nodes once for each name. */
export function* findReaders({ nodes }: SourceWorkflow, names: Iterable<string>): Work<Readers> {
  yield TURN_UNITS
  const texts = nodes.map(({ name, parameters }) => ({ name, text: JSON.stringify(parameters) }))
  const size = texts.reduce((sum, { text }) => sum + text.length, 0)
  const readers = new Map<string, Set<string>>()
  for (const name of new Set(names)) {
    yield Math.min(TURN_UNITS, texts.length + CHARACTER_WORK * size)
    const written = JSON.stringify(name).slice(1, -1)
    const found = texts.filter(({ text }) => text.includes(written))
    readers.set(name, new Set(found.map((one) => one.name)))
  }
  return readers
}

/** Whether any of the members may read the node, and whether any other node may. */
export function findSides(
  readers: Readers,
  name: string,
  members: ReadonlySet<string>,
): { inside: boolean; outside: boolean } {
  const all = [...(readers.get(name) ?? [])]
  return {
    inside: all.some((reader) => members.has(reader)),
    outside: all.some((reader) => !members.has(reader)),
  }
}
