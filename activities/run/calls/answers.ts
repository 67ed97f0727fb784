import { readNodeNotes } from '../../../workflows/notes.ts'
import type { NodeNotes } from '../../../workflows/run/records.ts'
import type { NodeResult } from '../../nodes/kit/node.ts'

/** The most that an answer may have to travel in the heartbeat details, in bytes of JSON. */
const MAX_BYTES = 256 * 1024

/**
 * The most that the answers of one run may have together, as far as this process knows of them. Temporal keeps
 * heartbeat details with the state of the run, and terminates a run whose state has more than 8 MB; other
 * processes may stop at the same time.
 */
const MAX_RUN_BYTES = 2 * 1024 * 1024

/**
 * An answer that could not be stored before its process stopped, as the heartbeat details carry it to the next
 * attempt. They are sealed like all that Temporal gets. `zipped` is in base64.
 */
export type KeptAnswer = { handle: string | null; notes?: NodeNotes } & (
  | { output: unknown }
  | { written: { bytes: number; hash: string; zipped: string } }
)

/** Which answers of which runs travel, by the names of their calls. */
export type AnswerRoom = {
  /**
   * The answer of a call, to travel. Undefined if it is too large or too deep for that, or if others of its run
   * have taken the room.
   */
  keep(runId: string, call: string, answer: NodeResult): KeptAnswer | undefined
  /** An earlier attempt has kept this answer: it travels already. */
  carry(runId: string, call: string, kept: KeptAnswer): void
  /** The answer of the call travels no more. */
  free(runId: string, call: string): void
}

export function createAnswerRoom(): AnswerRoom {
  const runs = new Map<string, Map<string, number>>()

  function note(runId: string, call: string, bytes: number): void {
    const known = runs.get(runId)
    if (known) known.set(call, bytes)
    else runs.set(runId, new Map([[call, bytes]]))
  }

  return {
    keep(runId, call, answer) {
      const kept = keepAnswer(answer)
      const known = runs.get(runId)
      if (!kept || known?.has(call)) return kept
      const bytes = weighAnswer(kept)
      const taken = [...(known?.values() ?? [])].reduce((sum, other) => sum + other, 0)
      if (taken + bytes > MAX_RUN_BYTES) return undefined
      note(runId, call, bytes)
      return kept
    },
    carry: (runId, call, kept) => note(runId, call, weighAnswer(kept)),
    free(runId, call) {
      const known = runs.get(runId)
      known?.delete(call)
      if (known?.size === 0) runs.delete(runId)
    },
  }
}

function weighAnswer(kept: KeptAnswer): number {
  return Buffer.byteLength(JSON.stringify(kept))
}

function keepAnswer(answer: NodeResult): KeptAnswer | undefined {
  const { handle = null, written, output = null, notes } = answer
  if (written && (written.zipped.byteLength * 4) / 3 > MAX_BYTES) return undefined
  const kept: KeptAnswer = written
    ? { handle, written: { ...written, zipped: Buffer.from(written.zipped).toString('base64') } }
    : { handle, output }
  if (notes) kept.notes = notes
  try {
    return weighAnswer(kept) <= MAX_BYTES ? kept : undefined
  } catch {
    return undefined
  }
}

/**
 * Reads an answer from heartbeat details. Undefined if it does not have the form of one: a client with access to
 * Temporal can put another payload of the same run in the place of the details.
 */
export function readKept(given: unknown): KeptAnswer | undefined {
  const kept = given as Partial<Record<'handle' | 'output' | 'written' | 'notes', unknown>> | null | undefined
  if (typeof kept !== 'object' || kept === null) return undefined
  const { handle, written } = kept
  if (handle !== null && typeof handle !== 'string') return undefined
  const notes = readNodeNotes(kept.notes)
  const noted = notes ? { notes } : {}
  if ('output' in kept) return { handle, output: kept.output, ...noted }
  const { bytes, hash, zipped } = (written ?? {}) as Record<string, unknown>
  if (typeof bytes !== 'number' || typeof hash !== 'string' || typeof zipped !== 'string') return undefined
  return { handle, written: { bytes, hash, zipped }, ...noted }
}

/** The answer that an attempt has left to the next one. */
export function openAnswer(kept: KeptAnswer): NodeResult {
  const { notes } = kept
  const head = { ...(kept.handle === null ? {} : { handle: kept.handle }), ...(notes ? { notes } : {}) }
  if ('output' in kept) return { ...head, output: kept.output }
  return { ...head, written: { ...kept.written, zipped: Buffer.from(kept.written.zipped, 'base64') } }
}
