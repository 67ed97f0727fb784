import { once } from 'node:events'
import { isIP } from 'node:net'
import { connect, type TLSSocket } from 'node:tls'
import type { Dial } from '../../egress/dial.ts'
import { HttpError, toHttpError } from '../../http/httperror.ts'

/** Where messages go. `caCertificate` (PEM) holds the only authorities that are trusted, if it is not null. */
export type SyslogReceiver = { host: string; port: number; caCertificate: string | null }

const CONNECT_MS = 10_000

/** How long a receiver may take to close the connection once it has everything. */
const CLOSE_MS = 10_000

/**
 * Sends frames over a TLS connection of their own, and waits until the receiver has closed it after the end: syslog
 * has no receipts, but as RFC 5425 says it, a receiver answers the end of the stream with the end of its own, so it
 * has read all that came before. Throws an HttpError if that does not come, if the receiver cannot be reached, or if
 * its certificate names another host. Any part of the frames that were sent by then may have arrived.
 */
export async function sendSyslog(
  { host, port, caCertificate }: SyslogReceiver,
  frames: Buffer[],
  dial: Dial,
  signal: AbortSignal,
): Promise<void> {
  const where = `${host}:${port}`
  const plain = await dial(host, port, { timeoutMs: CONNECT_MS, signal })
  let socket: TLSSocket | undefined
  const stop = (error: unknown) => (socket ?? plain).destroy(error as Error)
  const onAbort = () => stop(new HttpError('aborted', `the connection to ${where} was aborted`))
  const late = (what: string) => stop(new HttpError('timeout', `${where} ${what}`))
  const timers: NodeJS.Timeout[] = []
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    signal.throwIfAborted()
    plain.on('error', () => {})
    const name = host.replace(/^\[|\]$/g, '')
    socket = connect({
      socket: plain,
      host: name,
      ...(isIP(name) ? {} : { servername: name }),
      ...(caCertificate === null ? {} : { ca: caCertificate }),
      minVersion: 'TLSv1.2',
    })
    const secured = socket
    timers.push(
      setTimeout(() => late(`did not finish the TLS handshake within ${CONNECT_MS} ms`), CONNECT_MS),
    )
    await once(secured, 'secureConnect')
    clearTimeout(timers[0])
    let isWhole = false
    // Whatever a receiver says is read, so that its end can be seen.
    secured.resume()
    const closed = new Promise<void>((resolve, reject) => {
      secured.once('error', reject)
      secured.once('close', () => {
        if (isWhole) resolve()
        else reject(new HttpError('network', `${where} closed the connection before it had everything`))
      })
    })
    closed.catch(() => {})
    await Promise.race([write(secured, frames), closed])
    isWhole = true
    timers.push(setTimeout(() => late(`has not confirmed the end within ${CLOSE_MS} ms`), CLOSE_MS))
    await closed
  } catch (error) {
    if (signal.aborted) throw new HttpError('aborted', `the connection to ${where} was aborted`)
    throw toHttpError(error, where)
  } finally {
    for (const timer of timers) clearTimeout(timer)
    signal.removeEventListener('abort', onAbort)
    socket?.destroy()
    plain.destroy()
  }
}

/** Resolves when all bytes and the end are handed to the system, slowly if the receiver is slow. */
async function write(socket: TLSSocket, frames: Buffer[]): Promise<void> {
  for (const frame of frames) if (!socket.write(frame)) await once(socket, 'drain')
  await new Promise<void>((resolve) => socket.end(resolve))
}
