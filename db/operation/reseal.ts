import { type RawBuilder, sql } from 'kysely'
import { write } from '../change.ts'
import type { Store } from '../scope.ts'
import { KEY_ID_BYTES } from '../seal.ts'

/** How many rows are read at once. */
const BATCH = 50

const NIL = '00000000-0000-0000-0000-000000000000'

/** The id of the key in the head of what `seal` has sealed, as bytes. */
export function keyIdWithin(column: string): RawBuilder<unknown> {
  return sql`substring(${sql.ref(column)} from 2 for ${sql.lit(KEY_ID_BYTES)})`
}

/**
 * Seals the `sealed` of every row of a table with the current key anew; those that `reseal` throws for are left as they
 * are. The service may run meanwhile: each is changed only if it is still what was read. Resolves to how many were sealed
 * anew.
 */
export async function resealRows<Row extends { id: string; sealed: Buffer }>(
  store: Store,
  table: 'notification_channels' | 'workflow_examples' | 'memory_turns' | 'static_data',
  reseal: (row: Row) => Buffer,
): Promise<number> {
  const { db, keys } = store
  const current = Buffer.from(keys.current.padEnd(KEY_ID_BYTES, '\0'), 'ascii')
  let count = 0
  for (let after = NIL; ; ) {
    const { rows } = await sql<Row>`select * from ${sql.table(table)}
      where id > ${after}::uuid and ${keyIdWithin('sealed')} <> ${current}::bytea
      order by id limit ${sql.lit(BATCH)}`.execute(db)
    if (rows.length === 0) return count
    after = rows.at(-1)!.id
    for (const row of rows) {
      const next = tryReseal(() => reseal(row))
      if (!next) continue
      const { numAffectedRows } = await write(store, (tx) =>
        sql`update ${sql.table(table)} set sealed = ${next}
          where id = ${row.id}::uuid and sealed = ${row.sealed}`.execute(tx),
      )
      count += Number(numAffectedRows)
    }
  }
}

function tryReseal(work: () => Buffer): Buffer | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
}
