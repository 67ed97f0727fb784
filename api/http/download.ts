import { performance } from 'node:perf_hooks'
import { setImmediate as nextRound, setTimeout as sleep } from 'node:timers/promises'
import type { Context, MiddlewareHandler } from 'hono'
import type { AppEnv } from '../env.ts'

/** A download is aborted if its client reads nothing for this long ... */
const STALL_MS = 30_000

/** ... or has not read all of it after this long (one hour). */
const LIFE_MS = 3_600_000
const CHUNK_BYTES = 64 * 1024

/** A download rests after so much work of the thread, in milliseconds, and never longer than that. */
const WORK_MS = 2
const MAX_REST_MS = 50

/** How many requests are being answered in this process. Bodies that are streamed do not count. */
let answering = 0

/** Counts the requests that downloads give way to. */
export const countAnswering: MiddlewareHandler = async (_, next) => {
  answering++
  try {
    await next()
  } finally {
    answering--
  }
}

/** Passes the next part of the body to `put`, in pieces. Resolves to false after the last part. */
export type WriteNext = (put: (piece: string | Uint8Array) => void) => Promise<boolean>

/**
 * A response body, produced part by part and only as fast as the client reads. If a part fails or is not read in time,
 * the connection is destroyed, so that an incomplete file is not mistaken for a complete one. The same happens once the
 * caller has lost the right to read it. `close` is called when no more parts are needed, for whatever reason.
 */
export function streamParts(
  c: Context<AppEnv>,
  next: WriteNext,
  close: () => Promise<unknown>,
): ReadableStream<Uint8Array> {
  c.set('streamed', true)
  const log = c.get('log')
  const path = c.req.path
  const began = Date.now()
  const takeChunk = createChunks(next)
  let timer: NodeJS.Timeout | undefined
  let over = false
  const watch = (controller: ReadableStreamDefaultController) => {
    timer = setTimeout(() => {
      log.warn({ path }, 'the client does not read the response; the connection is closed')
      fail(controller, new Error('The response was not read in time'))
    }, STALL_MS)
  }
  let leaveRights = () => {}
  const fail = (controller: ReadableStreamDefaultController, error: unknown) => {
    if (over) return
    over = true
    clearTimeout(timer)
    leaveRights()
    void close()
    // Ending only the stream would look like the end of a complete response.
    const { outgoing } = (c.env ?? {}) as { outgoing?: { destroy: () => void } }
    if (outgoing) outgoing.destroy()
    else controller.error(error)
  }
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        leaveRights = c.get('whileAllowed')(() => {
          log.warn({ path }, 'the caller may not read the response any more; the connection is closed')
          fail(controller, new Error('The right to read the response has ended'))
        })
        watch(controller)
      },
      async pull(controller) {
        clearTimeout(timer)
        try {
          if (Date.now() - began > LIFE_MS) throw new Error('The response took too long to read')
          const { chunk, isLast } = await takeChunk()
          if (over) return
          if (chunk.length > 0) controller.enqueue(chunk)
          if (!isLast) return watch(controller)
          over = true
          leaveRights()
          controller.close()
          await close()
        } catch (error) {
          if (!over) log.error({ err: error, path }, 'the response was aborted')
          fail(controller, error)
        }
      },
      async cancel() {
        over = true
        clearTimeout(timer)
        leaveRights()
        await close()
      },
    },
    { highWaterMark: 0 },
  )
}

/**
 * Lets others have the thread: all that wait already, and while requests are being answered, for as long as the thread
 * has worked since the last time. So a download has at most half of it, and all of it when there are no other requests.
 */
function createGivingWay(): () => Promise<void> {
  // The processor time of a thread would be too coarse: what it did in the last milliseconds may be missing.
  let before = performance.eventLoopUtilization()
  return async () => {
    const worked = performance.eventLoopUtilization(before).active
    if (worked < WORK_MS) return
    if (answering > 0) await sleep(Math.min(worked, MAX_REST_MS))
    else await nextRound()
    before = performance.eventLoopUtilization()
  }
}

/** Cuts parts into chunks of 64 KB. A part is produced only when its first byte is needed. */
function createChunks(next: WriteNext) {
  let rest: Buffer = Buffer.alloc(0)
  let more = true
  const giveWay = createGivingWay()
  return async (): Promise<{ chunk: Uint8Array; isLast: boolean }> => {
    while (more && rest.length < CHUNK_BYTES) {
      await giveWay()
      const pieces: Uint8Array[] = [rest]
      more = await next((piece) => pieces.push(typeof piece === 'string' ? Buffer.from(piece) : piece))
      rest = Buffer.concat(pieces)
    }
    const chunk = new Uint8Array(rest.subarray(0, CHUNK_BYTES))
    rest = rest.subarray(chunk.length)
    return { chunk, isLast: !more && rest.length === 0 }
  }
}

/** Gives what an iterator yields to streamParts, one part at a time. */
export function writeEach(parts: AsyncIterator<Uint8Array>): WriteNext {
  return async (put) => {
    const { done, value } = await parts.next()
    if (!done) put(value)
    return !done
  }
}
