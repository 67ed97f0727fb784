import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { openTexts, type ReplyChunk, type ReplyPiece, type Stored, saveChunks } from '../../db/chat/chunks.ts'
import { judgeError } from '../../db/operation/outage.ts'
import type { Store } from '../../db/scope.ts'
import type { ReplyWriter } from '../agents/reply.ts'
import { countCharacters } from './assembly.ts'

/** At most one statement of a process in this time stores, and tells of, what all its replies have got. */
const PAUSE_MS = 100
const AWAY_MS = 1_000

/** How long to wait before trying again what another transaction holds up. */
const HELD_MS = 20

/** The longest text of a chunk in characters, and the most chunks of one statement. */
export const CHUNK = 8_192
const CHUNKS_AT_ONCE = 128
const OPENINGS_AT_ONCE = 1_000

/**
 * The most text, in UTF-16 units, that may wait to be stored: of one reply, and in all. Text beyond that is dropped,
 * with the rest of its reply: readers in other processes get it from the saved reply.
 */
const MOST_WAITING = 4_000_000
const MOST_WAITING_IN_ALL = 16_000_000

/** The longest wait until what was written is stored. */
export const FLUSH_MS = 1_000

/** Where in its reply a text belongs; see ReplyPiece. */
export type ReplySpot = { executionId: string; step: number; attempt: number; after: number }

/**
 * The writer of one attempt. After `end` or `cut` nothing more is taken, and once what was written is stored, that is
 * too. So what saves a reply that was stopped can wait for all that readers have seen of it.
 */
export type OpenReply = ReplyWriter & {
  /** The text is whole. */
  end(): void
  /** There is no more: the attempt has failed, or is not wanted any longer. Resolves like `flush`. */
  cut(): Promise<void>
}

/** A text of which pieces wait to be stored. */
export type WaitingText = {
  spot: ReplySpot
  pieces: ReplyPiece[]
  units: number
  seq: number
  /** Nothing more of it is stored. */
  isLost: boolean
  /** It is stored that it has begun: from then on it is heard in this process before it is stored. */
  isOpen: boolean
}

export type WriterDeps = {
  store: Pick<Store, 'db'>
  /** The id of this process among those that follow executions. */
  watcher: string
  log: Logger
  /** Gets each piece at once. */
  hear: (executionId: string, piece: ReplyPiece) => void
}

/** What the writers of a process share. */
export type Writers = WriterDeps & {
  /** The texts that have pieces to be stored, the one whose turn it is first. */
  waiting: Set<WaitingText>
  /** The texts of which it is to be stored that they have begun. */
  openings: Set<WaitingText>
  /** The writers that are open, by execution. */
  writing: Map<string, Set<OpenReply>>
  /** Whether openings are being stored. */
  opening: boolean
  /** How much text waits in all, in UTF-16 units. */
  units: number
  /** When pieces were stored last, by the process's clock. */
  savedAt: number
  timer: NodeJS.Timeout | undefined
  saving: Promise<void> | undefined
  /** Resolves when the next statement is over. */
  stored: PromiseWithResolvers<void>
}

/** Stores of all texts that begin that they do, without delay: their readers wait for it. */
export async function storeOpenings(writers: Writers): Promise<void> {
  const { openings, store } = writers
  if (writers.opening) return
  writers.opening = true
  // Those that begin in the same moment go together.
  await Promise.resolve()
  while (openings.size > 0) {
    const taken = [...openings].slice(0, OPENINGS_AT_ONCE)
    try {
      const states = await openTexts(
        store,
        taken.map(({ spot }) => spot),
      )
      for (const from of taken) noteStored(writers, from, states.get(from.spot.executionId))
      if (taken.every((from) => openings.has(from))) await sleep(HELD_MS, undefined, { ref: false })
    } catch (error) {
      if (judgeError(error) !== 'final') await sleep(AWAY_MS, undefined, { ref: false })
      else for (const from of taken) lose(writers, from)
    }
  }
  writers.opening = false
}

/** Notes what became of a text that was to be stored. True: it was. */
function noteStored(writers: Writers, from: WaitingText, stored: Stored | undefined): boolean {
  if (stored === 'over') lose(writers, from)
  if (stored !== 'stored') return false
  writers.openings.delete(from)
  if (from.isOpen || from.isLost) return true
  from.isOpen = true
  for (const piece of from.pieces) writers.hear(from.spot.executionId, piece)
  return true
}

