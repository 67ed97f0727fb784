import { v7 as uuid } from 'uuid'
import { tellLimit } from './count.ts'
import { describeError } from './errors.ts'

/** The answer to what is no HTTP request that the API could take up: the same body and headers as everywhere. */
export function describeRefusal(path: string, status: 400 | 408 | 431 | 500, message: string) {
  const body = JSON.stringify(describeError(path, status, message))
  const headers: Record<string, string> = {
    'Content-Type': 'application/json',
    'X-Request-Id': uuid(),
    'X-Content-Type-Options': 'nosniff',
    'Cache-Control': 'no-store',
    Connection: 'close',
  }
  tellLimit((name, value) => {
    headers[name] = value
  })
  return { body, headers }
}
