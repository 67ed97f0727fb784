import { sql } from 'kysely'
import { write } from '../change.ts'
import type { Store } from '../scope.ts'

/** The version of seals that binds a payload to its run. */
export const BOUND = 2

/** When runs began to have nothing but bound payloads, in milliseconds since 1970; null if that is to come. */
export async function readBoundSince(store: Store): Promise<number | null> {
  const row = await store.db
    .selectFrom('sealVersions')
    .select('since')
    .where('version', '=', BOUND)
    .executeTakeFirst()
  return row ? row.since.getTime() : null
}

/** Notes that runs which begin later than `minutes` from now have bound payloads only. The first one to note it is right. */
export async function noteBoundSince(store: Store, minutes: number): Promise<void> {
  await write(store, (tx) =>
    sql`insert into seal_versions (version, since) values (${BOUND}, now() + ${minutes} * interval '1 minute')
    on conflict do nothing`.execute(tx),
  )
}

/** Notes the keys of a process, before it seals anything. */
export async function noteSealKeys(store: Store): Promise<void> {
  await write(store, (tx) =>
    sql`insert into seal_keys (id) select unnest(${[...store.keys.byId.keys()]}::text[])
    on conflict do nothing`.execute(tx),
  )
}

/** Whether a process of this installation has, or had, a key with this id. */
export async function isSealKey(store: Store, id: string): Promise<boolean> {
  const row = await store.db.selectFrom('sealKeys').select('id').where('id', '=', id).executeTakeFirst()
  return row !== undefined
}

/** Whether an execution was accepted before an instant, in milliseconds since 1970. */
export async function wasAcceptedBefore(store: Store, executionId: string, at: number): Promise<boolean> {
  const row = await store.db
    .selectFrom('executions')
    .select('createdAt')
    .where('id', '=', executionId)
    .executeTakeFirst()
  return row !== undefined && row.createdAt.getTime() < at
}
