import { validate as isUuid } from 'uuid'
import type { Db, Tx } from '../../connection.ts'
import { invalid } from '../../fault.ts'

/** The entries of a config that mean more than one channel. */
const WORDS = ['email', 'slack', 'webhook']

/** The entries of a config that are no word for channels, and no channel of the team. */
export async function findUnknownChannels(db: Db, teamId: string, entries: string[]): Promise<string[]> {
  const ids = entries.filter((entry) => isUuid(entry))
  const rows =
    ids.length === 0
      ? []
      : await db
          .selectFrom('notificationChannels')
          .select('id')
          .where('teamId', '=', teamId)
          .where('id', 'in', ids)
          .execute()
  const known = new Set([...WORDS, ...rows.map(({ id }) => id)])
  return entries.filter((entry) => !known.has(entry.toLowerCase()))
}

/** Checks that each of a config's notificationChannels is one that the team has. Throws INVALID. */
export async function checkChannels(tx: Tx, teamId: string, names: string[]): Promise<void> {
  const unknown = new Set(await findUnknownChannels(tx, teamId, names))
  const problems = names.flatMap((name, index) =>
    unknown.has(name)
      ? [
          {
            path: `notificationChannels[${index}]`,
            message: 'must be email, slack, webhook or the id of a channel of the team',
          },
        ]
      : [],
  )
  if (problems.length > 0) throw invalid(problems)
}
