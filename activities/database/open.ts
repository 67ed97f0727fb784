import type { OpenedCredential } from '../../db/credentials/open.ts'
import { openPostgres } from './postgres.ts'
import { readLogin, type SqlSession, type SqlTools } from './session.ts'

/** Opens a session of the database that a credential leads to. Throws a SqlError, or an HttpError of `dial`. */
export async function openSession(credential: OpenedCredential, tools: SqlTools): Promise<SqlSession> {
  const login = readLogin(credential)
  if (login.dialect === 'postgresql') return openPostgres(login, tools)
  // Loaded only by a process that needs it, as every start would take longer by it.
  const { openMysql } = await import('./mysql.ts')
  return openMysql(login, tools)
}
