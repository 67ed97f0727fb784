import { write } from '../../change.ts'
import type { Store } from '../../scope.ts'
import { readSeal } from '../../seal.ts'
import { openChannel, sealChannel } from './secrets.ts'

/** How many channels are read at once. */
const BATCH = 200

/**
 * Seals the secrets of every channel with the current key anew; those that cannot be opened are left as they are. The
 * service may run meanwhile: each is changed only if it is still what was read. Resolves to how many were sealed anew.
 */
export async function rotateChannels(store: Store): Promise<number> {
  const { db, keys } = store
  let count = 0
  for (let after = NIL; ; ) {
    const rows = await db
      .selectFrom('notificationChannels')
      .select(['id', 'teamId', 'sealed'])
      .where('id', '>', after)
      .where('sealed', 'is not', null)
      .orderBy('id')
      .limit(BATCH)
      .execute()
    if (rows.length === 0) return count
    after = rows.at(-1)!.id
    for (const { sealed, ...place } of rows) {
      if (!sealed || readSeal(sealed)?.keyId === keys.current) continue
      const next = tryReseal(() => sealChannel(keys, place, openChannel(keys, place, sealed)))
      if (!next) continue
      const { numUpdatedRows } = await write(store, (tx) =>
        tx
          .updateTable('notificationChannels')
          .set({ sealed: next })
          .where('id', '=', place.id)
          .where('sealed', '=', sealed)
          .executeTakeFirst(),
      )
      count += Number(numUpdatedRows)
    }
  }
}

const NIL = '00000000-0000-0000-0000-000000000000'

function tryReseal(work: () => Buffer): Buffer | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
}
