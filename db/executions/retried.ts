import { sql } from 'kysely'

/** The newest execution that retries another from its failed nodes, for a query whose executions are called so. */
export function retriedByOf(executions: 'executions' | 'e') {
  return sql<string | null>`(select r.id::text from executions r
    where r.retried_from = ${sql.ref(`${executions}.id`)} and r.recovery = 'RETRY'
    order by r.created_at desc, r.id desc fetch first 1 row only)`
}
