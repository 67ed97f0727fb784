import type { Context } from 'hono'
import { Fault } from '../../../db/fault.ts'
import type { Rule } from '../../http/accept.ts'

/** The request header of every route that starts an execution. */
export const IDEMPOTENCY_HEADER: Rule['headers'] = {
  'Idempotency-Key': {
    description: 'A repeated request with the same key and body does not start a second execution',
    pattern: '^[!-~]([ -~]{0,253}[!-~])?$',
  },
}

/** The key in the Idempotency-Key header; undefined if it is not sent. Throws INVALID if it is malformed. */
export function readIdempotencyKey(c: Context): string | undefined {
  const key = c.req.header('idempotency-key')
  if (key === undefined || /^[\x20-\x7e]{1,255}$/.test(key)) return key
  const problem = { path: 'Idempotency-Key', message: 'must be 1 to 255 printable ASCII characters' }
  throw new Fault('INVALID', `${problem.path} ${problem.message}`, { problems: [problem] })
}
