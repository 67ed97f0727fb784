import { sql } from 'kysely'
import { write } from '../change.ts'
import type { Store } from '../scope.ts'

/** Notes that a process ended because it was out of memory. */
export async function noteMemoryEnd(store: Pick<Store, 'db'>, process: string): Promise<void> {
  await write(store, (tx) =>
    tx
      .insertInto('memoryEnds')
      .values({ process })
      .onConflict((oc) => oc.doNothing())
      .execute(),
  )
}

/** Whether a process ended because it was out of memory. */
export async function hasRunOut(store: Store, process: string): Promise<boolean> {
  const row = await store.db
    .selectFrom('memoryEnds')
    .select('at')
    .where('process', '=', process)
    .executeTakeFirst()
  return row !== undefined
}

/** Forgets the ends of processes that no attempt can still ask for: the longest pause between two attempts is a day. */
export async function purgeMemoryEnds(store: Store): Promise<void> {
  await write(store, (tx) =>
    tx.deleteFrom('memoryEnds').where('at', '<', sql<Date>`now() - interval '30 days'`).execute(),
  )
}
