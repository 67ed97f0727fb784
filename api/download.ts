import type { Context } from 'hono'
import type { AppEnv } from './app.ts'

/** How long a client may read nothing before the answer breaks. */
const STALL_MS = 30_000
/** An answer that is read drop by drop breaks too. */
const LIFE_MS = 3_600_000
const CHUNK_BYTES = 64 * 1024

/** Puts the next part of a text, in pieces; false once there are no more. */
export type Part = (put: (piece: string) => void) => Promise<boolean>

/**
 * A body of text, made in parts and only as fast as the client reads. Where a part fails, or is not read, the connection
 * breaks, so that nobody takes the part for the whole. `close` is called once nothing more will be read, whatever
 * the reason.
 */
export function streamParts(
  c: Context<AppEnv>,
  next: Part,
  close: () => Promise<unknown>,
): ReadableStream<Uint8Array> {
  const log = c.get('log')
  const path = c.req.path
  const began = Date.now()
  let timer: NodeJS.Timeout | undefined
  let rest: Buffer = Buffer.alloc(0)
  let over = false
  const watch = (controller: ReadableStreamDefaultController) => {
    timer = setTimeout(() => {
      log.warn({ path }, 'the client does not read its answer; it is broken off')
      fail(controller, new Error('The answer was not read in time'))
    }, STALL_MS)
  }
  const fail = (controller: ReadableStreamDefaultController, error: unknown) => {
    if (over) return
    over = true
    clearTimeout(timer)
    void close()
    // Its own end would be the end of a whole answer.
    const { outgoing } = (c.env ?? {}) as { outgoing?: { destroy: () => void } }
    if (outgoing) outgoing.destroy()
    else controller.error(error)
  }
  let more = true
  const take = async () => {
    while (more && rest.length < CHUNK_BYTES) {
      const pieces: string[] = []
      more = await next((piece) => pieces.push(piece))
      rest = Buffer.concat([rest, Buffer.from(pieces.join(''))])
    }
  }
  return new ReadableStream<Uint8Array>(
    {
      start: watch,
      async pull(controller) {
        clearTimeout(timer)
        try {
          if (Date.now() - began > LIFE_MS) throw new Error('The answer took too long to be read')
          await take()
          if (over) return
          const chunk = rest.subarray(0, CHUNK_BYTES)
          rest = rest.subarray(chunk.length)
          if (chunk.length > 0) controller.enqueue(new Uint8Array(chunk))
          if (more || rest.length > 0) return watch(controller)
          over = true
          controller.close()
          await close()
        } catch (error) {
          if (!over) log.error({ err: error, path }, 'the answer broke off')
          fail(controller, error)
        }
      },
      async cancel() {
        over = true
        clearTimeout(timer)
        await close()
      },
    },
    { highWaterMark: 0 },
  )
}
