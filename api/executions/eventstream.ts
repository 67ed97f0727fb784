import type { Context } from 'hono'
import { isDatabaseAway } from '../../db/connection.ts'
import type { AppEnv } from '../env.ts'

/** The reader of a client's events. */
export type EventReader = {
  /** Whether there may be more to read. */
  isBehind(): boolean
  /** Reads the next events as text, '' if there are none yet; null once all events were read. */
  read(): Promise<{ text: string; ended: boolean } | null>
  leave(): void
}

type EventStreamOptions = {
  /** `wake` is to be called whenever there may be something to read. Tried again while PostgreSQL is away. */
  join: (wake: () => void) => Promise<EventReader>
  /** Aborted when the service stops. */
  stopping: AbortSignal
  /** Rejects once the caller has lost the right to read. */
  check: () => Promise<unknown>
  /** Calls `check` when that may have happened, and returns what ends it. */
  watchRights: (check: () => void) => () => void
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
 * Streams events as a response body. A chunk is made only when the client has taken the previous one, so nothing piles
 * up for a slow client. The stream ends when all events were read, when the caller loses the right to read, or when the
 * service stops.
 */
export function streamEvents(options: EventStreamOptions): ReadableStream<Uint8Array> {
  const { stopping } = options
  const { heartbeatMs = HEARTBEAT_MS, checkMs = CHECK_MS, stallMs = STALL_MS } = options
  const encoder = new TextEncoder()
  const { sleep, wake } = createSleeper()
  let reader: EventReader | undefined
  let begun = false
  let over = false
  let taking = false
  let sentAt = performance.now()
  let timer: NodeJS.Timeout | undefined
  let leaveRights: (() => void) | undefined

  function begin(): void {
    begun = true
    stopping.addEventListener('abort', finish)
    if (stopping.aborted) finish()
    else {
      timer = setInterval(checkClient, checkMs)
      leaveRights = options.watchRights(checkRight)
    }
  }

  function finish(): void {
    over = true
    clearInterval(timer)
    leaveRights?.()
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
    checkRight()
  }

  function checkRight(): void {
    options.check().catch((error) => {
      if (!isDatabaseAway(error)) finish()
    })
  }

  async function join(): Promise<EventReader | undefined> {
    const joined = await options.join(wake)
    if (!over) return joined
    joined.leave()
    return undefined
  }

  /** Waits for the next chunk; undefined at the end of the stream. */
  async function readNext(): Promise<string | undefined> {
    while (!over) {
      try {
        reader ??= await join()
        if (reader?.isBehind()) {
          const page = await reader.read()
          if (!page) return undefined
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
      if (reader && !over && !reader.isBehind()) await sleep(due)
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

/** The id of the last event that the client has received, '' if it has received none. */
export function readLastEventId(c: Context<AppEnv>): string {
  return (c.req.header('last-event-id') ?? '').split(',').at(-1)!.trim()
}

/** Says that events follow. HEAD gets no more than that. */
export function setEventHeaders(c: Context<AppEnv>): void {
  c.header('Content-Type', 'text/event-stream; charset=utf-8')
  // Tells nginx not to buffer the response, which would delay the events.
  c.header('X-Accel-Buffering', 'no')
}

/** Cuts the connection of a request. */
export function dropClient(c: Context<AppEnv>): void {
  const { incoming } = (c.env ?? {}) as { incoming?: { socket?: { destroy(): void } } }
  incoming?.socket?.destroy()
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
