import { mergeNodeNotes } from '../../../workflows/notes.ts'
import type { NodeNotes } from '../../../workflows/run/records.ts'

/** Collects the notes of one step or attempt of a node, whether it succeeds or not. */
export type NoteKeeper = {
  add(notes: NodeNotes): void
  /** The collected notes, to be spread into a record or result: nothing if there are no notes. */
  kept(): { notes?: NodeNotes }
}

export function createNoteKeeper(): NoteKeeper {
  let notes: NodeNotes | undefined
  return {
    add(more) {
      notes = mergeNodeNotes(notes, more)
    },
    kept: () => (notes ? { notes } : {}),
  }
}
