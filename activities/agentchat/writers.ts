import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import {
  openTexts,
  type ReplyChunk,
  type ReplyPiece,
  type Stored,
  saveChunks,
} from '../../db/agentchat/chunks.ts'
import { judgeError } from '../../db/operation/outage.ts'
import type { MaskedPieces } from '../../db/redaction/exact.ts'
import type { Store } from '../../db/scope.ts'
import type { ReplyWriter } from '../agents/reply.ts'
import { countCharacters, sliceText } from './assembly.ts'

/** At most one statement of a process in this time stores, and tells of, what all its replies have got. */
const PAUSE_MS = 100
const AWAY_MS = 1_000

/** How long to wait before trying again what somebody else holds up. */
const HELD_MS = 20

/** The longest text of a chunk in characters, and the most chunks of one statement. */
const CHUNK = 8_192
const CHUNKS_AT_ONCE = 128
const OPENINGS_AT_ONCE = 1_000

/**
 * How much text, in UTF-16 units, may wait to be stored: of one reply, and in all. What is more than that is dropped,
 * with the rest of its reply: readers in other processes get that from the saved reply.
 */
const MOST_WAITING = 4_000_000
const MOST_WAITING_IN_ALL = 16_000_000

/** How long somebody waits at most until what was written is stored. */
const FLUSH_MS = 1_000

/** Where in its reply a text belongs; see ReplyPiece. */
export type ReplySpot = { executionId: string; step: number; attempt: number; after: number }

/**
 * The writer of one attempt. After `end` or `cut` nothing more is taken, and once what was written is stored, that is
 * too. So whoever saves a reply that was stopped can wait for all that readers have seen of it.
 */
export type OpenReply = ReplyWriter & {
  /** The text is whole. */
  end(): void
  /** There is no more: the attempt has failed, or nobody wants it. Resolves like `flush`. */
  cut(): Promise<void>
}

type Waiting = {
  spot: ReplySpot
  pieces: ReplyPiece[]
  units: number
  seq: number
  /** Nothing more of it is stored. */
  isLost: boolean
  /** It is stored that it has begun: from then on it is heard in this process before it is stored. */
  isOpen: boolean
}

type Deps = {
  store: Pick<Store, 'db'>
  /** The id of this process among those that follow executions. */
  watcher: string
  log: Logger
  /** Gets each piece at once. */
  hear: (executionId: string, piece: ReplyPiece) => void
}

