import { isDatabaseAway } from '../../db/connection.ts'
import type { Cursor } from '../../db/records/changes.ts'
import type { FeedReader, Feeds } from './feeds.ts'

export type StreamOptions = {
  feeds: Feeds
  executionId: string
  /** What the client has received already. */
  cursor: Cursor
  /** Aborted when the service stops. */
  stopping: AbortSignal
  /** Rejects once the caller has lost the right to follow the execution. */
  check: () => Promise<unknown>
  /** Cuts the connection of a client that has stopped reading. */
  drop: () => void
  /** Called once or more when the stream has ended, for whatever reason. */
  onEnd: () => void
  onError: (error: unknown) => void
  heartbeatMs?: number | undefined
  checkMs?: number | undefined
  stallMs?: number | undefined
}

const HEARTBEAT_MS = 15_000
const CHECK_MS = 30_000

/** A client that has read nothing for this long is cut off. */
const STALL_MS = 60_000

/** How long to wait before trying again while the database is not reachable. */
const AWAY_MS = 1_000

/** How long an EventSource waits before it reconnects. */
const RETRY_MS = 2_000
const HEARTBEAT = ': \n\n'

/**
 * Streams the events of an execution as a response body. A chunk is made only when the client has taken the
 * previous one, so a slow client skips states that have changed again since. The stream ends when the
 * execution has ended or is deleted, when the caller loses the right to follow it, or when the service stops.
 */
export function streamExecution(options: StreamOptions): ReadableStream<Uint8Array> {
  const { feeds, executionId, stopping } = options
  const { heartbeatMs = HEARTBEAT_MS, checkMs = CHECK_MS, stallMs = STALL_MS } = options
  const encoder = new TextEncoder()
  const { sleep, wake } = createSleeper()
  let { cursor } = options
  let reader: FeedReader | undefined
  let begun = false
  let over = false
  let taking = false
  let sentAt = performance.now()
  let timer: NodeJS.Timeout | undefined

  function begin(): void {
    begun = true
    stopping.addEventListener('abort', finish)
    if (stopping.aborted) finish()
    else timer = setInterval(checkClient, checkMs)
  }

  function finish(): void {
    over = true
    clearInterval(timer)
    stopping.removeEventListener('abort', finish)
    reader?.leave()
    options.onEnd()
    wake()
  }

  function checkClient(): void {
    if (!taking && performance.now() - sentAt > stallMs) {
      finish()
      options.drop()
      return
    }
    options.check().catch((error) => {
      if (!isDatabaseAway(error)) finish()
    })
  }

  async function join(): Promise<FeedReader | undefined> {
    const joined = await feeds.join(executionId, wake)
    if (!over) return joined
    joined.leave()
    return undefined
  }

  /** Waits for the next chunk; undefined at the end of the stream. */
  async function readNext(): Promise<string | undefined> {
    while (!over) {
      try {
        reader ??= await join()
        if (reader?.isBehind(cursor)) {
          const page = await reader.read(cursor)
          if (!page) return undefined
          cursor = page.next
          if (page.ended) finish()
          if (page.text) return page.text
          continue
        }
      } catch (error) {
        if (!isDatabaseAway(error)) throw error
        await sleep(Math.min(AWAY_MS, heartbeatMs))
      }
      const due = sentAt + heartbeatMs - performance.now()
      if (due <= 0) return HEARTBEAT
      if (reader && !over && !reader.isBehind(cursor)) await sleep(due)
    }
    return undefined
  }

  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        taking = true
        const first = !begun
        if (first) begin()
        const text = first ? `retry: ${RETRY_MS}\n\n` : await readNext().catch(options.onError)
        taking = false
        sentAt = performance.now()
        if (text) controller.enqueue(encoder.encode(text))
        else {
          finish()
          controller.close()
        }
      },
      cancel: finish,
    },
    { highWaterMark: 0 },
  )
}

/** Makes a `sleep` that `wake` ends early. */
function createSleeper() {
  let wake = () => {}
  const sleep = (ms: number) =>
    new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms)
      wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  return { sleep, wake: () => wake() }
}
