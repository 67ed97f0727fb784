import type { Payload } from '@temporalio/common'
import { sql } from 'kysely'
import { openPayload } from '../../../activities/temporal/codec.ts'
import { openEnvelope } from '../../../db/executions/records/outputs.ts'
import type { Store } from '../../../db/scope.ts'
import type { Engine } from '../../../worker/engine/engine.ts'

/**
 * Where a text lies in the database: the names of tables that have it in a row, in any column that is not sealed, and
 * `blobs` for the sealed values of an execution.
 */
export async function findInStore(store: Store, executionId: string, text: string): Promise<string[]> {
  const found: string[] = []
  const { rows: tables } = await sql<{ name: string }>`
    select c.oid::regclass::text as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.relkind = 'r' and n.nspname = current_schema()`.execute(store.db)
  for (const { name } of tables) {
    const { rows } =
      await sql`select 1 from ${sql.raw(name)} t where t::text like ${`%${text}%`} limit 1`.execute(store.db)
    if (rows.length > 0) found.push(name)
  }
  const blobs = await store.db
    .selectFrom('blobs')
    .select(['hash', 'bytes'])
    .where('executionId', '=', executionId)
    .execute()
  for (const { hash, bytes } of blobs) {
    const value = await openEnvelope(store, executionId, { ref: hash, bytes })
    if (JSON.stringify(value).includes(text)) found.push('blobs')
  }
  return found
}

/** The payloads of an execution's history in Temporal, opened, that have a text. Throws if it has none to look at. */
export async function findInHistory(
  { client, sealer }: Pick<Engine, 'client' | 'sealer'>,
  executionId: string,
  text: string,
): Promise<string[]> {
  const history = await client.workflow.getHandle(executionId).fetchHistory()
  const place = { namespace: 'default', workflowId: executionId }
  const opened = await Promise.all(listPayloads(history).map((one) => openPayload(sealer, place, one)))
  if (opened.length < 3) throw new Error(`The history has only ${opened.length} payloads`)
  return opened.map(({ data }) => Buffer.from(data ?? []).toString()).filter((said) => said.includes(text))
}

function listPayloads(value: unknown): Payload[] {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return []
  const { metadata, data } = value as Payload
  if (metadata && ArrayBuffer.isView(data)) return [value as Payload]
  return Object.values(value).flatMap(listPayloads)
}
