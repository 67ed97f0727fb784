import type { ReplyPiece } from '../../db/chat/chunks.ts'

/** How much of a text stays in memory, in characters. Who reads more slowly reads the stored chunks. */
const WINDOW = 65_536

/** Pieces are joined to parts of about this length, so that a text of single letters takes no more room. */
const PART = 512

type Step = { step: number; attempt: number; start: number; length: number; isOver: boolean }
type Part = { step: Step; at: number; size: number; text: string }

/** A stretch of the text, and where it ends. `step` and `attempt` are those of its last character. */
export type Stretch = { text: string; to: number; step: number; attempt: number }

export type ReplyText = ReturnType<typeof createReplyText>

/**
 * The text of a reply as it comes, put together from pieces that may come twice and in any order: only what follows
 * on is taken. An attempt that begins anew takes away the text of the one before it.
 */
export function createReplyText() {
  const steps: Step[] = []
  const parts: Part[] = []
  const cuts: number[] = []
  let length = 0

  function cutTo(start: number, index: number): void {
    while (parts.length > 0 && parts.at(-1)!.at >= start) parts.pop()
    steps.splice(index)
    length = start
    cuts.push(start)
  }

  function append(step: Step, { position, text, isLast }: ReplyPiece): boolean {
    if (position > step.length) return false
    if (step !== steps.at(-1)) return true
    const fresh = sliceText(text, step.length - position)
    const size = countCharacters(fresh)
    const last = parts.at(-1)
    if (last?.step === step && last.size < PART) {
      last.text += fresh
      last.size += size
    } else if (size > 0) parts.push({ step, at: length, size, text: fresh })
    step.length += size
    length += size
    step.isOver ||= isLast
    while (parts.length > 1 && length - parts[1]!.at > WINDOW) parts.shift()
    return true
  }

  return {
    /** Takes a piece if it follows on. False: something before it is missing. */
    take(piece: ReplyPiece): boolean {
      const at = steps.findIndex(({ step }) => step === piece.step)
      const known = steps[at]
      if (known && piece.attempt < known.attempt) return true
      if (known && piece.attempt === known.attempt) return append(known, piece)
      if (piece.position > 0) return false
      if (known) cutTo(known.start, at)
      const before = steps.at(-1)
      if (before && piece.step < before.step) return true
      if (before ? !before.isOver || before.step !== piece.after : piece.after !== 0) return false
      const step = { step: piece.step, attempt: piece.attempt, start: length, length: 0, isOver: false }
      steps.push(step)
      return append(step, piece)
    },

    /** Up to where the text is known. */
    end(): { step: number; attempt: number; position: number } {
      const { step = 0, attempt = 0, length: position = 0 } = steps.at(-1) ?? {}
      return { step, attempt, position }
    },

    /** How often text was taken away. */
    cutCount: () => cuts.length,

    /** The least length that the text had when text had been taken away from it `count` times. */
    keptSince: (count: number) => Math.min(Number.POSITIVE_INFINITY, ...cuts.slice(count)),

    /** The attempt that a step is at; 0 if the step has no text yet. */
    attemptOf: (step: number) => steps.find((one) => one.step === step)?.attempt ?? 0,

    /** Up to `most` characters from a place on; null if none have come yet, undefined if they are not kept here. */
    read(from: number, most: number): Stretch | null | undefined {
      if (from >= length) return null
      if (from < (parts[0]?.at ?? length)) return undefined
      let index = findPart(from)
      let text = ''
      let to = from
      let { step } = parts[index]!
      for (; index < parts.length && to - from < most; index++) {
        const part = parts[index]!
        const more = sliceText(part.text, to - part.at, most - (to - from))
        text += more
        to += countCharacters(more)
        step = part.step
      }
      return { text, to, step: step.step, attempt: step.attempt }
    },

    /** In which step a place is that is no more kept here, and where in it. */
    locate(from: number): { step: number; attempt: number; position: number } | undefined {
      const found = steps.find(({ start, length: size }) => from >= start && from < start + size)
      return found && { step: found.step, attempt: found.attempt, position: from - found.start }
    },
  }

  /** The index of the part that has the character at `from`. */
  function findPart(from: number): number {
    let low = 0
    let high = parts.length - 1
    while (low < high) {
      const middle = Math.ceil((low + high) / 2)
      if (parts[middle]!.at <= from) low = middle
      else high = middle - 1
    }
    return low
  }
}

/** The length of a text in characters, as PostgreSQL counts them. */
export function countCharacters(text: string): number {
  return text.length - (text.match(/[\uD800-\uDBFF]/g)?.length ?? 0)
}

/** A part of a text: `from` and `most` are in characters. */
export function sliceText(text: string, from: number, most = Number.POSITIVE_INFINITY): string {
  if (from <= 0 && most >= text.length) return text
  if (countCharacters(text) === text.length) return text.slice(Math.max(0, from), Math.max(0, from) + most)
  const characters = [...text]
  return characters.slice(Math.max(0, from), Math.max(0, from) + most).join('')
}
