import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import { write } from '../change.ts'
import type { Tx } from '../connection.ts'
import type { Store } from '../scope.ts'
import { seal, unseal } from '../seal.ts'

/** Which node of which execution sends something: all its attempts have the same place. */
export type MessagePlace = { executionId: string; activity: string }

/** The place of a node's attempts: their key is the execution's id, a sign, and the activity. */
export function placeOf(executionId: string, idempotencyKey: string): MessagePlace {
  return { executionId, activity: idempotencyKey.slice(executionId.length + 1) }
}

/**
 * The state of a message. `agoMs` is how long ago a call said that it hands it over now, `isOver` that this call got no
 * answer, `output` the result.
 */
export type MessageNote =
  | { state: 'SENDING'; agoMs: number; isOver: boolean }
  | { state: 'SENT'; output: unknown }

const PURPOSE = 'message'
const nameNote = ({ executionId, activity }: MessagePlace) => `${executionId}|${activity}`

/** Reads what is known of a message; undefined if it was never handed over. */
export async function readMessageNote(store: Store, place: MessagePlace): Promise<MessageNote | undefined> {
  const row = await store.db
    .selectFrom('messageNotes')
    .select(['isOver', 'sealed'])
    .select(sql<number>`(extract(epoch from clock_timestamp() - noted_at) * 1000)::float8`.as('agoMs'))
    .where('executionId', '=', place.executionId)
    .where('activity', '=', place.activity)
    .executeTakeFirst()
  if (!row) return undefined
  if (!row.sealed) return { state: 'SENDING', agoMs: row.agoMs, isOver: row.isOver }
  const plain = unseal(store.keys, PURPOSE, nameNote(place), row.sealed)
  return { state: 'SENT', output: JSON.parse(plain.toString()) }
}

/**
 * Notes that `call` hands the message over now. False if another call has noted that, unless `again`: then it is
 * handed over once more, if it was not taken. When it was for the first time stays noted.
 */
export async function noteSending(
  store: Store,
  { executionId, activity }: MessagePlace,
  { call, again }: { call: string; again: boolean },
): Promise<boolean> {
  const noted = await write(store, (tx) =>
    sql`insert into message_notes as n (execution_id, activity, state, call)
    values (${executionId}, ${activity}, 'SENDING', ${call})
    on conflict (execution_id, activity) do update set call = excluded.call, is_over = false
      where n.state = 'SENDING' and (n.call = excluded.call or ${again}::boolean)
    returning call`.execute(tx),
  )
  return noted.rows.length > 0
}

/** Notes that the message was taken, and what the node outputs of that. A later call never replaces it. */
export async function noteSent(
  store: Store,
  place: MessagePlace,
  { call, output }: { call: string; output: unknown },
): Promise<void> {
  const sealed = seal(store.keys, PURPOSE, nameNote(place), Buffer.from(JSON.stringify(output)))
  await write(store, (tx) =>
    sql`insert into message_notes as n (execution_id, activity, state, call, sealed)
    values (${place.executionId}, ${place.activity}, 'SENT', ${call}, ${sealed})
    on conflict (execution_id, activity) do update set state = 'SENT', call = excluded.call, sealed = excluded.sealed
      where n.state = 'SENDING'`.execute(tx),
  )
}

/**
 * Notes the output of a node whose effect is in the same transaction. Fails if it is noted already: the transaction must
 * hold what the effect is on, and read the note after that.
 */
export async function noteDone(
  tx: Tx,
  { keys }: Pick<Store, 'keys'>,
  place: MessagePlace,
  output: unknown,
): Promise<void> {
  const { executionId, activity } = place
  const sealed = seal(keys, PURPOSE, nameNote(place), Buffer.from(JSON.stringify(output)))
  await tx
    .insertInto('messageNotes')
    .values({ executionId, activity, state: 'SENT', call: randomUUID(), sealed })
    .execute()
}

/** Notes that `call` has ended without an answer. */
export async function noteUnanswered(
  store: Store,
  { executionId, activity }: MessagePlace,
  call: string,
): Promise<void> {
  await write(store, (tx) =>
    tx
      .updateTable('messageNotes')
      .set({ isOver: true })
      .where('executionId', '=', executionId)
      .where('activity', '=', activity)
      .where('call', '=', call)
      .execute(),
  )
}

/** Takes back that `call` hands the message over: it is certain that it was not taken. */
export async function withdrawSending(store: Store, place: MessagePlace, call: string): Promise<void> {
  await write(store, (tx) =>
    tx
      .deleteFrom('messageNotes')
      .where('executionId', '=', place.executionId)
      .where('activity', '=', place.activity)
      .where('call', '=', call)
      .where('state', '=', 'SENDING')
      .execute(),
  )
}
