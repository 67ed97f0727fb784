import { sql } from 'kysely'
import { record, write } from '../change.ts'
import { selectFree } from '../queue.ts'
import type { Store } from '../scope.ts'

/** A file that no execution has claimed by then, or that never got a piece, is removed. */
const UNCLAIMED_HOURS = 1

/** How many files are looked at in one go, and how many of their pieces are removed in one statement. */
const AT_ONCE = 100
const PIECES = 64

/**
 * Removes the bytes of files that no longer belong to any execution, and of those that were never stored whole or
 * claimed. Several processes may do so. Stops early when `signal` is aborted. Returns how many files it removed.
 */
export async function sweepFiles(store: Store, signal?: AbortSignal): Promise<number> {
  await write(store, (tx) =>
    sql`update stored_files set removed = true where id in (
      ${selectFree('stored_files', {
        which: sql`q.copies = 0 and not q.removed and q.touched_at < now() - ${UNCLAIMED_HOURS} * interval '1 hour'`,
      })})`.execute(tx),
  )
  let removed = 0
  for (let last = '00000000-0000-0000-0000-000000000000'; !signal?.aborted; ) {
    const { rows } = await sql<{ id: string }>`
      select id from stored_files where copies = 0 and removed and id > ${last}
      order by id limit ${AT_ONCE}`.execute(store.db)
    for (const { id } of rows) {
      if (signal?.aborted) break
      if (await removeBytes(store, id, signal)) removed++
    }
    if (rows.length < AT_ONCE) break
    last = rows.at(-1)!.id
  }
  return removed
}

/** Removes the pieces of a file in small transactions, and then its row. */
async function removeBytes(store: Store, id: string, signal: AbortSignal | undefined): Promise<boolean> {
  while (!signal?.aborted) {
    const gone = await write(store, (tx) =>
      sql`delete from file_pieces where file_id = ${id} and number in (
        select number from file_pieces where file_id = ${id} limit ${PIECES})`.execute(tx),
    )
    if (gone.numAffectedRows === BigInt(PIECES)) continue
    return record(store, async (tx) => {
      // A piece that was still being written when the file was given up comes before its row goes.
      const held = await selectFree('stored_files', { which: sql`q.id = ${id}` }).execute(tx)
      if (held.rows.length === 0) return false
      await sql`delete from file_pieces where file_id = ${id}`.execute(tx)
      await tx.deleteFrom('storedFiles').where('id', '=', id).execute()
      return true
    })
  }
  return false
}
