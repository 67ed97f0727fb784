import type { ValueChange } from './diff.ts'

/** A sticky note: where its upper left corner is, and its size, in the units of the nodes' positions. */
export type CanvasNote = {
  id: string
  /** Markdown. */
  text: string
  position: { x: number; y: number }
  size: { width: number; height: number }
  colour: NoteColour
}

export const NOTE_COLOURS = ['yellow', 'orange', 'red', 'green', 'blue', 'purple', 'grey'] as const
export type NoteColour = (typeof NOTE_COLOURS)[number]

export const MAX_NOTES = 100
export const MAX_NOTE_TEXT = 5_000
export const MAX_NOTE_SIZE = 10_000

export type NotesDiff = {
  added: CanvasNote[]
  removed: CanvasNote[]
  changed: { id: string; changes: ValueChange[] }[]
}

/** The changes that lead from the notes of one version to those of another. */
export function compareNotes(from: CanvasNote[], to: CanvasNote[]): NotesDiff {
  const before = new Map(from.map((note) => [note.id, note]))
  const after = new Set(to.map(({ id }) => id))
  return {
    added: to.filter(({ id }) => !before.has(id)),
    removed: from.filter(({ id }) => !after.has(id)),
    changed: to.flatMap((note) => {
      const old = before.get(note.id)
      const changes = old ? listChanges(old, note) : []
      return changes.length > 0 ? [{ id: note.id, changes }] : []
    }),
  }
}

function listChanges(old: CanvasNote, young: CanvasNote): ValueChange[] {
  const flat = ({ text, colour, position, size }: CanvasNote) => ({
    ...{ text, colour, 'position.x': position.x, 'position.y': position.y },
    ...{ 'size.width': size.width, 'size.height': size.height },
  })
  const [from, to] = [flat(old), flat(young)]
  const paths = Object.keys(from) as (keyof typeof from)[]
  return paths
    .filter((path) => from[path] !== to[path])
    .map((path) => ({ path, from: from[path], to: to[path] }))
}
