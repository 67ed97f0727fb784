import { setTimeout as sleep } from 'node:timers/promises'
import type { ReplyPiece } from '../../db/chat/chunks.ts'
import type { MaskedPieces } from '../../db/redaction/exact.ts'
import { countCharacters, sliceText } from './assembly.ts'
import {
  addPiece,
  CHUNK,
  FLUSH_MS,
  flushReply,
  type OpenReply,
  type ReplySpot,
  storeOpenings,
  type WaitingText,
  type WriterDeps,
  type Writers,
} from './storing.ts'

/** The writers of all replies that come in this process. None of them ever waits for PostgreSQL, or fails with it. */
export function createReplyWriters(deps: WriterDeps) {
  const writers: Writers = {
    ...deps,
    ...{ waiting: new Set(), openings: new Set(), writing: new Map(), opening: false, units: 0 },
    ...{ savedAt: Number.NEGATIVE_INFINITY, timer: undefined, saving: undefined },
    stored: Promise.withResolvers(),
  }
  const { waiting, writing } = writers
  const flushAll = () => Promise.all([...waiting].map((from) => flushReply(writers, from)))
  return {
    /** Begins the text of one attempt. If it is not the first one, that alone takes away the text of those before. */
    open: (spot: ReplySpot, mask: MaskedPieces) => openReply(writers, spot, mask),

    /** Ends the texts of a reply that come in this process: they are not wanted any longer. */
    cut(executionId: string): void {
      for (const reply of [...(writing.get(executionId) ?? [])]) void reply.cut()
    },

    /** The pieces of a reply that are not stored yet, or about to be. */
    *listWaiting(executionId: string): Generator<ReplyPiece> {
      for (const { spot, pieces, isOpen } of waiting)
        if (isOpen && spot.executionId === executionId) yield* pieces
    },

    /** Resolves when all that was written so far is stored, or cannot be in time. */
    async flush(): Promise<void> {
      await flushAll()
    },

    /** Does the same, and stores nothing more. */
    async stop(): Promise<void> {
      await flushAll()
      clearTimeout(writers.timer)
      await Promise.race([writers.saving, sleep(FLUSH_MS, undefined, { ref: false })])
    },
  }
}

function openReply(writers: Writers, spot: ReplySpot, mask: MaskedPieces): OpenReply {
  const { executionId, ...place } = spot
  const own: WaitingText = { spot, pieces: [], units: 0, seq: 0, isLost: false, isOpen: false }
  let position = 0
  let isOver = false
  /** The first half of a character of which the second half has not come yet. */
  let half = ''

  function tell(text: string, isLast = false): void {
    let rest = text.replaceAll('\0', '\uFFFD')
    do {
      const part = sliceText(rest, 0, CHUNK)
      rest = rest.slice(part.length)
      const piece = { ...place, position, text: part, isLast: isLast && rest === '' }
      position += countCharacters(part)
      addPiece(writers, own, piece)
      if (own.isOpen) writers.hear(executionId, piece)
    } while (rest !== '')
  }

  function write(given: string): void {
    const text = half + mask.next(given)
    half = /[\uD800-\uDBFF]$/.test(text) ? text.slice(-1) : ''
    const whole = text.slice(0, text.length - half.length).toWellFormed()
    if (whole !== '') tell(whole)
  }

  function close(rest: string): void {
    isOver = true
    remove(writers.writing, executionId, reply)
    tell(rest, true)
  }

  const reply: OpenReply = {
    write(text) {
      if (!isOver) write(text)
    },
    flush: () => flushReply(writers, own),
    end() {
      if (!isOver) close((half + mask.end()).toWellFormed())
    },
    cut() {
      if (!isOver) close('')
      return flushReply(writers, own)
    },
  }
  writers.writing.set(executionId, (writers.writing.get(executionId) ?? new Set()).add(reply))
  writers.openings.add(own)
  void storeOpenings(writers)
  if (spot.attempt > 1) tell('')
  return reply
}

function remove<T>(sets: Map<string, Set<T>>, key: string, one: T): void {
  const set = sets.get(key)
  if (set?.delete(one) && set.size === 0) sets.delete(key)
}
