import type { Tx } from '../connection.ts'
import { invalid } from '../fault.ts'
import { findUnknownChannels } from './channels.ts'

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
