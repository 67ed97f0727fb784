import { isIP, type Socket } from 'node:net'
import { unlessAborted } from '../abort.ts'
import { HttpError, toHttpError } from '../http/httperror.ts'
import { CONNECT_TIMEOUT_MS, type Egress } from './egress.ts'

/**
 * Connects to a host and port by the egress rules, as HTTP requests are: literals, names, and the address that was
 * really reached are checked. The socket is plain; TLS is the protocol's own matter, with `host` as the name that
 * the certificate must have. `timeoutMs` (10 s) and `signal` hold until the connection is made. Throws an HttpError
 * (refused-address, network, timeout, aborted, bad-url).
 */
export type Dial = (
  host: string,
  port: number,
  options?: { timeoutMs?: number; signal?: AbortSignal },
) => Promise<Socket>

/** Makes connections that are not HTTP, such as those to databases and mail servers, by the rules of the moment. */
export function createDial(findEgress: () => Egress): Dial {
  return async (given, port, { timeoutMs = CONNECT_TIMEOUT_MS, signal } = {}) => {
    const host = readHost(given)
    const where = `${isIP(host) === 6 ? `[${host}]` : host}:${port}`
    if (!Number.isInteger(port) || port < 1 || port > 65_535)
      throw new HttpError('bad-url', 'the port must be a whole number from 1 to 65535')
    const stop = new AbortController()
    const late = () =>
      stop.abort(new HttpError('timeout', `no connection to ${where} within ${timeoutMs} ms`))
    const onAbort = () => stop.abort(new HttpError('aborted', `the connection to ${where} was aborted`))
    const timer = setTimeout(late, timeoutMs)
    if (signal?.aborted) onAbort()
    else signal?.addEventListener('abort', onAbort, { once: true })
    const opening = findEgress().open(host, port, stop.signal)
    try {
      return await unlessAborted(opening, stop.signal)
    } catch (error) {
      // A connection that is made after all is not used.
      opening.then(
        (socket) => socket.destroy(),
        () => {},
      )
      throw stop.signal.aborted ? stop.signal.reason : toHttpError(error, where)
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', onAbort)
    }
  }
}

/** The host in the form that a URL gives it, so that every notation of an address is seen as that address. */
function readHost(given: string): string {
  const host = given.trim().replace(/^\[|\]$/g, '')
  if (isIP(host)) return host
  const url = /^[^\s/\\:@?#%[\]]+$/.test(host) ? URL.parse(`http://${host}/`) : null
  if (!url?.hostname)
    throw new HttpError('bad-url', 'the host must be a name such as db.example.com, or an address')
  return url.hostname
}
