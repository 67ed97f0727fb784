import { uselessAnswer, type Vendor } from './failures.ts'

/** One event of a stream, which is parsed at once. */
const MAX_EVENT_BYTES = 4 * 1024 * 1024

/** The last event of an answer, after which some servers leave the connection open. */
const LAST_EVENT = /^data: ?(?:\[DONE\]|\{"type": ?"message_stop"\})\s*$/m
const LAST_BYTES = 64

/** The body of an answer on its way to a vendor's library, which reads it as fast as it likes. */
export type AnswerFlow = {
  stream: ReadableStream<Uint8Array>
  /**
   * Hands a piece on; resolves once more is wanted, to false if nothing is any more. Throws a NodeFailure (ModelAnswer)
   * if an event is too long.
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
  let tail = ''
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
  return {
    stream,
    async push(chunk) {
      const last = chunk.lastIndexOf(0x0a)
      eventBytes = last < 0 ? eventBytes + chunk.length : chunk.length - last - 1
      if (eventBytes > MAX_EVENT_BYTES)
        throw uselessAnswer(vendor, `has an event of more than ${MAX_EVENT_BYTES} bytes`, false)
      if (!isOpen) return false
      tail = (tail + Buffer.from(chunk.subarray(-LAST_BYTES)).toString('latin1')).slice(-LAST_BYTES)
      controller.enqueue(chunk)
      if ((controller.desiredSize ?? 0) <= 0)
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      return isOpen
    },
    isWhole: () => LAST_EVENT.test(tail),
    close(failure) {
      if (!isOpen) return
      isOpen = false
      if (failure) controller.error(failure.error)
      else controller.close()
      wake()
    },
  }
}
