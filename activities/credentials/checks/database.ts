import type { OpenedCredential } from '../../../db/credentials/open.ts'
import { openSession } from '../../database/open.ts'
import type { SqlTools } from '../../database/session.ts'

const CHECK_MS = 10_000

/** Signs in to a database and selects 1. */
export async function checkDatabase(
  credential: OpenedCredential,
  { dial, signal }: SqlTools,
): Promise<string> {
  const session = await openSession(credential, { dial, signal })
  const stop = () => void session.cancel()
  signal.addEventListener('abort', stop, { once: true })
  try {
    await session.begin({ readOnly: true, timeoutMs: CHECK_MS })
    await session.run({ sql: 'select 1', params: [], maxRows: 1 })
  } finally {
    signal.removeEventListener('abort', stop)
    await session.close()
  }
  const { username, database, host } = credential.data
  return `Signed in to ${database} on ${host} as ${username}`
}
