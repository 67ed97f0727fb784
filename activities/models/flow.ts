import { uselessAnswer, type Vendor } from './failures.ts'

/** One event of a stream, which is parsed at once. */
const MAX_EVENT_BYTES = 4 * 1024 * 1024

/** OPENAI (Responses) repeats a whole answer in single events. */
const TOO_LONG =
  `is too long: it has an event of more than ${MAX_EVENT_BYTES} bytes, in which some vendors repeat a whole answer. ` +
  'Ask for a shorter one, or for several'

/**
 * The last event of an answer, after which some servers leave the connection open: the short ones, and how a long one
 * begins.
 */
const LAST_EVENT = /^data: ?(?:\[DONE\]|\{"type": ?"message_stop"\})\s*$/m
const LAST_RESPONSE = /^(?:event: ?|data: ?\{"type": ?")response\.(?:completed|incomplete|failed)\b/m
const HEAD_BYTES = 64

/** The body of an answer on its way to a vendor's library, which reads it as fast as it likes. */
export type AnswerFlow = {
  stream: ReadableStream<Uint8Array>
  /**
   * Hands a piece on; resolves when the reader wants more, to false if it has stopped reading. Throws a NodeFailure
   * (ModelAnswer) if an event is too long.
   */
  push(chunk: Uint8Array): Promise<boolean>
  /** Whether the last event of the answer has come. */
  isWhole(): boolean
  /** Ends it; with an error, its reader gets that. */
  close(failure?: { error: unknown }): void
}

export function openFlow(vendor: Vendor): AnswerFlow {
  let controller: ReadableStreamDefaultController<Uint8Array>
  let wake = () => {}
  let isOpen = true
  let eventBytes = 0
  let lineBytes = 0
  let last = 0
  let head = ''
  let isWhole = false
  const stream = new ReadableStream<Uint8Array>({
    start(given) {
      controller = given
    },
    pull: () => wake(),
    cancel() {
      isOpen = false
      wake()
    },
  })

  function endEvent(): void {
    isWhole ||= LAST_EVENT.test(head) || LAST_RESPONSE.test(head)
    head = ''
    eventBytes = 0
  }

  /** An event has any number of lines, and ends with an empty one: not each line by itself is parsed. */
  function count(chunk: Uint8Array): void {
    for (let at = 0; at < chunk.length; ) {
      const end = chunk.indexOf(0x0a, at)
      const next = end < 0 ? chunk.length : end + 1
      lineBytes += (end < 0 ? next : end) - at
      if (eventBytes < HEAD_BYTES)
        head += Buffer.from(chunk.subarray(at, Math.min(next, at + HEAD_BYTES))).toString('latin1')
      eventBytes += next - at
      if (eventBytes > MAX_EVENT_BYTES) throw uselessAnswer(vendor, TOO_LONG, false)
      if (end >= 0) {
        const isEmpty = lineBytes === 0 || (lineBytes === 1 && (end > 0 ? chunk[end - 1] : last) === 0x0d)
        if (isEmpty) endEvent()
        lineBytes = 0
      }
      at = next
    }
    last = chunk.at(-1) ?? last
  }

  return {
    stream,
    async push(chunk) {
      count(chunk)
      if (!isOpen) return false
      controller.enqueue(chunk)
      if ((controller.desiredSize ?? 0) <= 0)
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      return isOpen
    },
    isWhole: () => isWhole || LAST_EVENT.test(head),
    close(failure) {
      if (!isOpen) return
      isOpen = false
      if (failure) controller.error(failure.error)
      else controller.close()
      wake()
    },
  }
}
