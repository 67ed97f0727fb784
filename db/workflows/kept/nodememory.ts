import { createHash } from 'node:crypto'
import { sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import { record, write } from '../../change.ts'
import { resealRows } from '../../operation/reseal.ts'
import type { Store } from '../../scope.ts'
import { type Keys, seal, unseal } from '../../seal.ts'

/** A memory of a workflow's nodes: those that give the same name and the same key share it. */
export type MemoryPlace = { workflowId: string; name: string; key: string }

/** A question to a model, and its answer. */
export type MemoryTurn = { asked: string; answered: string }

/** How many turns of one memory are kept. */
export const MAX_MEMORY_TURNS = 100

/** The sealed bytes that are read at once, at most, but for the newest turn. */
const MOST_BYTES = 2_000_000

const PURPOSE = 'node memory'

type Row = { id: string; workflowId: string; memory: Buffer; callKey: string; sealed: Buffer }
type SealedPlace = Pick<Row, 'workflowId' | 'memory' | 'callKey'>

const hash = ({ name, key }: MemoryPlace) => createHash('sha256').update(`${name}\0${key}`).digest()
const nameTurn = ({ workflowId, memory, callKey }: SealedPlace) =>
  `${workflowId}|${memory.toString('hex')}|${callKey}`

/** The newest turns of a memory, oldest first, but for that of this call: an earlier attempt of it may have said it. */
export async function readMemory(
  store: Store,
  place: MemoryPlace,
  { turns, callKey }: { turns: number; callKey: string },
): Promise<MemoryTurn[]> {
  const { workflowId } = place
  const memory = hash(place)
  const { rows } = await sql<Row>`
    select id, workflow_id, memory, call_key, sealed from (
      select t.*, sum(octet_length(sealed)) over (order by id desc) - octet_length(sealed) as newer
      from memory_turns t
      where workflow_id = ${workflowId} and memory = ${memory} and call_key <> ${callKey} and expires_at > now()
      order by id desc limit ${turns}) t
    where newer < ${MOST_BYTES} order by id`.execute(store.db)
  return rows.map((row) => JSON.parse(open(store.keys, row).toString()) as MemoryTurn)
}

/**
 * Keeps a turn of a memory for so many days, and the newest MAX_MEMORY_TURNS of them. A call that keeps one again has it
 * replaced. Nothing is kept of a workflow that is deleted.
 */
export async function keepTurn(
  store: Store,
  place: MemoryPlace,
  { turn, callKey, days }: { turn: MemoryTurn; callKey: string; days: number },
): Promise<void> {
  const { workflowId } = place
  const memory = hash(place)
  const text = Buffer.from(JSON.stringify(turn))
  const sealed = seal(store.keys, PURPOSE, nameTurn({ workflowId, memory, callKey }), text)
  await record(store, async (tx) => {
    await sql`insert into memory_turns (id, workflow_id, memory, call_key, sealed, expires_at)
      select ${uuid()}::uuid, id, ${memory}, ${callKey}, ${sealed}, now() + ${days} * interval '1 day'
      from workflows where id = ${workflowId} for key share
      on conflict (workflow_id, memory, call_key)
      do update set sealed = excluded.sealed, expires_at = excluded.expires_at`.execute(tx)
    await sql`delete from memory_turns where workflow_id = ${workflowId} and memory = ${memory} and id <= (
      select id from memory_turns where workflow_id = ${workflowId} and memory = ${memory}
      order by id desc offset ${MAX_MEMORY_TURNS} limit 1)`.execute(tx)
  })
}

/** Forgets what was kept for long enough. */
export async function purgeMemory(store: Store): Promise<void> {
  await write(store, (tx) =>
    tx.deleteFrom('memoryTurns').where('expiresAt', '<=', sql<Date>`now()`).execute(),
  )
}

/** Seals every turn with the current key anew. Resolves to how many were, as resealRows does. */
export function rotateMemory(store: Store): Promise<number> {
  const { keys } = store
  return resealRows<Row>(store, 'memory_turns', (row) => seal(keys, PURPOSE, nameTurn(row), open(keys, row)))
}

const open = (keys: Keys, row: Row) => unseal(keys, PURPOSE, nameTurn(row), row.sealed)