function scheduleSave(writers: Writers): void {
  if (writers.timer || writers.saving) return
  writers.timer = setTimeout(
    () => {
      writers.timer = undefined
      writers.saving = save(writers).finally(() => {
        writers.saving = undefined
        if (writers.waiting.size > 0) scheduleSave(writers)
      })
    },
    Math.max(0, writers.savedAt + PAUSE_MS - performance.now()),
  )
}

async function save(writers: Writers): Promise<void> {
  const { store, watcher, log } = writers
  writers.savedAt = performance.now()
  const taken = takeSome(writers.waiting)
  try {
    const states = await saveChunks(
      store,
      watcher,
      taken.flatMap(({ chunks }) => chunks),
    )
    for (const { from, count } of taken)
      if (noteStored(writers, from, states.get(from.spot.executionId))) drop(writers, from, count)
  } catch (error) {
    if (judgeError(error) !== 'final') writers.savedAt = performance.now() + AWAY_MS - PAUSE_MS
    else {
      log.error(
        { err: error },
        'the texts of replies could not be stored; readers get them once they are whole',
      )
      for (const { from } of taken) lose(writers, from)
    }
  }
  writers.stored.resolve()
  writers.stored = Promise.withResolvers()
}

/** What the next statement stores; a reply whose turn it was comes last the next time. */
function takeSome(waiting: Set<WaitingText>) {
  const taken: { from: WaitingText; chunks: ReplyChunk[]; count: number }[] = []
  let room = CHUNKS_AT_ONCE
  for (const from of [...waiting]) {
    if (room <= 0) break
    const { chunks, count } = joinPieces(from, room)
    taken.push({ from, chunks, count })
    room -= chunks.length
    waiting.delete(from)
    waiting.add(from)
  }
  return taken
}

function drop(writers: Writers, from: WaitingText, count: number): void {
  const gone = from.pieces.splice(0, count)
  const size = gone.reduce((sum, { text }) => sum + text.length, 0)
  from.units -= size
  from.seq += count
  writers.units -= size
  if (from.pieces.length === 0) writers.waiting.delete(from)
}

function lose(writers: Writers, from: WaitingText): void {
  drop(writers, from, from.pieces.length)
  from.isLost = true
  writers.openings.delete(from)
}

/** Takes a piece to be stored soon. A piece over the limits is lost, with the rest of its text. */
export function addPiece(writers: Writers, from: WaitingText, piece: ReplyPiece): void {
  if (from.isLost) return
  from.pieces.push(piece)
  from.units += piece.text.length
  writers.units += piece.text.length
  writers.waiting.add(from)
  if (from.units > MOST_WAITING || writers.units > MOST_WAITING_IN_ALL) lose(writers, from)
  else scheduleSave(writers)
}

/** Resolves when what was written of a text is stored, or cannot be in time. */
export async function flushReply(writers: Writers, from: WaitingText): Promise<void> {
  const giveUp = performance.now() + FLUSH_MS
  while (writers.waiting.has(from)) {
    const left = giveUp - performance.now()
    if (left <= 0) return
    await Promise.race([writers.stored.promise, sleep(left, undefined, { ref: false })])
  }
}

/** Joins the pieces that wait to at most `most` chunks; `count` is how many of them those have. */
function joinPieces(
  { spot, pieces, seq }: WaitingText,
  most: number,
): { chunks: ReplyChunk[]; count: number } {
  const chunks: ReplyChunk[] = []
  const texts: string[][] = []
  let size = 0
  let count = 0
  for (const piece of pieces) {
    const length = countCharacters(piece.text)
    if (chunks.length === 0 || size + length > CHUNK) {
      if (chunks.length >= most) break
      chunks.push({ ...piece, executionId: spot.executionId, seq: seq + count })
      texts.push([])
      size = 0
    }
    texts.at(-1)!.push(piece.text)
    chunks.at(-1)!.isLast = piece.isLast
    size += length
    count++
  }
  return { chunks: chunks.map((chunk, i) => ({ ...chunk, text: texts[i]!.join('') })), count }
}
