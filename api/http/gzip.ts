import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { MiddlewareHandler } from 'hono'
import type { AppEnv } from '../env.ts'

const LEAST_BYTES = 2_048
const ACCEPTED = /(?:^|,)\s*(?:gzip|\*)\s*(?:;\s*q=(?!0(?:\.0*)?\s*(?:,|$))[\d.]+\s*)?(?:,|$)/i

const compress = promisify(gzip)

/**
 * Compresses JSON responses of 2 KB and more for clients that accept gzip, off the main thread. Files and
 * streams pass unchanged. (hono/compress does not know a body's length and would compress small ones too.)
 */
export const compressJson: MiddlewareHandler<AppEnv> = async (c, next) => {
  await next()
  if (c.req.method === 'HEAD' || !ACCEPTED.test(c.req.header('accept-encoding') ?? '')) return
  const { headers, status } = c.res
  const whole =
    headers.get('content-type')?.startsWith('application/json') &&
    !headers.has('content-disposition') &&
    !c.get('streamed')
  if (!whole || headers.has('content-encoding')) return
  const bytes = Buffer.from(await c.res.arrayBuffer())
  const small = bytes.length < LEAST_BYTES
  const body = small ? bytes : await compress(bytes, { level: 4 })
  c.res = undefined
  c.res = new Response(body, { status, headers })
  if (small) return
  c.res.headers.set('Content-Encoding', 'gzip')
  c.res.headers.append('Vary', 'Accept-Encoding')
}
