import { type CompiledQuery, sql } from 'kysely'
import type { Store } from '../../../../db/scope.ts'

/** A store that keeps the statements that it is sent, with their parameters. */
export function watchStore<S extends Pick<Store, 'db'>>(own: S): { store: S; sent: CompiledQuery[] } {
  const sent: CompiledQuery[] = []
  const plugin = {
    transformQuery: ({ node }: { node: never }) => node,
    transformResult: async ({ result }: { result: never }) => result,
  }
  const watching = own.db.withPlugin(plugin as never)
  const executor = watching.getExecutor()
  const execute = executor.executeQuery.bind(executor)
  executor.executeQuery = (query, ...rest) => {
    sent.push(query)
    return execute(query, ...rest)
  }
  return { store: { ...own, db: watching }, sent }
}

/** Shows how a statement is carried out; `how` are the options of EXPLAIN. */
export async function explain({ db }: Pick<Store, 'db'>, query: CompiledQuery, how = ''): Promise<unknown[]> {
  const sample = sql`select 1`.compile(db)
  const { rows } = await db.executeQuery<Record<string, unknown>>({
    ...sample,
    sql: `explain ${how} ${query.sql}`,
    parameters: query.parameters,
  })
  return rows.flatMap((row) => Object.values(row))
}
