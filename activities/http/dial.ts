import type { Socket } from 'node:net'

/**
 * Connects to a host and port by the egress rules, as HTTP requests are: literals, names, and the address that was
 * really reached are checked. The socket is plain; TLS is the protocol's own matter, with `host` as the name that
 * the certificate must have. Throws an HttpError (refused-address, network, timeout, aborted).
 */
export type Dial = (
  host: string,
  port: number,
  options?: { timeoutMs?: number; signal?: AbortSignal },
) => Promise<Socket>
