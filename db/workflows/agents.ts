import { LRUCache } from 'lru-cache'
import type { Graph } from '../../workflows/graph/graph.ts'
import { isAgentGraph } from '../../workflows/graph/triggers/chat.ts'
import { perDatabase } from '../cache.ts'
import type { Db } from '../connection.ts'
import type { Store } from '../scope.ts'

/** How many graphs are read at once: what is judged between two reads stays short. */
const AT_ONCE = 100

/** Versions never change, so that each is judged once in a process. */
const judgedOf = perDatabase(() => new LRUCache<string, boolean>({ max: 50_000 }))

/** The ids of a team's workflows that one can chat with while they are active. */
export async function findAgents({ db }: Pick<Store, 'db'>, teamId: string): Promise<string[]> {
  const rows = await db
    .selectFrom('workflows')
    .select(['id', 'version'])
    .where('teamId', '=', teamId)
    .execute()
  const judged = judgedOf(db)
  const agents = new Set<string>()
  const unknown: Row[] = []
  for (const row of rows) {
    const known = judged.get(nameRow(row))
    if (known === undefined) unknown.push(row)
    else if (known) agents.add(row.id)
  }
  for (let at = 0; at < unknown.length; at += AT_ONCE) {
    const some = unknown.slice(at, at + AT_ONCE)
    const found = await judge(db, some)
    for (const row of some) {
      judged.set(nameRow(row), found.has(row.id))
      if (found.has(row.id)) agents.add(row.id)
    }
  }
  return [...agents]
}

type Row = { id: string; version: number }

const nameRow = ({ id, version }: Row) => `${id}/${version}`

/** Only graphs with the word of a chat's trigger are read and judged. */
async function judge(db: Db, rows: Row[]): Promise<Set<string>> {
  const graphs = await db
    .selectFrom('workflowVersions as v')
    .select(['v.workflowId', 'v.nodes', 'v.edges'])
    .where((eb) =>
      eb(
        eb.refTuple('v.workflowId', 'v.version'),
        'in',
        rows.map(({ id, version }) => eb.tuple(id, version)),
      ),
    )
    .where((eb) => eb(eb.cast<string>('v.nodes', 'text'), 'like', '%"CHAT_TRIGGER"%'))
    .execute()
  return new Set(
    graphs.filter((graph) => isAgentGraph(graph as unknown as Graph)).map(({ workflowId }) => workflowId),
  )
}
