import type { Box, Point, Size } from './place.ts'

export const NOTE_COLOURS = ['yellow', 'orange', 'red', 'green', 'blue', 'purple', 'grey'] as const
export type NoteColour = (typeof NOTE_COLOURS)[number]
/** `position` is the note's upper left corner on the canvas. */
export type Note = { id: string; text: string; position: Point; size: Size; colour: NoteColour }

type Places = ReadonlyMap<string, Box>

/**
 * The notes once the nodes stand elsewhere: one that lies around nodes is put around them again, another one goes with
 * the node that is nearest to it.
 */
export function followNodes<N extends Omit<Note, 'id' | 'text'>>(
  notes: readonly N[],
  before: Places,
  after: Places,
): N[] {
  const ids = [...before.keys()].filter((id) => after.has(id))
  const stay = ids.every(
    (id) => before.get(id)!.x === after.get(id)!.x && before.get(id)!.y === after.get(id)!.y,
  )
  if (stay) return [...notes]
  return notes.map((note) => {
    const frame = { ...note.position, ...note.size }
    const inside = ids.filter((id) => holds(frame, centreOf(before.get(id)!)))
    if (inside.length > 0) return surround(note, frame, inside, before, after)
    const nearest = findNearest(frame, ids, before)
    if (nearest === undefined) return note
    const [from, to] = [before.get(nearest)!, after.get(nearest)!]
    const position = { x: Math.round(frame.x + to.x - from.x), y: Math.round(frame.y + to.y - from.y) }
    return { ...note, position }
  })
}

function surround<N extends Pick<Note, 'position' | 'size'>>(
  note: N,
  frame: Box,
  ids: string[],
  before: Places,
  after: Places,
): N {
  const old = bound(ids.map((id) => before.get(id)!))
  const young = bound(ids.map((id) => after.get(id)!))
  // Around them there is as much room as before; what stuck out has a little now.
  const room = (length: number) => Math.round(Math.max(16, length))
  const left = room(old.x - frame.x)
  const top = room(old.y - frame.y)
  const right = room(frame.x + frame.width - old.x - old.width)
  const bottom = room(frame.y + frame.height - old.y - old.height)
  return {
    ...note,
    position: { x: Math.round(young.x) - left, y: Math.round(young.y) - top },
    size: {
      width: Math.round(young.width) + left + right,
      height: Math.round(young.height) + top + bottom,
    },
  }
}

function bound(places: readonly Box[]): Box {
  const x = Math.min(...places.map((one) => one.x))
  const y = Math.min(...places.map((one) => one.y))
  const width = Math.max(...places.map((one) => one.x + one.width)) - x
  const height = Math.max(...places.map((one) => one.y + one.height)) - y
  return { x, y, width, height }
}

function centreOf({ x, y, width, height }: Box): Point {
  return { x: x + width / 2, y: y + height / 2 }
}

function holds(frame: Box, { x, y }: Point): boolean {
  return x >= frame.x && x <= frame.x + frame.width && y >= frame.y && y <= frame.y + frame.height
}

function findNearest(frame: Box, ids: readonly string[], places: Places): string | undefined {
  const gap = (from: number, size: number, at: number, length: number) =>
    Math.max(0, at - from - size, from - at - length)
  let best: { id: string; far: number } | undefined
  for (const id of ids) {
    const { x, y, width, height } = places.get(id)!
    const far = Math.hypot(gap(frame.x, frame.width, x, width), gap(frame.y, frame.height, y, height))
    if (!best || far < best.far) best = { id, far }
  }
  return best?.id
}
