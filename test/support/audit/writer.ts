import { change } from '../../../db/change.ts'
import { openDatabase } from '../../../db/connection.ts'
import { serviceScope } from '../../../db/scope.ts'

/**
 * A process of its own that appends to a team's audit chain with several writers at once, and prints a line for each
 * act that was committed. Arguments: the database, the key in hexadecimal, the team, the numbers of the writers, and
 * how many acts each does.
 */
const [url, key, teamId, numbers, acts] = process.argv.slice(2)
const { db, close } = openDatabase(url!, { max: 4, name: 'audit writer' })
const keys = { current: 'k1', byId: new Map([['k1', Buffer.from(key!, 'hex')]]) }
const actor = { kind: 'SYSTEM', id: null, name: 'writer' } as const
const scope = serviceScope({ db, keys }, actor, [[teamId!, 'ADMIN']])

async function write(writer: string): Promise<void> {
  for (let i = 0; i < Number(acts); i++) {
    const details = { act: `${writer}/${i}` }
    await change(scope, 'WORKFLOW_UPDATED', teamId!, async () => ({ result: 0, resourceId: null, details }))
    console.log(details.act)
  }
}

await Promise.all(numbers!.split(',').map(write))
await close()