/** The writers of all replies that come in this process. None of them ever waits for PostgreSQL, or fails with it. */
export function createReplyWriters({ store, watcher, log, hear }: Deps) {
  const waiting = new Set<Waiting>()
  const openings = new Set<Waiting>()
  const writing = new Map<string, Set<OpenReply>>()
  let opening = false
  let units = 0
  let savedAt = Number.NEGATIVE_INFINITY
  let timer: NodeJS.Timeout | undefined
  let saving: Promise<void> | undefined
  let stored = Promise.withResolvers<void>()

  /** Stores of all texts that begin that they do, without delay: their readers wait for it. */
  async function storeOpenings(): Promise<void> {
    if (opening) return
    opening = true
    // Those that begin in the same moment go together.
    await Promise.resolve()
    while (openings.size > 0) {
      const taken = [...openings].slice(0, OPENINGS_AT_ONCE)
      try {
        const states = await openTexts(
          store,
          taken.map(({ spot }) => spot),
        )
        for (const from of taken) note(from, states.get(from.spot.executionId))
        if (taken.every((from) => openings.has(from))) await sleep(HELD_MS, undefined, { ref: false })
      } catch (error) {
        if (judgeError(error) !== 'final') await sleep(AWAY_MS, undefined, { ref: false })
        else for (const from of taken) lose(from)
      }
    }
    opening = false
  }

  /** Notes what became of a text that was to be stored. True: it was. */
  function note(from: Waiting, stored: Stored | undefined): boolean {
    if (stored === 'over') lose(from)
    if (stored !== 'stored') return false
    openings.delete(from)
    if (from.isOpen || from.isLost) return true
    from.isOpen = true
    for (const piece of from.pieces) hear(from.spot.executionId, piece)
    return true
  }

  function schedule(): void {
    if (timer || saving) return
    timer = setTimeout(
      () => {
        timer = undefined
        saving = save().finally(() => {
          saving = undefined
          if (waiting.size > 0) schedule()
        })
      },
      Math.max(0, savedAt + PAUSE_MS - performance.now()),
    )
  }

  async function save(): Promise<void> {
    savedAt = performance.now()
    const taken = takeSome()
    try {
      const states = await saveChunks(
        store,
        watcher,
        taken.flatMap(({ chunks }) => chunks),
      )
      for (const { from, count } of taken)
        if (note(from, states.get(from.spot.executionId))) drop(from, count)
    } catch (error) {
      if (judgeError(error) !== 'final') savedAt = performance.now() + AWAY_MS - PAUSE_MS
      else {
        log.error(
          { err: error },
          'the texts of replies could not be stored; readers get them once they are whole',
        )
        for (const { from } of taken) lose(from)
      }
    }
    stored.resolve()
    stored = Promise.withResolvers()
  }

  /** What the next statement stores; a reply whose turn it was comes last the next time. */
  function takeSome() {
    const taken: { from: Waiting; chunks: ReplyChunk[]; count: number }[] = []
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

  function drop(from: Waiting, count: number): void {
    const gone = from.pieces.splice(0, count)
    const size = gone.reduce((sum, { text }) => sum + text.length, 0)
    from.units -= size
    from.seq += count
    units -= size
    if (from.pieces.length === 0) waiting.delete(from)
  }

  function lose(from: Waiting): void {
    drop(from, from.pieces.length)
    from.isLost = true
    openings.delete(from)
  }

  function wait(from: Waiting, piece: ReplyPiece): void {
    if (from.isLost) return
    from.pieces.push(piece)
    from.units += piece.text.length
    units += piece.text.length
    waiting.add(from)
    if (from.units > MOST_WAITING || units > MOST_WAITING_IN_ALL) lose(from)
    else schedule()
  }

  async function flush(from: Waiting): Promise<void> {
    const giveUp = performance.now() + FLUSH_MS
    while (waiting.has(from)) {
      const left = giveUp - performance.now()
      if (left <= 0) return
      await Promise.race([stored.promise, sleep(left, undefined, { ref: false })])
    }
  }

  return {
    /** Begins the text of one attempt. If it is not the first one, that alone takes away the text of those before. */
    open(spot: ReplySpot, mask: MaskedPieces): OpenReply {
      const { executionId, ...place } = spot
      const own: Waiting = { spot, pieces: [], units: 0, seq: 0, isLost: false, isOpen: false }
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
          wait(own, piece)
          if (own.isOpen) hear(executionId, piece)
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
        remove(writing, executionId, reply)
        tell(rest, true)
      }

      const reply: OpenReply = {
        write(text) {
          if (!isOver) write(text)
        },
        flush: () => flush(own),
        end() {
          if (!isOver) close((half + mask.end()).toWellFormed())
        },
        cut() {
          if (!isOver) close('')
          return flush(own)
        },
      }
      writing.set(executionId, (writing.get(executionId) ?? new Set()).add(reply))
      openings.add(own)
      void storeOpenings()
      if (spot.attempt > 1) tell('')
      return reply
    },

    /** Ends the texts of a reply that come in this process: nobody wants more of it. */
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
      await Promise.all([...waiting].map(flush))
    },

    /** Does the same, and stores nothing more. */
    async stop(): Promise<void> {
      await Promise.all([...waiting].map(flush))
      clearTimeout(timer)
      await Promise.race([saving, sleep(FLUSH_MS, undefined, { ref: false })])
    },
  }
}

function remove<T>(sets: Map<string, Set<T>>, key: string, one: T): void {
  const set = sets.get(key)
  if (set?.delete(one) && set.size === 0) sets.delete(key)
}

/** Joins the pieces that wait to at most `most` chunks; `count` is how many of them those have. */
function joinPieces({ spot, pieces, seq }: Waiting, most: number): { chunks: ReplyChunk[]; count: number } {
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
