import type { OpenedCredential } from '../../db/credentials/open.ts'
import { openMysql } from './mysql.ts'
import { openPostgres } from './postgres.ts'
import { readLogin, type SqlSession, type SqlTools } from './session.ts'

/** Opens a session of the database that a credential leads to. Throws a SqlError, or an HttpError of `dial`. */
export function openSession(credential: OpenedCredential, tools: SqlTools): Promise<SqlSession> {
  const login = readLogin(credential)
  return login.dialect === 'mysql' ? openMysql(login, tools) : openPostgres(login, tools)
}
