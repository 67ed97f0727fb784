import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import type { Context } from 'hono'
import { Fault, invalid } from '../../../db/fault.ts'
import { readBytes } from '../../http/body.ts'

/** The most bytes of a batch, both as it is sent and decompressed. */
const MOST_TELEMETRY_BYTES = 4 * 1024 * 1024

/**
 * The bytes of a batch, decompressed off this thread, and no further than up to the limit. Throws TOO_LARGE over it,
 * UNSUPPORTED_TYPE for another compression than gzip, and INVALID for gzip that is not whole or has something behind it.
 */
export async function readBatchBytes(c: Context): Promise<Buffer> {
  const compression = (c.req.header('content-encoding') ?? 'identity').trim().toLowerCase()
  if (compression !== 'gzip' && compression !== 'identity')
    throw new Fault('UNSUPPORTED_TYPE', 'The body may be compressed with gzip, and with nothing else')
  const given = await readBytes(c, MOST_TELEMETRY_BYTES)
  const sent = Buffer.from(given.buffer, given.byteOffset, given.byteLength)
  return compression === 'gzip' && sent.length > 0 ? decompress(sent) : sent
}

/** With `info`, gunzip also tells how much of the input it has used; the types do not know this. */
const inflate = promisify(gunzip) as unknown as (
  bytes: Buffer,
  options: { maxOutputLength: number; info: true },
) => Promise<{ buffer: Buffer; engine: { bytesWritten: number } }>

async function decompress(sent: Buffer): Promise<Buffer> {
  try {
    const { buffer, engine } = await inflate(sent, { maxOutputLength: MOST_TELEMETRY_BYTES, info: true })
    // Zeros behind it are no error to zlib.
    if (engine.bytesWritten === sent.length) return buffer
  } catch (error) {
    if ((error as { code?: string }).code === 'ERR_BUFFER_TOO_LARGE')
      throw new Fault('TOO_LARGE', `The body must have at most ${MOST_TELEMETRY_BYTES} bytes, decompressed`)
  }
  throw invalid([{ path: 'body', message: 'must be valid gzip, with nothing behind it' }])
}
