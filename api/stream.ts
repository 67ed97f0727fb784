import type { Cursor } from '../db/changes.ts'
import { isDatabaseAway } from '../db/connection.ts'
import type { Feeds, Seat } from './feeds.ts'

export type StreamOptions = {
  feeds: Feeds
  executionId: string
  /** What the client has been told already. */
  cursor: Cursor
  /** Aborted when the service stops. */
  stopping: AbortSignal
  /** Rejects once the caller may follow no more. */
  check: () => Promise<unknown>
  /** Cuts a connection whose client reads nothing. */
  drop: () => void
  onError: (error: unknown) => void
  heartbeatMs?: number | undefined
  checkMs?: number | undefined
  stallMs?: number | undefined
}

const HEARTBEAT_MS = 15_000
const CHECK_MS = 30_000
/** Who has taken nothing for so long is cut off. */
const STALL_MS = 60_000
const AWAY_MS = 1_000
/** How long an EventSource waits before it comes back. */
const RETRY_MS = 2_000

/**
 * A run's events as a body. One chunk is made when the client has taken the one before: what changes meanwhile it is
 * told of at once later. Ends with the run, or when the caller loses the right, the run is deleted, the service stops.
 */
export function streamRun(options: StreamOptions): ReadableStream<Uint8Array> {
  const { feeds, executionId, stopping } = options
  const { heartbeatMs = HEARTBEAT_MS, checkMs = CHECK_MS, stallMs = STALL_MS } = options
  const encoder = new TextEncoder()
  let { cursor } = options
  let seat: Seat | undefined
  let begun = false
  let over = false
  let taking = false
  let sentAt = performance.now()
  let timer: NodeJS.Timeout | undefined
  let wake = () => {}

  const rest = (ms: number) =>
    new Promise<void>((resolve) => {
      const late = setTimeout(resolve, ms)
      wake = () => {
        clearTimeout(late)
        resolve()
      }
    })

  function finish(): void {
    over = true
    clearInterval(timer)
    stopping.removeEventListener('abort', finish)
    seat?.leave()
    wake()
  }

  function begin(): void {
    begun = true
    stopping.addEventListener('abort', finish)
    if (stopping.aborted) finish()
    else timer = setInterval(look, checkMs)
  }

  function look(): void {
    if (!taking && performance.now() - sentAt > stallMs) {
      finish()
      options.drop()
    } else options.check().catch((error) => isDatabaseAway(error) || finish())
  }

  async function sit(): Promise<Seat | undefined> {
    const taken = await feeds.join(executionId, () => wake())
    if (!over) return taken
    taken.leave()
    return undefined
  }

  /** The next text; undefined at the end. */
  async function next(): Promise<string | undefined> {
    while (!over) {
      try {
        seat ??= await sit()
        if (seat?.isBehind(cursor)) {
          const page = await seat.read(cursor)
          if (!page) return undefined
          cursor = page.next
          if (page.ended) finish()
          if (page.text) return page.text
          continue
        }
      } catch (error) {
        if (!isDatabaseAway(error)) throw error
        await rest(Math.min(AWAY_MS, heartbeatMs))
      }
      const due = sentAt + heartbeatMs - performance.now()
      if (due <= 0) return ': \n\n'
      if (seat && !over && !seat.isBehind(cursor)) await rest(due)
    }
    return undefined
  }

  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        taking = true
        const first = !begun
        if (first) begin()
        const text = first ? `retry: ${RETRY_MS}\n\n` : await next().catch(options.onError)
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
