import { type RawBuilder, sql } from 'kysely'
import { writeUntil } from '../../workflows/graph/part.ts'

/** Whether an execution, by its column `only_node`, was of the whole graph or of all that leads to a node. */
export function isNotSingle(column: string): RawBuilder<boolean> {
  return sql<boolean>`(${sql.ref(column)} is null or starts_with(${sql.ref(column)}, ${writeUntil('')}))`
}
