import { resealRows } from '../../operation/reseal.ts'
import type { Store } from '../../scope.ts'
import { openChannel, sealChannel } from './secrets.ts'

/** Seals the secrets of every channel with the current key anew. Resolves to how many were, as resealRows does. */
export function rotateChannels(store: Store): Promise<number> {
  const { keys } = store
  type Row = { id: string; teamId: string; sealed: Buffer }
  return resealRows<Row>(store, 'notification_channels', ({ id, teamId, sealed }) =>
    sealChannel(keys, { teamId, id }, openChannel(keys, { teamId, id }, sealed)),
  )
}
