import { uselessAnswer, type Vendor } from './failures.ts'

/** One event of a stream, which is parsed at once. */
const MAX_EVENT_BYTES = 4 * 1024 * 1024

/** The body of an answer on its way to a vendor's library, which reads it as fast as it likes. */
export type AnswerFlow = {
  stream: ReadableStream<Uint8Array>
  /**
   * Hands a piece on; resolves once more is wanted, to false if nothing is any more. Throws a NodeFailure (ModelAnswer)
   * if an event is too long.
   */
  push(chunk: Uint8Array): Promise<boolean>
  /** Ends it; with an error, its reader gets that. */
  close(failure?: { error: unknown }): void
}

export function openFlow(vendor: Vendor): AnswerFlow {
  let controller: ReadableStreamDefaultController<Uint8Array>
  let wake = () => {}
  let isOpen = true
  let eventBytes = 0
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
      controller.enqueue(chunk)
      if ((controller.desiredSize ?? 0) <= 0)
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      return isOpen
    },
    close(failure) {
      if (!isOpen) return
      isOpen = false
      if (failure) controller.error(failure.error)
      else controller.close()
      wake()
    },
  }
}
