import { promisify } from 'node:util'
import { gunzip, gzip } from 'node:zlib'
import { write } from '../../change.ts'
import type { Store } from '../../scope.ts'
import { seal, unseal } from '../../seal.ts'
import type { MessagePlace } from '../../send/notes.ts'

/** What a node keeps of a page: values of its own, and the body as it came. */
export type KeptPage = { head: Record<string, unknown>; body: Uint8Array }

const PURPOSE = 'page'
const namePage = ({ executionId, activity }: MessagePlace, number: number) =>
  `${executionId}|${activity}|${number}`

const zip = promisify(gzip)
const unzip = promisify(gunzip)

/** How many pages are read at once, while their bytes are few. */
const MOST_AT_ONCE = 100
const BYTES_AT_ONCE = 4 * 1024 * 1024

/** Keeps a page. False if it is kept already, by another attempt of the node: that one stays. */
export async function keepPage(
  store: Store,
  place: MessagePlace,
  number: number,
  { head, body }: KeptPage,
): Promise<boolean> {
  const text = Buffer.from(JSON.stringify(head))
  const length = Buffer.alloc(4)
  length.writeUInt32BE(text.length)
  const zipped = await zip(Buffer.concat([length, text, body]), { level: 1 })
  const sealed = seal(store.keys, PURPOSE, namePage(place, number), zipped)
  const done = await write(store, (tx) =>
    tx
      .insertInto('requestPages')
      .values({ ...place, number, sealed })
      .onConflict((conflict) => conflict.doNothing())
      .executeTakeFirst(),
  )
  return done.numInsertedOrUpdatedRows === 1n
}

/** The pages that are kept, in their order, from the first one up to one that is missing. */
export async function* readPages(store: Store, place: MessagePlace): AsyncGenerator<KeptPage> {
  let next = 0
  let count = 1
  for (;;) {
    const rows = await store.db
      .selectFrom('requestPages')
      .select(['number', 'sealed'])
      .where('executionId', '=', place.executionId)
      .where('activity', '=', place.activity)
      .where('number', '>=', next)
      .orderBy('number')
      .limit(count)
      .execute()
    let bytes = 0
    for (const { number, sealed } of rows) {
      if (number !== next) return
      next++
      bytes += sealed.length
      const plain = await unzip(unseal(store.keys, PURPOSE, namePage(place, number), sealed))
      const from = 4 + plain.readUInt32BE(0)
      yield { head: JSON.parse(plain.subarray(4, from).toString()), body: plain.subarray(from) }
    }
    if (rows.length < count) return
    // As many more as are small.
    count = bytes * 2 > BYTES_AT_ONCE ? 1 : Math.min(MOST_AT_ONCE, count * 2)
  }
}
