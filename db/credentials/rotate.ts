import { record } from '../change.ts'
import type { Store } from '../scope.ts'
import { rewrapCredential } from './seal.ts'
import type { CredentialType } from './types.ts'

/** How many credentials are wrapped anew in one transaction. */
const BATCH = 200

export type Rotation = {
  /** How many credentials were wrapped anew. */
  rewrapped: number
  /** The ids of those that could not be opened: they were altered, or their key is missing. */
  closed: string[]
}

/**
 * Wraps the key of every credential with the current key anew, in batches: what was interrupted goes on where it
 * stopped. The service may run meanwhile, because each is changed only if it is still what was read. `tell` gets how
 * many are done so far.
 */
export async function rotateCredentials(store: Store, tell: (done: number) => void): Promise<Rotation> {
  const { keys } = store
  const closed = new Set<string>()
  let rewrapped = 0
  // Processes whose current key is still another one may seal credentials behind the pass: so until one finds nothing.
  for (let found = true; found; ) {
    found = false
    for (let after = NIL; ; ) {
      const rows = await store.db
        .selectFrom('credentials')
        .select(['id', 'teamId', 'type', 'wrapped'])
        .where('keyId', '<>', keys.current)
        .where('id', '>', after)
        .orderBy('id')
        .limit(BATCH)
        .execute()
      if (rows.length === 0) break
      after = rows.at(-1)!.id
      const anew = rows.flatMap(({ wrapped, type, ...place }) => {
        const next = tryRewrap(() =>
          rewrapCredential(keys, { ...place, type: type as CredentialType }, wrapped),
        )
        if (next === 'closed') closed.add(place.id)
        return next === 'closed' || next === undefined ? [] : [{ id: place.id, wrapped, next }]
      })
      const changed = await record(store, async (tx) => {
        let count = 0
        for (const { id, wrapped, next } of anew) {
          const { numUpdatedRows } = await tx
            .updateTable('credentials')
            .set(next)
            .where('id', '=', id)
            .where('wrapped', '=', wrapped)
            .executeTakeFirst()
          count += Number(numUpdatedRows)
        }
        return count
      })
      rewrapped += changed
      found ||= changed > 0
      tell(rewrapped)
    }
  }
  return { rewrapped, closed: [...closed] }
}

const NIL = '00000000-0000-0000-0000-000000000000'

function tryRewrap<T>(work: () => T): T | 'closed' {
  try {
    return work()
  } catch {
    return 'closed'
  }
}
